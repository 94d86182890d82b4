// SPDX-License-Identifier: Apache-2.0
// Packing: MiniMalloc's challenging instances, exhaustive comparison on tiny ones, alignment, fixed items, bad input.
#include "passes/planner/Pack.h"
#include "passes/planner/Files.h"
#include "test/unit/MessageOf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>

namespace sluice::planner {

static std::vector<PackItem> instance(const std::string &name) {
  std::ifstream file("test/data/minimalloc/" + name + ".1048576.csv");
  std::ostringstream text;
  text << file.rdbuf();
  return *parseItems(text.str());
}

TEST(Pack, MiniMallocInstancesFitTheirCapacity) {
  for (const char *name : {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"}) {
    const std::vector<PackItem> items = instance(name);
    PackOptions options;
    options.goodEnough = name == std::string("D") || name == std::string("J") ? 1029120 : 1048576; // both are loose
    options.nodeLimit = 1'000'000;
    const Packing packing = pack(items, options);
    EXPECT_LE(packing.height, options.goodEnough) << name;
    EXPECT_EQ(messageOf(checkPacking(items, packing)), "") << name;
  }
}

/// Smallest height by trying every order with lowest-fit placement: some order reaches the optimum.
static Bytes exhaustive(const std::vector<PackItem> &items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  Bytes best = std::numeric_limits<Bytes>::max();
  do {
    std::vector<Bytes> offset(items.size(), -1);
    Bytes height = 0;
    for (int i : order) {
      Bytes at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < items.size(); ++j)
          if (offset[j] >= 0 && items[i].lower < items[j].upper && items[j].lower < items[i].upper &&
              at < offset[j] + items[j].size && offset[j] < at + items[i].size) {
            at = (offset[j] + items[j].size + items[i].alignment - 1) / items[i].alignment * items[i].alignment;
            moved = true;
          }
      }
      offset[i] = at;
      height = std::max(height, at + items[i].size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Pack, SearchFindsTheOptimumOfTinyInstances) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    std::vector<PackItem> items;
    for (int i = 0; i < 6; ++i) {
      PackItem item;
      item.id = std::to_string(i);
      item.lower = random() % 6;
      item.upper = item.lower + 1 + random() % 4;
      item.size = 1 + random() % 9;
      item.alignment = round % 3 == 0 ? 1 + random() % 4 : 1;
      items.push_back(item);
    }
    const Packing packing = pack(items);
    ASSERT_EQ(messageOf(checkPacking(items, packing)), "");
    ASSERT_EQ(packing.height, exhaustive(items)) << "round " << round;
  }
}

/// Items of uneven sizes and lifetimes, which no order packs at their load.
static std::vector<PackItem> uneven(int count) {
  std::mt19937 random(11);
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    const int64_t lower = random() % 200;
    items.push_back({std::to_string(i), lower, lower + 1 + int64_t(random() % 60), 1 + Bytes(random() % 97), 1, {}});
  }
  return items;
}

TEST(Pack, SearchLooksAtNoMoreItemsThanItMay) {
  const std::vector<PackItem> items = uneven(300);
  PackOptions options;
  options.nodeLimit = 100'000;
  options.workLimit = 50'000;
  const Packing packing = pack(items, options);
  EXPECT_EQ(messageOf(checkPacking(items, packing)), "");
  EXPECT_GT(packing.work, 0);
  EXPECT_LT(packing.work, 150'000); // the last node may look at all items of all sections
}

TEST(Pack, InstancesTooLargeForTheSearchAreStillPacked) {
  const std::vector<PackItem> items = uneven(9000);
  const Packing packing = pack(items, {0, 1'000'000'000});
  EXPECT_EQ(messageOf(checkPacking(items, packing)), "");
  EXPECT_EQ(packing.nodes, 0);
  EXPECT_GT(packing.height, packing.load);
}

TEST(Pack, FixedItemsStayWhereTheyAre) {
  // The fixed item splits the address space at times 0..4: 10 below, the rest above.
  std::vector<PackItem> items = {{"fixed", 0, 4, 10, 1, 10}, {"small", 0, 4, 10, 1, {}}, {"large", 2, 6, 12, 1, {}}};
  const Packing packing = pack(items);
  ASSERT_EQ(messageOf(checkPacking(items, packing)), "");
  EXPECT_EQ(packing.offsets[0], 10);
  EXPECT_EQ(packing.height, 32);
}

TEST(Pack, FindsFixedItemsThatOverlap) {
  std::mt19937 random(5);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<PackItem> items;
    for (int i = 0; i < 6; ++i) {
      const int64_t lower = random() % 8;
      items.push_back(
          {"x", lower, lower + 1 + static_cast<int64_t>(random() % 4), static_cast<Bytes>(random() % 4), 1, {}});
      if (random() % 4)
        items.back().offset = random() % 12;
    }
    const auto overlap = [&](int i, int j) {
      const PackItem &a = items[i], &b = items[j];
      return a.offset && b.offset && a.size > 0 && b.size > 0 && a.lower < b.upper && b.lower < a.upper &&
             *a.offset < *b.offset + b.size && *b.offset < *a.offset + a.size;
    };
    bool any = false;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < i; ++j)
        any = any || overlap(i, j);
    const auto pair = fixedOverlap(items);
    ASSERT_EQ(pair.has_value(), any) << round;
    ASSERT_TRUE(!pair || (pair->first < pair->second && overlap(pair->first, pair->second))) << round;
    found += any;
  }
  EXPECT_GT(found, 200);
  EXPECT_LT(found, 1800);
}

TEST(Pack, TimeCountedInBeginningsKeepsWhoMeetsWhom) {
  std::vector<PackItem> items = {
      {"a", 3, 9, 1, 1, {}}, {"b", 8, 9, 1, 1, {}}, {"c", 9, 30, 1, 1, {}}, {"d", 3, 8, 1, 1, {}}};
  countBeginnings(items);
  const std::vector<std::pair<int64_t, int64_t>> expected = {{0, 2}, {1, 2}, {2, 3}, {0, 1}};
  for (size_t i = 0; i < items.size(); ++i)
    EXPECT_EQ(std::pair(items[i].lower, items[i].upper), expected[i]) << items[i].id;
}

TEST(Pack, ValidatorSeesOverlapAlignmentAndHeight) {
  const std::vector<PackItem> items = {{"a", 0, 2, 10, 4, {}}, {"b", 1, 3, 10, 4, {}}};
  Packing packing = pack(items);
  ASSERT_EQ(messageOf(checkPacking(items, packing)), "");
  Packing bad = packing;
  bad.offsets = {0, 8};
  EXPECT_NE(messageOf(checkPacking(items, bad)).find("overlap"), std::string::npos);
  bad.offsets = {0, 10};
  EXPECT_NE(messageOf(checkPacking(items, bad)).find("alignment"), std::string::npos);
  bad = packing;
  bad.height -= 1;
  EXPECT_NE(messageOf(checkPacking(items, bad)).find("claims height"), std::string::npos);
}

TEST(Pack, NothingToPackHasNoHeight) {
  EXPECT_EQ(pack({}).height, 0);
  EXPECT_EQ(pack({{"empty", 0, 1, 0, 1, {}}}).height, 0);
}

TEST(Pack, BadItemsAreRefusedWithTheirNumbers) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "header"},
      {"id,lower,upper\n", "'size'"},
      {"id,lower,upper,size\na,0,1\n", "line 2: 3 cells"},
      {"id,lower,upper,size\na,0,1,x\n", "size is 'x'"},
      {"id,lower,upper,size\na,0,1,1.5\n", "size is '1.5'"},
      {"id,lower,upper,size\na,0,1,-4\n", "size -4"},
      {"id,lower,upper,size\na,3,3,4\n", "from 3 to 3"},
      {"id,lower,upper,size\na,0,1,4\na,0,1,4\n", "'a' appears twice"},
      {"id,lower,upper,size\na,0,1,99999999999999999999\n", "not an integer of 64 bits"},
      {"id,lower,upper,size\na,0,1,9223372036854775807\n", "above"},
      {"id,lower,upper,size,offset\na,0,2,8,0\nb,1,3,8,4\n", "overlap"},
  };
  for (const auto &[text, expected] : cases) {
    const Result<std::vector<PackItem>> items = parseItems(text);
    ASSERT_FALSE(items) << text;
    EXPECT_NE(items.error().find(expected), std::string::npos) << items.error();
  }
}

} // namespace sluice::planner
