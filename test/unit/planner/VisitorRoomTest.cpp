// SPDX-License-Identifier: Apache-2.0
// Plans that leave visitors their room and their part of the link.
#include "passes/strategies/VisitorRoom.h"
#include "passes/planner/Check.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Visits.h"
#include "passes/strategies/WithinBudget.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/RandomProblems.h"
#include "test/unit/planner/SmallStep.h"

#include <gtest/gtest.h>

namespace sluice::planner {

namespace {

const Strategy &mixed() {
  for (const Strategy &strategy : strategies())
    if (strategy.name == "mixed")
      return strategy;
  std::abort();
}

/// Layers whose activations run again in a fifth of a second or move in one, each with a state that comes for its
/// update and goes back, a second each way.
struct Layers : test::SmallStep {
  static constexpr int count = 6;

  Layers() : SmallStep(100) {
    problem.visitorsLink = problem.link;
    const int input = buffer(false), gradient = buffer(false);
    std::vector<int> values, states;
    for (int i = 0; i < count; ++i) {
      values.push_back(buffer(true));
      states.push_back(buffer(false));
      problem.buffers[states.back()].visits = true;
    }
    op(Phase::Forward, {}, {input});
    problem.ops.back().recomputable = false;
    for (int i = 0; i < count; ++i) {
      op(Phase::Forward, {input}, {values[i]});
      problem.buffers[values[i]].producers = {i + 1};
      problem.ops.back().rerun = Rerun{0.2, 0, {input}, {values[i]}};
    }
    for (int i = count - 1; i >= 0; --i) {
      op(Phase::Backward,
         i == count - 1 ? std::vector<int>{values[i], input} : std::vector<int>{values[i], gradient, input},
         {gradient});
      op(Phase::Update, {gradient}, {states[i]});
    }
  }
};

Seconds spanOf(const Problem &problem, const Plan &plan) { return simulate(problem, plan).makespan; }

} // namespace

TEST(VisitorRoom, ActivationsLeaveTheLinkToVisitors) {
  const Layers net;
  ASSERT_EQ(messageOf(checkProblem(net.problem)), "");
  const Bytes memory = 500;
  KnownPlans known;
  Options options;
  options.known = &known;
  const Answer apart = Planner(net.problem, mixed(), options).run(memory);
  ASSERT_TRUE(std::holds_alternative<Plan>(apart));
  const Answer together = withVisitors(net.problem, memory, mixed(), options, apart);
  const Plan &plan = std::get<Plan>(together);
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, memory)), "");
  Seconds placed = 1e9; // the first plan with its visitors where there is room
  for (Bytes room = 0; room <= memory; room += 50)
    placed = std::min(placed, spanOf(net.problem, withVisits(net.problem, room, std::get<Plan>(apart))));
  EXPECT_LT(spanOf(net.problem, plan), placed);
}

TEST(VisitorRoom, BesideThemNothingVisits) {
  const Layers net;
  const Problem beside = besideVisitors(net.problem, 0);
  EXPECT_EQ(messageOf(checkProblem(beside)), "");
  EXPECT_FALSE(hasVisitors(beside));
  EXPECT_DOUBLE_EQ(beside.link.d2h, 100 * (1 - 6 / 19.0)) << "six seconds of visitors' copies, 19 of compute";
  EXPECT_EQ(peakBytes(beside, expand(beside, keepPlan(beside))),
            peakBytes(net.problem, expand(net.problem, keepPlan(net.problem))));
  const Problem roomy = besideVisitors(net.problem, 1);
  EXPECT_GT(peakBytes(roomy, expand(roomy, keepPlan(roomy))), peakBytes(beside, expand(beside, keepPlan(beside))));
}

TEST(VisitorRoom, PlansStaySoundAndGetNoSlower) {
  int faster = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.visitors = true;
    shape.gathers = seed % 5 > 3;
    shape.forwardOps = 4 + static_cast<int>(seed % 9);
    shape.codecs = seed % 3 == 0;
    const Problem problem = test::randomProblem(seed, shape);
    if (!checkProblem(problem))
      continue;
    const Bytes keep = peakBytes(problem, expand(problem, keepPlan(problem)));
    const Bytes memory = problem.base + (keep - problem.base) * 4 / 5;
    KnownPlans known;
    Options options;
    options.known = &known;
    const Answer apart = Planner(problem, mixed(), options).run(memory);
    const Plan *before = std::get_if<Plan>(&apart);
    if (!before)
      continue;
    const Plan plan = std::get<Plan>(withVisitors(problem, memory, mixed(), options, apart));
    EXPECT_EQ(messageOf(checkPlan(problem, plan, memory)), "");
    EXPECT_LE(plan.arenaBytes, memory);
    EXPECT_LE(spanOf(problem, plan), spanOf(problem, *before));
    faster += spanOf(problem, plan) < spanOf(problem, *before);
  }
  EXPECT_GT(faster, 2);
}

} // namespace sluice::planner
