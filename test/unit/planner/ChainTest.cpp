// SPDX-License-Identifier: Apache-2.0
// Chains: the simulator against its checker, dynprog against every subset, and examples with hand arithmetic.
#include "passes/planner/ChainSimulate.h"
#include "passes/strategies/DynProg.h"
#include "passes/strategies/Registry.h"
#include "passes/strategies/Stages.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "tools/bench/reproduce/Networks.h"

#include <gtest/gtest.h>

namespace sluice::planner {

using test::randomChain;

static std::vector<bool> subset(int bits, size_t n) {
  std::vector<bool> set(n);
  for (size_t i = 0; i < n; ++i)
    set[i] = bits >> i & 1;
  return set;
}

/// Two equal stages, everything 10 bytes, 10 bytes a second.
static Chain twoStages() {
  Chain c;
  c.uF = c.uB = {2, 2};
  c.exF = c.exB = c.saved = {0, 0};
  c.x = c.y = {10, 10, 0};
  c.bandwidth = 10;
  return c;
}

TEST(Chain, PeakAndFloorByHand) {
  const Chain c = twoStages();
  // B_0 holds x_0, x_1, y_0, y_1; F_1 holds x_0, x_1; B_1: x_0, x_1, y_1.
  EXPECT_EQ(chainPeak(c), 40);
  EXPECT_EQ(chainFloor(c), 40);
  EXPECT_EQ(chainCompute(c), 8);
}

TEST(Chain, OffloadHidesBehindCompute) {
  Chain c = twoStages();
  c.y = {0, 10, 0};
  // Now B_0 holds 30 bytes and B_1 30; with x_0 gone B_1 holds 20. The copy of x_0 takes 1 of F_0's 2 seconds, its
  // return 1 of B_1's 2; but memory 30 is needed by B_0 anyway, so nothing has to move.
  EXPECT_EQ(chainPeak(c), 30);
  const auto timeline = simulateChain(c, 30, {true, false}, Release::Whole);
  ASSERT_TRUE(timeline);
  EXPECT_DOUBLE_EQ(timeline->makespan, 8);
  EXPECT_EQ(messageOf(checkChain(c, 30, {true, false}, Release::Whole, *timeline)), "");
}

TEST(Chain, CheckerSeesTamperedTimelines) {
  const Chain c = randomChain(3, 5);
  const std::vector<bool> set(6, true);
  const double memory = chainNeed(c, set);
  const ChainTimeline good = *simulateChain(c, memory, set, Release::Whole);
  ASSERT_EQ(messageOf(checkChain(c, memory, set, Release::Whole, good)), "");
  int caught = 0, moved = 0;
  for (size_t k = 0; k < good.events.size(); ++k) {
    ChainTimeline bad = good;
    const Seconds shift = -0.5 * (bad.events[k].end - bad.events[k].start);
    if (shift == 0)
      continue;
    bad.events[k].start += shift;
    bad.events[k].end += shift;
    ++moved;
    caught += !messageOf(checkChain(c, memory, set, Release::Whole, bad)).empty();
  }
  // At the floor nearly everything waits for something; copies in that already hide may start earlier.
  EXPECT_GE(caught, moved * 3 / 4);
  ChainTimeline missing = good;
  missing.events.pop_back();
  EXPECT_NE(messageOf(checkChain(c, memory, set, Release::Whole, missing)), "");
  EXPECT_NE(messageOf(checkChain(c, memory * 0.9, set, Release::Whole, good)), "");
}

TEST(Chain, EverySubsetPassesTheCheckerInBothReleases) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    const int last = 1 + seed % 5;
    const Chain c = randomChain(seed, last);
    for (int bits = 0; bits < 1 << (last + 1); ++bits)
      for (Release release : {Release::Whole, Release::Partial})
        for (double extra : {0.0, 0.2, 0.7}) {
          const auto set = subset(bits, last + 1);
          const double need = chainNeed(c, set), memory = need + extra * (chainPeak(c) - need);
          const auto timeline = simulateChain(c, memory, set, release);
          ASSERT_TRUE(timeline) << "seed " << seed << " set " << bits;
          ASSERT_EQ(messageOf(checkChain(c, memory, set, release, *timeline)), "")
              << "seed " << seed << " set " << bits << " memory " << memory
              << (release == Release::Whole ? " whole" : " partial");
          ASSERT_LE(timeline->peakBytes, memory + byteSlack(c)) << "seed " << seed << " set " << bits;
          EXPECT_FALSE(simulateChain(c, need - 0.001, set, release));
        }
  }
}

TEST(Chain, DynProgWithPartialReleaseEqualsTheBestSubset) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const int last = 1 + seed % 6;
    const Chain c = randomChain(seed, last);
    const double floor = chainFloor(c), memory = floor + (seed % 7) / 6.0 * (chainPeak(c) - floor);
    Seconds best = std::numeric_limits<Seconds>::infinity();
    for (int bits = 0; bits < 1 << (last + 1); ++bits)
      if (const auto timeline = simulateChain(c, memory, subset(bits, last + 1), Release::Partial))
        best = std::min(best, timeline->makespan);
    bool exact = false;
    const auto sets = dynprogSets(c, memory, 1, 0, exact);
    ASSERT_FALSE(sets.empty());
    ASSERT_TRUE(exact);
    ASSERT_NEAR(sets[0].makespan, best, 1e-9 * best) << "seed " << seed << " memory " << memory;
    const ChainAnswer answer = runStrategy(c, memory, Release::Partial, "dynprog");
    ASSERT_NEAR(std::get<ChainPlan>(answer).timeline.makespan, best, 1e-9 * best) << "seed " << seed;
    EXPECT_GE(best, chainBound(c, memory) * (1 - 1e-9));
  }
}

TEST(Chain, VdnnppIsNeverSlowerThanItsSynchronousProtocol) {
  int faster = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Chain c = randomChain(seed, 3 + seed % 9);
    Options synchronous;
    synchronous.knobs["synchronous"] = "1";
    const ChainAnswer a = runStrategy(c, chainPeak(c), Release::Whole, "vdnnpp"),
                      b = runStrategy(c, chainPeak(c), Release::Whole, "vdnnpp", synchronous);
    const Seconds fast = std::get<ChainPlan>(a).timeline.makespan, slow = std::get<ChainPlan>(b).timeline.makespan;
    ASSERT_LE(fast, slow * (1 + 1e-12)) << "seed " << seed;
    faster += fast < slow;
  }
  EXPECT_GT(faster, 20); // the paper's point: a layer need not wait for its own copy
}

/// The most stages that are planned, at a memory where most of them wait for copies, which took minutes.
TEST(Chain, VdnnppPlansLongChains) {
  const Chain c = randomChain(3, static_cast<int>(test::instances(10'000)) - 1);
  const double least = std::get<ChainInfeasible>(runStrategy(c, 0, Release::Whole, "vdnnpp")).smallestMemory;
  const ChainAnswer answer = runStrategy(c, least, Release::Whole, "vdnnpp");
  ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer));
  EXPECT_LE(std::get<ChainPlan>(answer).timeline.peakBytes, least);
}

TEST(Chain, SizesThatAreNoIntegersLoseNoPlan) {
  Chain c = randomChain(5, 4);
  for (auto *list : {&c.x, &c.y, &c.exF, &c.exB, &c.saved})
    for (double &v : *list)
      v *= 0.1; // 0.1 has no finite binary form
  for (const char *name : {"keep", "greedy", "dynprog", "rotor", "chen", "mixed", "capuchin"}) {
    const ChainAnswer answer = runStrategy(c, chainPeak(c), Release::Whole, name);
    ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer)) << name;
    EXPECT_NEAR(std::get<ChainPlan>(answer).timeline.makespan, chainCompute(c), 1e-9) << name;
  }
}

TEST(Chain, EveryStrategyIsSoundOnChains) {
  for (unsigned seed = 0; seed < test::instances(120); ++seed) {
    const Chain c = randomChain(seed, seed % 12);
    for (const std::string &name : strategyNames())
      for (Release release : {Release::Whole, Release::Partial})
        for (double share : {0.3, 0.6, 0.9, 1.0}) {
          SCOPED_TRACE("seed " + std::to_string(seed) + " " + name + " share " + std::to_string(share));
          if (name == "checkmate" && c.uF.size() > 4)
            continue; // an integer program: small instances only
          double memory = chainPeak(c) * share;
          ChainAnswer answer = runStrategy(c, memory, release, name);
          if (std::holds_alternative<Refused>(answer))
            continue;
          if (auto *none = std::get_if<ChainInfeasible>(&answer)) {
            ASSERT_GT(none->smallestMemory, memory);
            memory = none->smallestMemory;
            answer = runStrategy(c, memory, release, name);
          }
          ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer));
          EXPECT_LE(std::get<ChainPlan>(answer).timeline.peakBytes, memory);
          EXPECT_GE(std::get<ChainPlan>(answer).timeline.makespan, strategyBound(c, memory, name) * (1 - 1e-9));
        }
  }
}

TEST(Chain, TensorsOfNetworksMoveAloneAndDynProgStaysNearTheBound) {
  const Profile profile = *loadProfile("v100-pcie");
  bench::NetworkOptions options;
  options.encodings = false;
  options.nested = true;
  // ResNet-34 needs exchanges for it.
  for (auto [name, share] : {std::pair("resnet50", 0.0), {"inception_v3", 0.0}, {"resnet34", 0.2}}) {
    const Problem problem = bench::network(name, profile, 32, 224, options);
    const Stages stages(problem);
    const Chain units = stages.chain(), c = stages.tensorChain();
    EXPECT_EQ(messageOf(checkChain(c)), "");
    EXPECT_EQ(chainPeak(c), chainPeak(units)) << name;
    EXPECT_LE(chainFloor(c), chainFloor(units)) << name;
    EXPECT_NEAR(chainCompute(c), chainCompute(units), 1e-12) << name;
    const double memory = chainFloor(c) + share * (chainPeak(c) - chainFloor(c));
    const ChainAnswer answer = runStrategy(c, memory, Release::Whole, "dynprog");
    ASSERT_TRUE(std::holds_alternative<ChainPlan>(answer)) << name;
    EXPECT_LE(std::get<ChainPlan>(answer).timeline.makespan, 1.2 * chainBound(c, memory)) << name << " " << share;
  }
}

// Chains on which the best of 30 sampled states a boundary is up to 6 % after the best subset.
TEST(Chain, DynProgWithPartialReleaseReachesTheBestSubsetBehindASample) {
  int missed = 0;
  for (unsigned seed : {48, 53, 61, 78, 85, 112, 123, 127, 130, 135, 144, 148}) {
    const int last = 11;
    const Chain c = randomChain(seed, last);
    const double memory = chainFloor(c) + (chainPeak(c) - chainFloor(c)) * (0.1 + 0.1 * (seed % 7));
    Seconds best = std::numeric_limits<Seconds>::infinity();
    for (int bits = 0; bits < 1 << (last + 1); ++bits)
      if (const auto timeline = simulateChain(c, memory, subset(bits, last + 1), Release::Partial))
        best = std::min(best, timeline->makespan);
    bool exact = true;
    missed += dynprogSets(c, memory, 1, 30, exact)[0].makespan > best * (1 + 1e-9);
    EXPECT_FALSE(exact);
    Options few;
    few.knobs = {{"limit", "30"}};
    const ChainAnswer answer = runStrategy(c, memory, Release::Partial, "dynprog", few);
    EXPECT_NEAR(std::get<ChainPlan>(answer).timeline.makespan, best, 1e-9 * best) << "seed " << seed;
  }
  EXPECT_GT(missed, 6);
}

TEST(Chain, ExchangesMakeDynProgFasterAndNeverSlower) {
  int faster = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Chain c = randomChain(seed, 4 + seed % 9);
    const double memory = chainFloor(c) + (seed % 5) / 5.0 * (chainPeak(c) - chainFloor(c));
    Options few; // the sets that are simulated may miss the best one
    few.knobs = {{"sets", "1"}, {"exchanges", "0"}};
    const ChainAnswer a = runStrategy(c, memory, Release::Whole, "dynprog", few);
    few.knobs["exchanges"] = "1";
    const ChainAnswer b = runStrategy(c, memory, Release::Whole, "dynprog", few);
    const Seconds before = std::get<ChainPlan>(a).timeline.makespan, after = std::get<ChainPlan>(b).timeline.makespan;
    ASSERT_LE(after, before) << "seed " << seed;
    faster += after < before;
  }
  EXPECT_GT(faster, 10);
}

// The solver presolves this program to one that is not optimal, of which it would tell standard output.
TEST(Chain, NothingButTheAnswerIsPrinted) {
  Chain c;
  c.uF = {4.95, 6.4, 2.83, 1.87};
  c.uB = {2.86, 0.25, 7.08, 8.33};
  c.x = {6.57, 2.95, 3.58, 3.65, 0.06};
  c.y = {2.92, 5.45, 4.16, 2.33, 0.79};
  c.exF = {1.56, 1.78, 1.74, 0.94};
  c.exB = {0.71, 0.37, 0.42, 0.4};
  c.saved = {0, 0, 0, 0};
  c.bandwidth = 3.31;
  testing::internal::CaptureStdout();
  runStrategy(c, 18.7, Release::Whole, "checkmate");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

} // namespace sluice::planner
