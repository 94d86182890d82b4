// SPDX-License-Identifier: Apache-2.0
// Reports: names from models cannot become markup, every strategy has a line or a reason, and the figures agree.
#include "tools/PlanReport.h"

#include "test/unit/planner/RandomProblems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sluice {

using testing::HasSubstr;
using testing::Not;

static Sweep sweepOfRandom(const std::string &name) {
  planner::test::RandomShape shape;
  shape.forwardOps = 6;
  planner::Problem problem = planner::test::randomProblem(3, shape);
  for (planner::Buffer &buffer : problem.buffers)
    buffer.name = name;
  for (planner::Op &op : problem.ops)
    op.name = name;
  Sweep sweep = sweepOf(problem, {}, name, "device " + name);
  addCurves(sweep, {"mixed", "keep", "greedy", "gist", name}, 4);
  return sweep;
}

/// What the viewer is given.
static nlohmann::json dataOf(const std::string &html) {
  const std::string begin = "id=data>";
  const size_t from = html.find(begin) + begin.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

static nlohmann::json sectionOf(const nlohmann::json &data, const std::string &title) {
  for (const nlohmann::json &section : data["sections"])
    if (section.value("title", "") == title)
      return section;
  return {};
}

TEST(PlanReport, HostileNamesStayText) {
  const std::string name = "</title></script><script>alert(1)</script>\"'><svg onload=x><!--\xff";
  const std::string html = htmlOf(sweepOfRandom(name));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<svg onload")));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>\\u003cscript>alert(1)"));
  EXPECT_EQ(dataOf(html)["title"], name.substr(0, name.size() - 1) + "\xef\xbf\xbd");
  const std::string csv = csvOf(sweepOfRandom("a\"b"));
  EXPECT_THAT(csv, Not(HasSubstr("\"a\"b\"")));
}

TEST(PlanReport, NeedsNoNetwork) {
  const std::string html = htmlOf(sweepOfRandom("t"));
  for (const char *reference : {"src=", "href=", "url(", "@import", "<link", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(PlanReport, EveryStrategyHasALineOrAReason) {
  const Sweep sweep = sweepOfRandom("t");
  const nlohmann::json data = dataOf(htmlOf(sweep));
  ASSERT_EQ(sweep.curves.size(), 5u);
  EXPECT_EQ(sweep.curves[0].points.size(), 5u);
  EXPECT_TRUE(sweep.curves[0].points.back().plan.has_value());
  EXPECT_EQ(sweep.curves[0].points.back().budget, sweep.keep.arenaBytes);
  const nlohmann::json table = sectionOf(data, "Time above keeping everything, in percent, by device memory");
  EXPECT_EQ(table["rows"][0][0], "mixed");
  EXPECT_EQ(table["rows"].back()[0], "lower bound");
  EXPECT_THAT(sectionOf(data, "Strategies that are not drawn, or not wholly").dump(), HasSubstr("no strategy 't'"));
  EXPECT_EQ(sectionOf(data, "Time over memory")["series"].back()["name"], "lower bound");
  EXPECT_EQ(sectionOf(data, "Streams")["bars"][0].size(), 5u);
}

} // namespace sluice
