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
  planner::Problem problem = planner::test::randomProblem(7, shape);
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
  const nlohmann::json rows = table["rows"];
  EXPECT_EQ(rows[rows.size() - 2][0], "lower bound");
  EXPECT_EQ(rows.back()[0], "fastest above it");
  EXPECT_THAT(sectionOf(data, "Strategies that are not drawn, or not wholly").dump(), HasSubstr("no strategy 't'"));
  EXPECT_EQ(sectionOf(data, "Time over memory")["series"].back()["name"], "lower bound");
  EXPECT_EQ(sectionOf(data, "Streams")["bars"][0].size(), 5u);
}

TEST(PlanReport, RecommendsTheSmallestBudgetThatCostsLittle) {
  const Sweep sweep = sweepOfRandom("t");
  const nlohmann::json data = dataOf(htmlOf(sweep));
  const nlohmann::json rows = sectionOf(data, "Budgets to choose from")["rows"];
  ASSERT_GE(rows.size(), 2u);
  const SweepPoint *smallest = nullptr, *cheap = nullptr;
  for (const SweepPoint &point : sweep.curves[0].points) {
    if (!point.plan)
      continue;
    smallest = smallest ? smallest : &point;
    if (!cheap && point.makespan <= 1.1 * sweep.keepSeconds)
      cheap = &point;
  }
  ASSERT_NE(cheap, nullptr);
  int64_t before = INT64_MAX;
  for (const nlohmann::json &row : rows) {
    EXPECT_EQ(row[5], "mixed");
    EXPECT_LT(row[2].get<int64_t>(), before); // less memory for more time
    before = row[2];
    const std::string price = row[0];
    if (const size_t percent = price.find(" % longer"); percent != std::string::npos) {
      EXPECT_LE(row[4].get<double>(), 1000 * sweep.keepSeconds * (1 + std::stod(price.substr(0, percent)) / 100));
    }
    // The flag gives at least this budget, and less than a percent more.
    const double share = std::stod(row[1].get<std::string>()) / 100 * static_cast<double>(sweep.keep.arenaBytes);
    EXPECT_GE(share, row[2].get<double>());
    EXPECT_LT(share, row[2].get<double>() + static_cast<double>(sweep.keep.arenaBytes) / 100);
  }
  EXPECT_EQ(rows.back()[2], smallest->budget);
  const std::string said = data.dump();
  if (cheap->budget < sweep.keep.arenaBytes) {
    const int64_t percent = (100 * cheap->budget + sweep.keep.arenaBytes - 1) / sweep.keep.arenaBytes;
    EXPECT_THAT(said, HasSubstr("Recommended to begin with: --memory-budget=" + std::to_string(percent) + "%"));
  } else {
    EXPECT_THAT(said, HasSubstr("No smaller budget is recommended"));
  }
}

/// A reader is not told times of strategies at budgets where they do not fit.
TEST(PlanReport, CurvesAreKnownAtTheirPointsAlone) {
  const nlohmann::json chart = sectionOf(dataOf(htmlOf(sweepOfRandom("t"))), "Time over memory");
  EXPECT_EQ(chart["discrete"], true);
  for (const nlohmann::json &series : chart["series"])
    if (series["name"] == "keep") {
      EXPECT_EQ(series["points"].size(), 1u);
    }
}

} // namespace sluice
