// SPDX-License-Identifier: Apache-2.0
// vDNN++'s published figures that follow from its rules alone, and its search on the paper's own example.
#include "tools/bench/reproduce/VdnnPool.h"

#include <gtest/gtest.h>

namespace sluice::bench {

TEST(VdnnPool, AggregatesAgreeWithThePaper) {
  const struct {
    const char *network;
    int batch;
    const char *mode;
    double paper, within; // MiB
  } rows[] = {{"alexnet", 128, "conv", 710, 2},    {"alexnet", 128, "all", 667, 2},
              {"vgg16", 16, "conv", 1323, 2},      {"vgg16", 16, "all", 1323, 2},
              {"alexnet", 256, "conv", 1184, 15},  {"alexnet", 256, "all", 1100, 15},
              {"alexnet", 256, "aconv", 1184, 15}, {"vgg16", 64, "conv", 3715, 15},
              {"vgg16", 64, "all", 3715, 15},      {"vgg16", 64, "aconv", 4010, 15}};
  for (const auto &row : rows)
    for (bool derivativeFirst : {false, true}) {
      const auto events = vdnnIteration(row.network, row.batch, row.mode, derivativeFirst);
      EXPECT_NEAR(static_cast<double>(aggregateOf(events)) / 1048576.0, row.paper, row.within)
          << row.network << " " << row.mode;
    }
}

/// A hole of 2 units between two blocks takes no request of 3: the pool grows by what is lacking beside the largest
/// free block, 1 unit at the top.
TEST(VdnnPool, PoolGrowsByWhatTheFailingRequestLacks) {
  const Bytes unit = 512;
  const std::vector<PoolEvent> events = {
      {1, 2 * unit, false, false}, {2, 2 * unit, false, false}, {1, 0, false, false}, {3, 3 * unit, false, false}};
  EXPECT_EQ(aggregateOf(events), 5 * unit);
  EXPECT_EQ(poolFor(events, HighEnd::Nobody), 7 * unit);
}

} // namespace sluice::bench
