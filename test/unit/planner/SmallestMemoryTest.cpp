// SPDX-License-Identifier: Apache-2.0
// What a refusal says: the least memory that the same strategy finds a plan for.
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Registry.h"

#include <gtest/gtest.h>

using namespace sluice::planner;

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
