// SPDX-License-Identifier: Apache-2.0
// vDNN++'s tables (IPDPS 2019) follow from its rules: iteration times on a profile that is calibrated from two of its
// numbers, and pools from the calls of one iteration. docs/reproduction has all entries.
#include "passes/strategies/Registry.h"
#include "tools/bench/reproduce/VdnnPool.h"
#include "tools/bench/reproduce/VdnnProfile.h"

#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

using namespace planner;

double milliseconds(const Chain &chain, const char *mode, const char *synchronous) {
  Options options;
  options.knobs = {{"mode", mode}, {"synchronous", synchronous}};
  const ChainAnswer answer = runStrategy(chain, 1e15, Release::Whole, "vdnnpp", options);
  const auto *plan = std::get_if<ChainPlan>(&answer);
  return plan ? 1000 * plan->timeline.makespan : 0;
}

TEST(VdnnTables, IterationsOfTableFour) {
  const struct {
    const char *network, *mode;
    double vdnn, vdnnpp;
  } rows[] = {{"vgg116", "2", 3055, 3018},
              {"vgg116", "1", 3170, 3129},
              {"vgg116", "3", 2717, 2468},
              {"vgg191", "2", 5139, 5097},
              {"vgg191", "1", 5244, 5209}};
  for (const auto &row : rows) {
    const Chain chain = layerChain(row.network, fastestKernelProfile(), 32, 224);
    EXPECT_NEAR(milliseconds(chain, row.mode, "1"), row.vdnn, 0.1 * row.vdnn) << row.network << row.mode;
    EXPECT_NEAR(milliseconds(chain, row.mode, "0"), row.vdnnpp, 0.1 * row.vdnnpp) << row.network << row.mode;
  }
}

/// Fast and slow convolutions in turn: copies that outlive their layer win back half of the wait.
TEST(VdnnTables, ConstructedNetworkOfTableThree) {
  const Chain chain = layerChain("stacked", smallestKernelProfile(), 64, 224);
  EXPECT_NEAR(1000 * chainCompute(chain), 2091, 209);
  EXPECT_NEAR(milliseconds(chain, "2", "1"), 2491, 249);
  EXPECT_NEAR(milliseconds(chain, "2", "0"), 2261, 226);
}

constexpr double mebi = 1048576;

TEST(VdnnTables, AggregatesAgreeWithThePaper) {
  const struct {
    const char *network;
    int batch;
    const char *mode;
    double paper, within; // MiB
  } rows[] = {
      {"alexnet", 128, "conv", 710, 2},  {"alexnet", 128, "all", 667, 2},     {"vgg16", 16, "none", 1853, 2},
      {"vgg16", 16, "conv", 1323, 2},    {"vgg16", 16, "all", 1323, 2},       {"alexnet", 256, "conv", 1184, 15},
      {"alexnet", 256, "all", 1100, 15}, {"alexnet", 256, "aconv", 1184, 15}, {"vgg16", 64, "conv", 3715, 15},
      {"vgg16", 64, "all", 3715, 15},    {"vgg16", 64, "aconv", 4010, 15}};
  for (const auto &row : rows)
    for (bool derivativeFirst : {false, true})
      EXPECT_NEAR(poolLoad(vdnnRequests({row.network, row.batch, row.mode, derivativeFirst})) / mebi, row.paper,
                  row.within)
          << row.network << " " << row.mode;
}

TEST(VdnnTables, PoolsOfTablesTwoAndFive) {
  const VdnnIteration alexnet{"alexnet", 128, "conv"}, vgg{"vgg16", 16, "all"};
  EXPECT_NEAR(grownPools(vdnnRequests(alexnet)) / mebi, 1121 - 180, 1); // 180 MiB are no pool's
  EXPECT_NEAR(grownPools(vdnnRequests(vgg)) / mebi, 1697 - 180, 1);
  const double paper[] = {1452, 1476, 1427, 1465};
  for (int v = 0; v < 4; ++v) {
    const VdnnIteration iteration{"alexnet", 256, "conv", v % 2 == 1, true, v >= 2};
    const std::optional<Bytes> pool = searchPool(vdnnRequests(iteration), Bytes(1) << 40);
    ASSERT_TRUE(pool);
    EXPECT_NEAR(*pool / mebi, paper[v], 9) << v;
  }
}

} // namespace
} // namespace sluice::bench
