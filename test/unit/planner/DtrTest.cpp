// SPDX-License-Identifier: Apache-2.0
// dtr: evictions that can be worked out by hand, exact optima that it must not beat, and a network.
#include "passes/planner/Bounds.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"
#include "tools/bench/reproduce/Networks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace sluice::planner {

static Bytes keepPeak(const Problem &p) { return peakBytes(p, expand(p, keepPlan(p))); }

static Chain chainOf(std::vector<double> forward, double size) {
  const size_t n = forward.size();
  Chain c;
  c.uF = std::move(forward);
  c.uB.assign(n, 1);
  c.exF = c.exB = c.saved = std::vector<double>(n, 0);
  c.x.assign(n + 1, size);
  c.y.assign(n + 1, 1);
  return c;
}

static std::string rerunsOf(const Answer &answer) {
  std::string text;
  if (const auto *plan = std::get_if<Plan>(&answer))
    for (const Recompute &r : plan->recomputes) {
      text += " " + std::to_string(r.before) + ":";
      for (int op : r.ops)
        text += (text.back() == ':' ? "" : ",") + std::to_string(op);
    }
  return text;
}

TEST(Dtr, EvictsTheLeastCostPerByteAndStaleness) {
  // The forward half takes 20, 22, 25, 28, 31 and 51 seconds to the ends of F_0..F_5, which read x_0..x_5. B_5 needs
  // x_5, x_6, y_5, y_6 and 15 bytes besides: 69 with all that is kept, so that two of x_1..x_4 must go. Their h
  // are 20/(10*29), 2/(10*26), 3/(10*23) and 3/(10*20): x_2 is first.
  Chain c = chainOf({20, 2, 3, 3, 3, 20}, 10);
  c.x.front() = c.x.back() = 1;
  c.exB[5] = 15;
  const ChainProblem lifted(c, true);
  ASSERT_EQ(keepPeak(lifted.problem), 69);
  Options options;
  options.pack = false;
  // x_3 would have to be made from x_2, 5/(10*23): x_4 is second. Back come x_4 before B_4, x_2 before B_2.
  EXPECT_EQ(rerunsOf(runStrategy(lifted.problem, 52, "dtr", options)), " 7:3 9:1");
  // By its own cost x_3 is second, and B_3 wants both.
  options.knobs["neighbours"] = "0";
  EXPECT_EQ(rerunsOf(runStrategy(lifted.problem, 52, "dtr", options)), " 8:1,2");
  options.knobs["reruns"] = "0";
  EXPECT_TRUE(std::holds_alternative<Infeasible>(runStrategy(lifted.problem, 52, "dtr", options)));
}

/// Seconds that dtr needs over checkmate, the optimum of everything that runs ops again; nothing where dtr finds no
/// plan.
static std::optional<Seconds> overOptimum(const Problem &p, double share) {
  Options options;
  options.executable = {Action::Keep, Action::Recompute};
  options.pack = false;
  const Bytes memory = p.base + static_cast<Bytes>(static_cast<double>(keepPeak(p) - p.base) * share);
  const Answer own = runStrategy(p, memory, "dtr", options), best = runStrategy(p, memory, "checkmate", options);
  const auto *plan = std::get_if<Plan>(&own), *optimum = std::get_if<Plan>(&best);
  if (!plan)
    return std::nullopt;
  if (!optimum)
    return -1;
  return simulate(p, *plan).makespan - simulate(p, *optimum).makespan;
}

TEST(Dtr, NeverBeatsTheOptimumOfSmallGraphsAndOftenMeetsIt) {
  int dearer = 0, equal = 0;
  auto compare = [&](const Problem &p) {
    for (double share : {0.6, 0.8, 0.95})
      if (const auto over = overOptimum(p, share)) {
        EXPECT_GE(*over, -1e-9) << share;
        (*over > 1e-9 ? dearer : equal) += 1;
      }
  };
  test::RandomShape shape;
  shape.forwardOps = 4;
  shape.overwriteChance = 0; // checkmate keeps what gradients overwrite
  for (unsigned seed = 0; seed < test::instances(20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare(test::randomProblem(seed, shape));
    compare(ChainProblem(test::randomChain(seed, 4), true).problem);
  }
  EXPECT_GT(dearer, 0) << "the instances must not all be trivial";
  EXPECT_GT(equal, dearer);
}

TEST(Dtr, OnUniformChainsLessMemoryNeedsMoreTimeThanKeep) {
  const Chain c = chainOf(std::vector<double>(20, 3), 10);
  Seconds last = chainCompute(c);
  for (double share : {1.0, 0.9, 0.7, 0.5, 0.3}) {
    const double memory = std::floor(chainPeak(c) * share);
    const ChainAnswer answer = runStrategy(c, memory, Release::Whole, "dtr");
    ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer)) << share;
    const ChainTimeline &timeline = std::get<ChainPlan>(answer).timeline;
    EXPECT_LE(timeline.peakBytes, memory);
    EXPECT_GE(timeline.makespan, strategyBound(c, memory, "dtr") * (1 - 1e-9)) << share;
    if (share == 1)
      EXPECT_EQ(timeline.makespan, last);
    else
      EXPECT_GT(timeline.makespan, last) << share;
    last = timeline.makespan;
  }
}

/// Plays fit from a limit on that lies between two sixteenths of what keep adds.
TEST(Dtr, FitsBetweenSixteenths) {
  const Problem p = bench::network("vgg16", *loadProfile("v100-pcie"), 32, 224);
  const Bytes added = keepPeak(p) - p.base;
  const Answer none = runStrategy(p, p.base, "dtr");
  ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
  const Bytes smallest = std::get<Infeasible>(none).smallestMemory;
  EXPECT_LE(smallest, p.base + added / 5 * 2) << "it has a plan for 40 %";
  for (Bytes budget : {smallest, p.base + added / 5 * 2})
    EXPECT_TRUE(std::holds_alternative<Plan>(runStrategy(p, budget, "dtr"))) << budget;
}

TEST(Dtr, FitsResNet50IntoBudgetsFasterThanSegmentsDo) {
  const Profile profile = *loadProfile("v100-pcie");
  const Problem p = bench::network("resnet50", profile, 8, 128);
  const Bytes keep = std::get<Plan>(runStrategy(p, Bytes(1) << 55, "keep")).arenaBytes;
  for (double share : {0.4, 0.6, 0.8}) {
    const Bytes budget = p.base + static_cast<Bytes>(share * static_cast<double>(keep - p.base));
    const Answer own = runStrategy(p, budget, "dtr"), segments = runStrategy(p, budget, "chen");
    ASSERT_TRUE(std::holds_alternative<Plan>(own)) << share;
    EXPECT_LE(std::get<Plan>(own).arenaBytes, budget);
    const Seconds span = simulate(p, std::get<Plan>(own)).makespan;
    EXPECT_GE(span, actionBound(p, budget, {Action::Keep, Action::Recompute}) * (1 - 1e-9));
    EXPECT_GT(span, simulate(p, keepPlan(p)).makespan);
    EXPECT_LT(span, simulate(p, std::get<Plan>(segments)).makespan) << share;
  }
}

} // namespace sluice::planner
