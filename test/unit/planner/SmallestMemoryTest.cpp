// SPDX-License-Identifier: Apache-2.0
// What a refusal says: the memory that it names is enough for the same strategy, a byte less is not, and how much was
// asked for makes no difference.
#include "passes/planner/Bounds.h"
#include "passes/planner/Program.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Registry.h"
#include "passes/strategies/Strategies.h"
#include "passes/strategies/WithinBudget.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sluice::planner;

/// The memory that a refusal of so much names; 0 where there is a plan.
static double named(const Chain &chain, double memory, const std::string &name, Release release = Release::Whole) {
  const ChainAnswer answer = runStrategy(chain, memory, release, name);
  const auto *none = std::get_if<ChainInfeasible>(&answer);
  return none ? none->smallestMemory : 0;
}

TEST(SmallestMemory, OfCapuchinCountsWhatItOnlySwaps) {
  Chain chain;
  chain.uF = chain.uB = {5, 5, 5};
  chain.x = chain.y = {10, 10, 10, 1};
  chain.exF = chain.exB = chain.saved = {0, 0, 0};
  chain.bandwidth = 1e9;
  // All copies hide, and B_1 needs x_1, x_2, y_1 and y_2, nothing else.
  const ChainProblem lifted(chain, true);
  const Answer answer = runStrategy(lifted.problem, 30, "capuchin");
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  EXPECT_EQ(std::get<Infeasible>(answer).smallestMemory, 40);
}

TEST(SmallestMemory, OfHascoetIsTheSameWhoeverAsks) {
  // The last ones are fetched again sooner than they are needed, which takes 68 bytes, whenever they leave.
  Chain chain;
  chain.uF = {13, 15, 9, 4};
  chain.uB = {13, 17, 3, 8};
  chain.x = {9, 19, 1, 22, 21};
  chain.y = {8, 10, 6, 5, 18};
  chain.exF = {3, 2, 8, 2};
  chain.exB = {3, 5, 1, 1};
  chain.saved = {0, 0, 0, 0};
  chain.kinds = {sluice::OpKind::Conv, sluice::OpKind::Norm, sluice::OpKind::Pool, sluice::OpKind::Pool};
  chain.bandwidth = 0.1;
  for (double memory : {0.0, 40.0, 50.0, 67.0})
    EXPECT_EQ(named(chain, memory, "hascoet"), 68) << memory;
  EXPECT_EQ(named(chain, 68, "hascoet"), 0);
}

/// Where its program has no plan, checkmate names what keeping everything takes.
TEST(SmallestMemory, OfCheckmateIsNeverNothing) {
  Chain chain;
  chain.uF = {1, 2, 3, 4};
  chain.uB = {2, 3, 3, 5};
  chain.x = {5, 6, 7, 8, 1};
  chain.y = {5, 6, 7, 8, 3037000500};
  chain.exF = {0, 1, 0, 1};
  chain.exB = {1, 0, 1, 0};
  chain.saved = {1, 0, 2, 0};
  chain.kinds = {sluice::OpKind::Conv, sluice::OpKind::Activation, sluice::OpKind::Norm, sluice::OpKind::Pool};
  chain.bandwidth = 2;
  for (const char *strategy : {"checkmate", "mixed"})
    EXPECT_GE(named(chain, 30, strategy), 3037000500) << strategy;
}

TEST(SmallestMemory, HasABoundWhereSizesAreFractions) {
  for (unsigned seed = 0; seed < test::instances(60); ++seed) {
    Chain chain = test::randomChain(seed, static_cast<int>(seed % 4));
    for (auto *list : {&chain.x, &chain.y, &chain.exF, &chain.exB, &chain.saved})
      for (double &size : *list)
        size *= 0.1; // has no finite binary form
    if (seed % 3 == 0)
      chain.bandwidth = 0;
    for (const char *name :
         {"keep", "autoswap", "capuchin", "chen", "dtr", "greedy", "rotor", "superneurons", "tflms"}) {
      SCOPED_TRACE(std::string(name) + ", chain " + std::to_string(seed));
      const double smallest = named(chain, 0, name);
      if (smallest == 0)
        continue;
      const ChainAnswer answer = runStrategy(chain, smallest, Release::Whole, name);
      ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer)) << smallest;
      EXPECT_LE(strategyBound(chain, smallest, name) * (1 - 1e-9), std::get<ChainPlan>(answer).timeline.makespan);
    }
  }
}

static void expectSmallest(const Chain &chain, double memory, const std::string &name, Release release) {
  const double smallest = named(chain, memory, name, release);
  if (smallest == 0) // a plan, or a strategy that chains have nothing for
    return;
  EXPECT_GT(smallest, memory);
  const ChainAnswer answer = runStrategy(chain, smallest, release, name);
  ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer)) << smallest;
  EXPECT_LE(std::get<ChainPlan>(answer).timeline.peakBytes, smallest);
  EXPECT_EQ(named(chain, smallest - 1, name, release), smallest);
}

TEST(SmallestMemory, IsTheLeastThatTheStrategyAnswersWith) {
  for (unsigned seed = 0; seed < test::instances(48); ++seed) {
    const Chain chain = test::randomChain(seed, 1 + static_cast<int>(seed % 7));
    const Release release = seed / 7 % 2 == 0 ? Release::Whole : Release::Partial;
    for (const Strategy &strategy : strategies()) {
      if ((strategy.takesOver && seed % 4 != 0) || (strategy.name == "checkmate" && chain.uF.size() > 4))
        continue; // one asks all the others, one solves integer programs
      for (double share : {0.0, 0.7}) {
        SCOPED_TRACE(strategy.name + ", chain " + std::to_string(seed) + ", share " + std::to_string(share));
        expectSmallest(chain, std::floor(share * chainPeak(chain)), strategy.name, release);
      }
    }
  }
}

/// Below the floor nobody looks for a plan, from it on they do.
TEST(SmallestMemory, OfProgramsIsTheSameBelowTheFloorAndAboveIt) {
  const Options options = everythingAllowed({});
  for (unsigned seed = 0; seed < test::instances(20); ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 4 + static_cast<int>(seed % 5);
    const Problem problem = test::randomProblem(seed, shape);
    const Bytes floor = memoryFloor(problem);
    for (const std::string &name : strategyNames()) {
      SCOPED_TRACE(name + ", problem " + std::to_string(seed));
      const Answer below = runStrategy(problem, floor - 1, name, options);
      ASSERT_TRUE(std::holds_alternative<Infeasible>(below));
      const Bytes smallest = std::get<Infeasible>(below).smallestMemory;
      EXPECT_GE(smallest, floor);
      const Answer at = runStrategy(problem, floor, name, options);
      if (const auto *none = std::get_if<Infeasible>(&at)) {
        EXPECT_EQ(none->smallestMemory, smallest);
      }
      const Answer enough = runStrategy(problem, smallest, name, options);
      EXPECT_TRUE(std::holds_alternative<Plan>(enough)) << smallest;
    }
  }
}

static Bytes namedBy(const Answer &answer) {
  const auto *none = std::get_if<Infeasible>(&answer);
  return none ? none->smallestMemory : 0;
}

TEST(SmallestMemory, IsLookedForOnceWherePlanningIsRepeated) {
  const Problem p = test::randomProblem(3);
  KnownPlans known;
  Options options;
  options.known = &known;
  ASSERT_GT(namedBy(runStrategy(p, p.base, "greedy", options)), p.base);
  ASSERT_EQ(known.least.count("greedy"), 1u);
  known.least["greedy"] = Infeasible{p.base + 12345, "told"};
  EXPECT_EQ(namedBy(runStrategy(p, p.base, "greedy", options)), p.base + 12345);
}

/// Of a strategy that counts how often it is asked for a plan.
static PlanFunction counted = nullptr;
static int plansAsked = 0;
static Answer countedPlan(const Problem &problem, Bytes memory, const Options &options) {
  ++plansAsked;
  return counted(problem, memory, options);
}

/// Below the floor two plans name the smallest memory, once for all budgets; above it at most eight are tried.
TEST(SmallestMemory, RefusalsAskForAFewPlans) {
  int refused = 0;
  for (const Strategy &strategy : strategies()) {
    if (!strategy.plan || strategy.takesOver)
      continue;
    Strategy counting = strategy;
    counted = strategy.plan;
    counting.plan = countedPlan;
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(strategy.name + ", problem " + std::to_string(seed));
      const Problem p = test::randomProblem(seed);
      KnownPlans known;
      Options options = everythingAllowed({});
      options.known = &known;
      const auto asked = [&](Bytes budget, Bytes &named) {
        plansAsked = 0;
        named = namedBy(Planner(p, counting, options).run(budget));
        return plansAsked;
      };
      Bytes smallest = 0, named = 0;
      EXPECT_LE(asked(p.base, smallest), 2);
      EXPECT_EQ(asked(p.base, named), 0);
      EXPECT_EQ(named, smallest);
      if (smallest == 0)
        continue;
      EXPECT_LE(asked(smallest - p.alignment, named), 8);
      EXPECT_EQ(named, smallest);
      ++refused;
    }
  }
  EXPECT_GE(refused, 50);
}

TEST(SmallestMemory, IsTheSameForEveryBudgetNearTheFloor) {
  for (unsigned seed = 0; seed < test::instances(20); ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 4 + seed % 16;
    const Problem p = test::randomProblem(seed, shape);
    const Bytes floor = memoryFloor(p);
    for (const char *name : {"greedy", "dtr", "capuchin", "superneurons", "pofo", "mixed"}) {
      const Bytes named = namedBy(runStrategy(p, p.base, name));
      if (named == 0)
        continue;
      SCOPED_TRACE(std::string(name) + ", problem " + std::to_string(seed));
      const Bytes near = p.base + (floor - p.base) / 2 * 3 - p.alignment;
      for (Bytes budget : {floor, (floor + named) / 2, named - p.alignment})
        if (budget < std::min(named, near)) {
          EXPECT_EQ(namedBy(runStrategy(p, budget, name)), named) << budget;
        }
      EXPECT_EQ(namedBy(runStrategy(p, named, name)), 0) << "it works";
    }
  }
}

/// Plans to compare must cost little, above all where there is none.
TEST(SmallestMemory, SketchesDoNotLookForIt) {
  Strategy counting = **findStrategy("mixed", {});
  counted = counting.plan;
  counting.plan = countedPlan;
  int made = 0;
  for (unsigned seed = 0; seed < test::instances(20); ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 10 + seed % 10;
    const Problem p = test::randomProblem(seed, shape);
    const Bytes floor = memoryFloor(p), keep = peakBytes(p, expand(p, keepPlan(p)));
    Options options;
    options.sketch = true;
    const auto sketch = [&](Bytes budget) {
      plansAsked = 0;
      return Planner(p, counting, options).sketch(budget);
    };
    EXPECT_EQ(namedBy(sketch(floor - p.alignment)), floor);
    EXPECT_EQ(plansAsked, 0);
    const Bytes budget = floor + (keep - floor) * 2 / 3;
    const Answer answer = sketch(budget);
    EXPECT_LE(plansAsked, 3);
    if (const Plan *plan = std::get_if<Plan>(&answer)) {
      EXPECT_LE(plan->arenaBytes, budget);
      ++made;
    }
  }
  EXPECT_GE(made, 10);
}
