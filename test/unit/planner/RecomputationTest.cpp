// SPDX-License-Identifier: Apache-2.0
// What may run again, and where: gradients in the place of what is read, other results of an op, second re-runs.
#include "passes/planner/Recomputation.h"
#include "passes/planner/Check.h"
#include "passes/planner/Simulate.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/SmallStep.h"
#include "test/unit/planner/TwoLayers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::planner {

/// twoLayers() whose backward ops of f and g are each two; the last writes the gradient in place of z.
static Problem overwritten() {
  Problem p = twoLayers();
  p.ops.resize(3);
  p.buffers[0].producers = {};
  p.buffers[1].producers = {1};
  auto op = [&](const char *name, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = name;
    o.phase = Phase::Backward;
    o.seconds = 1;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    p.ops.push_back(o);
  };
  op("bg1", {2}, {3});
  op("bg2", {1, 3}, {4});
  op("bf1", {1, 4}, {1}); // dz in place of z
  op("bf2", {0, 1}, {4});
  return p;
}

TEST(Recomputation, AnActivationComesBackThoughItsGradientTakesItsPlaceLater) {
  const Problem p = overwritten();
  ASSERT_EQ(messageOf(checkProblem(p)), "");
  const Recomputation recomputation(p);
  ASSERT_TRUE(recomputation.overwritten(1));
  ASSERT_TRUE(recomputation.possible(1));
  Plan plan = keepPlan(p);
  recomputation.apply({1}, plan);
  recomputation.applyAgain({1}, plan);
  ASSERT_EQ(plan.recomputes.size(), 1u);
  EXPECT_EQ(plan.recomputes[0].before, 4) << "not again before bf2, which reads the gradient";
  EXPECT_EQ(messageOf(checkPlan(p, plan, 1000)), "");
}

TEST(Recomputation, NothingIsMadeAgainFromWhatAGradientHasOverwritten) {
  Problem p = overwritten();
  p.ops[6].reads.push_back(2); // w is read after z has gone
  p.ops[3].reads.clear();
  p.buffers[2].activation = true;
  p.buffers[2].producers = {2};
  ASSERT_EQ(messageOf(checkProblem(p)), "");
  EXPECT_FALSE(Recomputation(p).possible(2));
  p.ops[6].reads.pop_back();
  p.ops[5].reads.push_back(2);
  EXPECT_TRUE(Recomputation(p).possible(2)) << "bf1 itself still finds z";
}

/// pool leaves y and indices for its gradient, which reads those alone; g writes in place of y, from t as well, whose
/// gradient overwrites it before pool would run again.
TEST(Recomputation, WhatGoesWithAnotherResultIsMadeAgainAsLateAsThatOne) {
  test::SmallStep step(100);
  const int x = step.buffer(true), y = step.buffer(true), indices = step.buffer(true), t = step.buffer(true),
            dy = step.buffer(false), dx = step.buffer(false);
  step.op(Phase::Forward, {}, {x});
  step.op(Phase::Forward, {x}, {y, indices});
  step.op(Phase::Forward, {x}, {t});
  step.op(Phase::Forward, {t, y}, {y});
  step.op(Phase::Backward, {t}, {dy});
  step.op(Phase::Backward, {t, dy}, {t});
  step.op(Phase::Backward, {indices, t}, {dx});
  for (int b : {x, y, indices, t})
    step.problem.buffers[b].producers = b == y ? std::vector<int>{1, 3} : std::vector<int>{b == x ? 0 : b == t ? 2 : 1};
  ASSERT_EQ(messageOf(checkProblem(step.problem)), "");
  EXPECT_EQ(Recomputation(step.problem).closure({indices}), std::vector<int>());
  step.problem.ops[5].writes = {dy}; // t stays as it was
  const Recomputation recomputation(step.problem);
  Plan plan = keepPlan(step.problem);
  recomputation.apply(recomputation.closure({indices}), plan);
  EXPECT_EQ(plan.recomputes.size(), 1u);
  EXPECT_EQ(messageOf(checkPlan(step.problem, plan, 1000)), "");
}

/// Two products, and a region that reads both and leaves two of its three results in their places, as adapters beside
/// the matrices of a gated unit do: what the region overwrote comes back by the products, whichever result is wanted.
TEST(Recomputation, ARegionInThePlacesOfSeveralOperandsRunsAgainBehindAllThatMadeThem) {
  test::SmallStep step(100);
  const int x = step.buffer(true), a = step.buffer(true), b = step.buffer(true), y = step.buffer(true),
            dy = step.buffer(false), dx = step.buffer(false);
  step.op(Phase::Forward, {}, {x});
  step.op(Phase::Forward, {x}, {a});
  step.op(Phase::Forward, {x}, {b});
  step.op(Phase::Forward, {a, b}, {a, b, y});
  step.op(Phase::Backward, {y}, {dy});
  step.op(Phase::Backward, {x, a, b, dy}, {dx}); // the products' gradients read x
  const std::vector<std::vector<int>> producers = {{0}, {1, 3}, {2, 3}, {3}};
  for (int buffer : {x, a, b, y})
    step.problem.buffers[buffer].producers = producers[buffer];
  ASSERT_EQ(messageOf(checkProblem(step.problem)), "");
  const Recomputation recomputation(step.problem);
  for (int buffer : {a, b, y}) {
    const std::vector<int> closed = recomputation.closure({buffer});
    EXPECT_EQ(closed, (std::vector<int>{a, b, y})) << buffer;
    Plan plan = keepPlan(step.problem);
    recomputation.apply(closed, plan);
    ASSERT_EQ(plan.recomputes.size(), 1u);
    EXPECT_EQ(plan.recomputes[0].ops, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(messageOf(checkPlan(step.problem, plan, 1000)), "");
  }
  step.problem.ops[1].reads = {x, a}; // what was in a before the step is gone
  EXPECT_EQ(Recomputation(step.problem).closure({y}), std::vector<int>());
}

TEST(Recomputation, SecondReRunsAreGivenBackWhereMemoryAllows) {
  Problem p = twoLayers();
  p.buffers[1].producers = {1};
  p.ops.insert(p.ops.begin() + 4, p.ops[3]); // an op between the readers of z that leaves it alone
  p.ops[4].reads = {2};
  const Recomputation recomputation(p);
  Plan plan = keepPlan(p);
  recomputation.apply({1}, plan);
  recomputation.applyAgain({1}, plan);
  ASSERT_EQ(plan.recomputes.size(), 2u);
  const Bytes tight = peakBytes(p, expand(p, plan));
  const Plan twice = plan;
  const Program program = expand(p, plan);
  const Bytes between =
      liveBytes(p, program)[program.stepOf[4]] + p.buffers[1].bytes; // at the op in between, were z there
  recomputation.giveBack(between - 1, plan);
  EXPECT_EQ(plan.recomputes.size(), 2u);
  recomputation.giveBack(std::max(between, tight), plan);
  ASSERT_EQ(plan.recomputes.size(), 1u);
  EXPECT_EQ(plan.recomputes[0].before, 3);
  EXPECT_EQ(messageOf(checkPlan(p, plan, std::max(between, tight))), "");
  EXPECT_LT(simulate(p, plan).makespan, simulate(p, twice).makespan);
}

} // namespace sluice::planner
