// SPDX-License-Identifier: Apache-2.0
// Every strategy on random branching problems: plans pass the independent checker at every budget, infeasible answers
// name a budget that works, and what must never be slower than keep is not.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"

#include <gtest/gtest.h>

namespace sluice::planner {

using test::randomProblem;

static Bytes keepPeak(const Problem &p) { return peakBytes(p, expand(p, keepPlan(p))); }

/// What must hold of any answer.
static void expectSound(const Problem &p, Bytes budget, const std::string &name, const Options &options) {
  Answer answer = runStrategy(p, budget, name, options);
  ASSERT_FALSE(std::holds_alternative<Refused>(answer)) << std::get<Refused>(answer).reason;
  if (auto *none = std::get_if<Infeasible>(&answer)) {
    ASSERT_GT(none->smallestMemory, budget);
    ASSERT_GE(none->smallestMemory, memoryFloor(p));
    answer = runStrategy(p, none->smallestMemory, name, options);
    ASSERT_TRUE(std::holds_alternative<Plan>(answer)) << name << " fails at its own smallest budget";
    budget = none->smallestMemory;
  }
  const Plan &plan = std::get<Plan>(answer);
  ASSERT_EQ(checkPlan(p, plan, budget), "");
  ASSERT_LE(plan.arenaBytes, budget);
  const Timeline timeline = simulate(p, plan);
  ASSERT_EQ(checkTimeline(p, plan, timeline), "");
  ASSERT_LE(timeline.peakBytes, budget);
  ASSERT_GE(timeline.makespan, actionBound(p, budget, allowedActions(options)) * (1 - 1e-9));
}

TEST(Strategies, RandomBranchingProblemsAreSound) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 3 + seed % 25;
    shape.slowLink = seed % 3 == 0;
    shape.codecs = seed % 4 == 0;
    const Problem p = randomProblem(seed, shape);
    ASSERT_EQ(problemError(p), "");
    for (const Strategy &strategy : strategies())
      for (double share : {0.0, 0.3, 0.5, 0.7, 0.9, 1.0}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " strategy " + strategy.name + " share " + std::to_string(share));
        if (!strategy.plan || strategy.name == "auto")
          continue; // auto is mixed
        if (strategy.name == "checkmate" && shape.forwardOps > 4)
          continue; // an integer program: SmallOptimaTest.cpp has more of it
        Options options = everythingAllowed({});
        if (strategy.name == "mixed")
          options.knobs["trials"] = "20";
        options.packNodes = 2000;
        expectSound(p, p.base + Bytes((keepPeak(p) - p.base) * share), strategy.name, options);
        if (HasFatalFailure())
          return;
      }
  }
}

TEST(Strategies, ThresholdsInBytesDoNotHoldOnChainsWhoseSizesHaveNoUnit) {
  for (const char *name : {"autoswap", "mixed"}) {
    int offloading = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Chain c = test::randomChain(seed, 8);
      Options options;
      if (name[0] == 'm') // else other strategies' plans take over
        options.knobs["recompute"] = "0";
      const ChainAnswer answer = runStrategy(c, chainPeak(c) * 0.8, Release::Whole, name, options);
      if (const auto *plan = std::get_if<ChainPlan>(&answer))
        offloading += std::count(plan->actions.begin(), plan->actions.end(), Action::Offload) > 0;
    }
    EXPECT_GT(offloading, 10) << name;
  }
}

TEST(Strategies, UnknownNameAndKnobAreRefusedByName) {
  const Problem p = randomProblem(1);
  const Answer name = runStrategy(p, 1 << 30, "gready");
  ASSERT_TRUE(std::holds_alternative<Refused>(name));
  EXPECT_NE(std::get<Refused>(name).reason.find("'gready'"), std::string::npos);
  Options options;
  options.knobs["depth"] = "3";
  const Answer knob = runStrategy(p, 1 << 30, "greedy", options);
  ASSERT_TRUE(std::holds_alternative<Refused>(knob));
  EXPECT_NE(std::get<Refused>(knob).reason.find("'depth'"), std::string::npos);
}

} // namespace sluice::planner
