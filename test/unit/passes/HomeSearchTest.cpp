// SPDX-License-Identifier: Apache-2.0
// The search for homes on curves of time over what is away.
#include "passes/HomeSearch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace sluice {
namespace {

/// Seconds by share, from the first with a plan on; from `kept` on everything else is kept.
struct Curve {
  int first = 0, kept = 0;
  std::vector<double> seconds;

  int all() const { return static_cast<int>(seconds.size()) - 1; }
  std::optional<double> at(int share) const {
    return share >= first ? std::optional<double>(seconds[share]) : std::nullopt;
  }
};

/// What one search of a curve asked for.
struct Found {
  double fastest = 1e9;
  std::vector<int> planned, asked;
};

Found search(const Curve &curve, void (HomeSearch::*run)() = &HomeSearch::run) {
  Found found;
  const auto planned = [&](int share) {
    found.planned.push_back(share);
    found.fastest = std::min(found.fastest, curve.at(share).value_or(1e9));
    return curve.at(share);
  };
  const auto keeps = [&](int share) {
    found.asked.push_back(share);
    return share >= curve.kept;
  };
  HomeSearch homes(curve.all(), planned, keeps);
  (homes.*run)();
  return found;
}

/// The fastest that a search finds of plans that keep everything.
double keepingAlone(const Curve &curve) {
  Curve alone = curve;
  alone.first = curve.kept;
  return search(alone).fastest;
}

Curve random(std::mt19937 &generator) {
  const auto drawn = [&](int below) { return static_cast<int>(generator() % below); };
  Curve curve;
  const int all = 1 + drawn(64);
  curve.first = drawn(all + 2); // none has a plan, too
  curve.kept = curve.first + drawn(all + 2);
  double seconds = 1;
  for (int share = 0; share <= all; ++share) {
    seconds += (drawn(2001) - 1000) / 1e4;
    curve.seconds.push_back(seconds + (share >= curve.kept ? -0.5 : 0));
  }
  return curve;
}

TEST(HomeSearch, BothEndsAreTriedWhateverIsBetween) {
  Curve late{4, 20, {}}, early{4, 20, {}};
  for (int share = 0; share <= 32; ++share) {
    const double rise = 1.5 + share / 100.0;
    late.seconds.push_back(share < 20 ? rise : 1.2 + share / 100.0); // slower and slower until all is kept
    early.seconds.push_back(share == 4 ? 1.2 : rise);
  }
  EXPECT_EQ(search(late).fastest, late.seconds[20]);
  EXPECT_EQ(search(early).fastest, 1.2);
}

TEST(HomeSearch, AValleyBetweenIsFound) {
  for (int valley = 3; valley <= 29; ++valley) {
    Curve curve{3, 29, {}};
    for (int share = 0; share <= 32; ++share)
      curve.seconds.push_back(1 + std::abs(share - valley) / 100.0);
    EXPECT_EQ(search(curve).fastest, 1) << valley;
  }
}

TEST(HomeSearch, NoSlowerThanHomesAlone) {
  std::mt19937 generator(43);
  for (int i = 0; i < 5000; ++i) {
    const Curve curve = random(generator);
    EXPECT_LE(search(curve).fastest, keepingAlone(curve)) << "curve " << i;
    EXPECT_LE(search(curve, &HomeSearch::runKeeping).fastest, keepingAlone(curve)) << "curve " << i;
  }
}

TEST(HomeSearch, FewPlansEachOnce) {
  std::mt19937 generator(44);
  for (int i = 0; i < 5000; ++i) {
    const Curve curve = random(generator);
    const Found found = search(curve), again = search(curve);
    EXPECT_EQ(found.planned, again.planned);
    EXPECT_LE(found.planned.size(), 32U) << "curve " << i;
    EXPECT_LE(found.asked.size(), 8U) << "curve " << i;
    EXPECT_EQ(std::set<int>(found.planned.begin(), found.planned.end()).size(), found.planned.size()) << "curve " << i;
  }
}

TEST(HomeSearch, WithoutAPlanNothingIsAskedTwice) {
  const Curve curve{33, 33, std::vector<double>(33, 1)};
  const Found found = search(curve);
  EXPECT_EQ(found.planned, (std::vector<int>{0, 32}));
  EXPECT_TRUE(found.asked.empty());
}

} // namespace
} // namespace sluice
