// SPDX-License-Identifier: Apache-2.0
// What a refusal says: the memory that it names is enough for the same strategy, a byte less is not, and how much was
// asked for makes no difference.
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Registry.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"

#include <gtest/gtest.h>

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
