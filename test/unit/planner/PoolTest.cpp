// SPDX-License-Identifier: Apache-2.0
// The examples of vDNN++'s paper (IPDPS 2019, Sections III-B and IV-B): what an allocator's pool must hold.
#include "passes/planner/Pool.h"

#include <gtest/gtest.h>

namespace sluice::planner {
namespace {

/// Lives from the request `lower` up to the request `upper`.
PackItem item(const char *id, int lower, int upper, Bytes size, bool high = false) {
  PackItem made{id, lower, upper, size, 1, {}};
  made.high = high;
  return made;
}

/// A1(5), A2(2), A3(1), D2, A4(1), D1, D3, A5(8). With 9, A4 takes A2's place, so that all below A5 is free but one
/// unit at the end; with 11, best fit puts it after A3.
TEST(Pool, LargerPoolsMayFail) {
  const auto requests = poolRequests(
      {item("1", 0, 5, 5), item("2", 1, 3, 2), item("3", 2, 6, 1), item("4", 4, 9, 1), item("5", 7, 9, 8)}, false);
  EXPECT_EQ(poolLoad(requests), 9);
  EXPECT_EQ(poolLacking(requests, 9), 0);
  EXPECT_GT(poolLacking(requests, 11), 0);
  EXPECT_EQ(searchPool(requests, 100), 9);
}

/// Four blocks of requests, each of its own size, one of every block freed after each: 12 units live at most, and no
/// placement at all has 12 (in thirds of the paper's unit).
TEST(Pool, SomeFragmentationIsUnavoidable) {
  // a11 a12 a13 a14 d1 a22 a23 a24 d2 a33 a34 d3 a44 d4, aij freed by dj.
  const std::vector<PackItem> items = {
      item("11", 0, 4, 3),  item("12", 1, 8, 3),  item("13", 2, 11, 3), item("14", 3, 13, 3),  item("22", 5, 8, 1),
      item("23", 6, 11, 1), item("24", 7, 13, 1), item("33", 9, 11, 2), item("34", 10, 13, 2), item("44", 12, 13, 6)};
  const Packing best = pack(items);
  EXPECT_EQ(best.load, 12);
  EXPECT_TRUE(best.optimal);
  EXPECT_GT(best.height, 12);
  const auto requests = poolRequests(items, false);
  const std::optional<Bytes> pool = searchPool(requests, 100);
  ASSERT_TRUE(pool);
  EXPECT_GE(*pool, best.height);
  EXPECT_GT(grownPools(requests), best.load);
}

/// Two blocks of 4 with one of 2 between: when the outer ones are free, 8 free units hold no request of 8 in one piece.
TEST(Pool, GrowsByWhatIsLacking) {
  const std::vector<PackItem> items = {item("a", 0, 3, 4), item("b", 1, 6, 2), item("c", 2, 4, 4), item("d", 5, 6, 8)};
  const auto requests = poolRequests(items, false);
  EXPECT_EQ(poolLoad(requests), 10);
  EXPECT_EQ(poolLacking(requests, 10), 4);
  EXPECT_EQ(searchPool(requests, 100), 14);
  EXPECT_EQ(searchPool(requests, 13), std::nullopt);
  EXPECT_EQ(grownPools(requests), 18); // a second pool of 8, which cannot join what is free
}

/// The same with the lasting block at the high end: nothing is fragmented.
TEST(Pool, HighEndKeepsLastingBlocksAway) {
  const std::vector<PackItem> items = {item("a", 0, 3, 4), item("b", 1, 6, 2, true), item("c", 2, 4, 4),
                                       item("d", 5, 6, 8)};
  EXPECT_EQ(searchPool(poolRequests(items, true), 100), 10);
  EXPECT_EQ(searchPool(poolRequests(items, false), 100), 14);
}

TEST(Pool, SizesAreRoundedToAlignment) {
  PackItem odd = item("a", 0, 1, 513);
  odd.alignment = 512;
  EXPECT_EQ(searchPool(poolRequests({odd, item("b", 0, 1, 0)}, false), 1 << 20), 1024);
}

} // namespace
} // namespace sluice::planner
