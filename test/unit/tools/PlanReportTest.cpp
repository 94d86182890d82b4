// SPDX-License-Identifier: Apache-2.0
// Reports: names from models cannot become markup, every strategy has a line or a reason, and the figures agree.
#include "tools/PlanReport.h"

#include "test/unit/planner/RandomProblems.h"
#include "tools/Svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {

using testing::HasSubstr;
using testing::Not;

TEST(PlanReport, MarkupAndBytesThatAreNoTextAreEscaped) {
  EXPECT_EQ(escaped("<b a='x'>&\""), "&lt;b a=&#39;x&#39;&gt;&amp;&quot;");
  EXPECT_EQ(escaped("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  const std::string unknown = "\xef\xbf\xbd";
  EXPECT_EQ(escaped(std::string("a\0b\n", 4)), "a" + unknown + "b" + unknown);
  EXPECT_EQ(escaped("\xc3"), unknown);                                // cut off
  EXPECT_EQ(escaped("\xc0\xbc"), unknown + unknown);                  // '<' in two bytes
  EXPECT_EQ(escaped("\xed\xa0\x80").find('\xed'), std::string::npos); // half of a surrogate pair
  EXPECT_EQ(escaped("\xe2\x80\xae").find('\xe2'), std::string::npos); // turns the direction of writing
}

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

TEST(PlanReport, HostileNamesStayText) {
  const std::string name = "</title><script>alert(1)</script>\"'><svg onload=x>";
  const std::string html = htmlOf(sweepOfRandom(name));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("onload=x>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  const std::string csv = csvOf(sweepOfRandom("a\"b"));
  EXPECT_THAT(csv, Not(HasSubstr("\"a\"b\"")));
}

TEST(PlanReport, NeedsNoNetwork) {
  const std::string html = htmlOf(sweepOfRandom("t"));
  for (const char *reference : {"src=", "href=", "url(", "@import", "<link", "<script"})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
}

TEST(PlanReport, EveryStrategyHasALineOrAReason) {
  const Sweep sweep = sweepOfRandom("t");
  const std::string html = htmlOf(sweep);
  ASSERT_EQ(sweep.curves.size(), 5u);
  EXPECT_EQ(sweep.curves[0].points.size(), 5u);
  EXPECT_TRUE(sweep.curves[0].points.back().plan.has_value());
  EXPECT_EQ(sweep.curves[0].points.back().budget, sweep.keep.arenaBytes);
  EXPECT_THAT(html, HasSubstr("<td>mixed</td>"));
  EXPECT_THAT(html, HasSubstr("<b>t</b>: no strategy &#39;t&#39;"));
  EXPECT_THAT(html, HasSubstr("lower bound"));
}

TEST(PlanReport, ChartsWithoutPointsOrWithOneAreDrawn) {
  Chart none("x", "y");
  EXPECT_THAT(none.svg(), HasSubstr("nothing to draw"));
  Chart one("x", "y");
  one.add({"a", {{5, 0}}});
  EXPECT_THAT(one.svg(), Not(HasSubstr("nan")));
  EXPECT_THAT(one.svg(), HasSubstr("</svg>"));
  Chart logs("x", "y");
  logs.logarithmic().add({"a", {{0, 1}, {10, 2}, {1000, 300}}});
  EXPECT_THAT(logs.svg(), Not(HasSubstr("inf")));
}

} // namespace sluice
