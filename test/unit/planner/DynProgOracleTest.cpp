// SPDX-License-Identifier: Apache-2.0
// dynprog with partial release against an exact oracle: every subset, and for each a linear program over ordered fluid
// copies. The program knows nothing of the recurrences: time is a row of intervals (a gap and an op, in turn), each
// with bytes copied out and back; the copies are tied to their order by a turning interval after which nothing leaves
// and before which nothing returns.
#include "passes/strategies/DynProg.h"
#include "passes/strategies/Registry.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/Simplex.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sluice::planner {

using test::randomChain;
using test::Simplex;

namespace {

/// The shortest schedule of a set with its turn in interval `turn`. Interval 2k is the gap before op k, 2k+1 op k; ops
/// F_0..F_L, B_L..B_0.
class Oracle {
public:
  Oracle(const Chain &c, double memory, const std::vector<bool> &set, int turn)
      : c(c), memory(memory), set(set), turn(turn), n(c.uF.size()), ops(2 * n), lp(3 * 2 * ops) {}

  double solve() {
    for (int k = 0; k < ops; ++k) {
      lp.minimize(gap(k));
      lp.atMost({{out(2 * k), 1}, {in(2 * k), 1}, {gap(k), -c.bandwidth}}, 0);
      lp.atMost({{out(2 * k + 1), 1}, {in(2 * k + 1), 1}}, c.bandwidth * seconds(k));
      available(k);
      fits(k, 2 * k);     // at the op's start: copies of the intervals before it are over
      fits(k, 2 * k + 1); // at its end
    }
    for (int i = 0; i < 2 * ops; ++i) {
      if (i > turn)
        lp.atMost({{out(i), 1}}, 0);
      if (i < turn)
        lp.atMost({{in(i), 1}}, 0);
    }
    // In the end everything has left and returned.
    lp.atMost(terms(2 * ops - 1, -1, 0), -total(n));
    lp.atMost(terms(2 * ops - 1, 0, -1), -total(n));
    const double idle = lp.solve();
    return idle + chainCompute(c);
  }

private:
  int out(int interval) const { return interval; }
  int in(int interval) const { return 2 * ops + interval; }
  int gap(int op) const { return 4 * ops + op; }
  bool forward(int k) const { return k < n; }
  int stage(int k) const { return k < n ? k : 2 * n - 1 - k; }
  double seconds(int k) const { return forward(k) ? c.uF[stage(k)] : c.uB[stage(k)]; }

  /// Bytes of offloaded x_0..x_(i-1).
  double total(int i) const {
    double bytes = 0;
    for (int j = 0; j < i; ++j)
      bytes += set[j] ? c.moved(j) : 0;
    return bytes;
  }

  /// outFactor * (copied out) + inFactor * (copied back), through interval `last`.
  std::vector<std::pair<int, double>> terms(int last, double outFactor, double inFactor) const {
    std::vector<std::pair<int, double>> list;
    for (int i = 0; i <= last; ++i) {
      if (outFactor != 0)
        list.push_back({out(i), outFactor});
      if (inFactor != 0)
        list.push_back({in(i), inFactor});
    }
    return list;
  }

  void available(int k) {
    const int i = stage(k);
    if (forward(k)) {
      // While F_i runs x_i may leave, but it is whole when F_i starts.
      lp.atMost(terms(2 * k, 1, 0), total(i));
      lp.atMost(terms(2 * k + 1, 1, 0), total(i + 1));
      return;
    }
    // Back before B_i starts: x_i and all later ones; ordered, so these are the first to return.
    lp.atMost(terms(2 * k, 0, -1), -(total(n) - total(i)));
    lp.atMost(terms(2 * k + 1, 1, 0), total(n));
  }

  void fits(int k, int interval) {
    const int i = stage(k);
    double bytes = forward(k) ? c.exF[i] : c.exB[i] + c.y[i] + c.y[i + 1];
    for (int j = 0; j <= i + 1; ++j)
      bytes += c.moved(j);
    // Offloaded tensors that are dead by now: they have left and returned, so they count on both sides and cancel.
    lp.atMost(terms(interval, -1, 1), memory - bytes + 1e-9);
  }

  const Chain &c;
  const double memory;
  const std::vector<bool> &set;
  const int turn, n, ops;
  Simplex lp;
};

Seconds oracle(const Chain &c, double memory) {
  const int n = c.uF.size();
  Seconds best = std::numeric_limits<Seconds>::infinity();
  for (int bits = 0; bits < 1 << n; ++bits) {
    std::vector<bool> set(n);
    for (int i = 0; i < n; ++i)
      set[i] = bits >> i & 1;
    if (chainNeed(c, set) > memory + 1e-9)
      continue;
    // The turn lies between the last F that could still copy out and the first B that needs something back; all
    // intervals are allowed.
    for (int turn = 0; turn < 4 * n; ++turn)
      best = std::min(best, Oracle(c, memory, set, turn).solve());
  }
  return best;
}

} // namespace

TEST(DynProgOracle, EqualsTheLinearProgramOnRandomChains) {
  // SLUICE_ORACLE_CHAINS=10000 runs more.
  const char *wanted = std::getenv("SLUICE_ORACLE_CHAINS");
  const unsigned chains = wanted ? std::atoi(wanted) : test::instances(1000);
  int infeasible = 0, waiting = 0;
  for (unsigned seed = 0; seed < chains; ++seed) {
    const Chain c = randomChain(1000 + seed, 1 + seed % 3);
    const double floor = chainFloor(c), memory = floor * 0.95 + (seed % 6) / 6.0 * (chainPeak(c) - floor);
    const Seconds best = oracle(c, memory);
    bool exact = false;
    const auto sets = dynprogSets(c, memory, 1, 0, exact);
    if (!std::isfinite(best)) {
      EXPECT_TRUE(sets.empty()) << "seed " << seed;
      ++infeasible;
      continue;
    }
    ASSERT_FALSE(sets.empty()) << "seed " << seed;
    ASSERT_NEAR(sets[0].makespan, best, 1e-6 * best) << "seed " << seed << " memory " << memory;
    waiting += best > chainCompute(c) * (1 + 1e-9);
  }
  // The comparison means something only where memory makes ops wait.
  EXPECT_GT(waiting, static_cast<int>(chains) / 4);
  EXPECT_GT(infeasible, 0);
}

TEST(DynProgOracle, TheBoundIsBelowTheOptimumAndMeetsItWhereStatesAreFew) {
  int below = 0;
  for (unsigned seed = 0; seed < test::instances(100); ++seed) {
    const Chain c = randomChain(seed, 14);
    const double memory = chainFloor(c) + 0.3 * (chainPeak(c) - chainFloor(c));
    bool exact = true;
    const auto sets = dynprogSets(c, memory, 1, 0, exact);
    ASSERT_TRUE(exact);
    for (size_t limit : {2, 10, 30}) {
      const auto bound = dynprogBound(c, memory, limit);
      if (sets.empty())
        continue;
      ASSERT_TRUE(bound) << seed;
      ASSERT_LE(*bound, sets[0].makespan * (1 + 1e-12)) << "seed " << seed << " limit " << limit;
      below += *bound < sets[0].makespan * (1 - 1e-9);
    }
    const auto all = dynprogBound(c, memory, 100'000);
    ASSERT_EQ(all.has_value(), !sets.empty());
    if (all) {
      ASSERT_DOUBLE_EQ(*all, sets[0].makespan);
    }
  }
  EXPECT_GT(below, 0) << "states were never merged";
}

TEST(DynProgOracle, PublishedCounterexampleToLemma3) {
  // Moving half a byte of x_0 out of order would give 71.5; the best ordered schedule takes 72.
  Chain c;
  c.uF = {4, 3, 3};
  c.uB = {8, 15, 11};
  c.x = {20, 8, 19, 17};
  c.y = {27, 9, 22, 10};
  c.exF = {0, 0, 5};
  c.exB = {2, 9, 0};
  c.saved = {0, 0, 0};
  c.bandwidth = 1;
  EXPECT_NEAR(oracle(c, 74), 72, 1e-6);
  bool exact = false;
  EXPECT_NEAR(dynprogSets(c, 74, 1, 0, exact)[0].makespan, 72, 1e-9);
}

} // namespace sluice::planner
