// SPDX-License-Identifier: Apache-2.0
// Strategies that claim an optimum, against enumeration on instances that are small enough for it: checkmate against
// every set of re-runs, pofo's dynamic program against every cut into blocks.
#include "passes/planner/Check.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/Pofo.h"
#include "passes/strategies/Registry.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice::planner {

static constexpr double never = std::numeric_limits<double>::infinity();

/// Re-run seconds of the cheapest plan that the checker lets pass in `memory`; every set of forward ops may run again
/// before every backward op. Also the least live bytes of any plan.
struct Enumerated {
  Seconds cheapest = never;
  Bytes leastPeak = std::numeric_limits<Bytes>::max();
};

static Seconds rerunSeconds(const Op &op) { return op.rerun ? op.rerun->seconds : op.seconds; }

static Enumerated enumerate(const Problem &p, Bytes memory) {
  std::vector<int> forward, backward;
  for (int k = 0; k < static_cast<int>(p.ops.size()); ++k)
    if (p.ops[k].phase != Phase::Forward)
      backward.push_back(k);
    else if (p.ops[k].recomputable)
      forward.push_back(k);
  Enumerated best;
  for (uint64_t bits = 0; bits < uint64_t(1) << (forward.size() * backward.size()); ++bits) {
    Plan plan = keepPlan(p);
    Seconds cost = 0;
    for (size_t t = 0; t < backward.size(); ++t) {
      Recompute segment{backward[t], {}};
      for (size_t i = 0; i < forward.size(); ++i)
        if (bits >> (t * forward.size() + i) & 1) {
          segment.ops.push_back(forward[i]);
          cost += rerunSeconds(p.ops[forward[i]]);
          for (int b : p.ops[forward[i]].writesWhen(true))
            plan.decisions[b].action = Action::Recompute;
        }
      if (!segment.ops.empty())
        plan.recomputes.push_back(segment);
    }
    const Bytes peak = peakBytes(p, expand(p, plan));
    if ((peak >= best.leastPeak && (peak > memory || cost >= best.cheapest)) ||
        !messageOf(checkPlan(p, plan, std::numeric_limits<Bytes>::max() / 2)).empty())
      continue;
    best.leastPeak = std::min(best.leastPeak, peak);
    if (peak <= memory)
      best.cheapest = std::min(best.cheapest, cost);
  }
  return best;
}

TEST(SmallOptima, CheckmateEqualsEnumeration) {
  int recomputed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 3;
    shape.overwriteChance = 0.5;
    const Problem p = test::randomProblem(seed, shape);
    const Bytes keep = peakBytes(p, expand(p, keepPlan(p)));
    Options options;
    options.executable = {Action::Keep, Action::Recompute};
    options.pack = false; // its own excess is not checkmate's
    for (double share : {0.6, 0.8, 0.95}) {
      const Bytes memory = p.base + static_cast<Bytes>(static_cast<double>(keep - p.base) * share);
      SCOPED_TRACE("seed " + std::to_string(seed) + " share " + std::to_string(share));
      const Enumerated best = enumerate(p, memory);
      const Answer answer = runStrategy(p, memory, "checkmate", options);
      if (auto *none = std::get_if<Infeasible>(&answer)) {
        ASSERT_EQ(best.cheapest, never);
        ASSERT_EQ(none->smallestMemory, best.leastPeak);
        continue;
      }
      const Plan &plan = std::get<Plan>(answer);
      Seconds cost = 0;
      for (const Recompute &r : plan.recomputes)
        for (int op : r.ops)
          cost += rerunSeconds(p.ops[op]);
      ASSERT_NEAR(cost, best.cheapest, 1e-9);
      recomputed += cost > 0;
    }
  }
  EXPECT_GT(recomputed, 10) << "the instances must not all be trivial";
}

/// Whole decisions are at least as cheap as rounded ones, and these are plans of the same memory.
TEST(SmallOptima, CheckmateRoundsToPlansThatFit) {
  int fitting = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 6;
    const Problem p = test::randomProblem(seed, shape);
    const Bytes keep = peakBytes(p, expand(p, keepPlan(p))), memory = p.base + (keep - p.base) / 10 * 8;
    Options whole, rounded;
    whole.executable = rounded.executable = {Action::Keep, Action::Recompute};
    whole.pack = rounded.pack = false;
    rounded.knobs = {{"ops", "1"}, {"relaxed", "1000"}};
    const Answer best = runStrategy(p, memory, "checkmate", whole),
                 answer = runStrategy(p, memory, "checkmate", rounded);
    const Plan *plan = std::get_if<Plan>(&answer);
    if (!plan)
      continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    ++fitting;
    ASSERT_TRUE(std::holds_alternative<Plan>(best));
    EXPECT_EQ(messageOf(checkPlan(p, *plan, memory)), "");
    EXPECT_GE(simulate(p, *plan).makespan, simulate(p, std::get<Plan>(best)).makespan * (1 - 1e-9));
  }
  EXPECT_GE(fitting, 10);
}

TEST(SmallOptima, CheckmateRefusesLargeGraphsWithBothNumbers) {
  test::RandomShape shape;
  shape.forwardOps = 60;
  const Problem p = test::randomProblem(1, shape);
  Options options;
  options.knobs = {{"relaxed", "100"}};
  const Answer answer = runStrategy(p, p.base, "checkmate", options);
  ASSERT_TRUE(std::holds_alternative<Refused>(answer));
  const std::string reason = std::get<Refused>(answer).reason;
  EXPECT_NE(reason.find("has " + std::to_string(p.ops.size()) + " ops"), std::string::npos) << reason;
  EXPECT_NE(reason.find("limit is 100; checkmate,relaxed=" + std::to_string(p.ops.size())), std::string::npos)
      << reason;
}

namespace {

/// Every cut of a chain into blocks and every choice of copies, by the model of Pofo.cpp written again.
class Cuts {
public:
  Cuts(const Chain &chain, const RotorTable &rotor, double memory) : c(chain), rotor(rotor), memory(memory) {}

  /// Bytes that stay in memory and that the link owes, out and back, after what took `time`.
  struct State {
    double stays, out, back;
    Seconds time;
  };

  Seconds best = never;
  void from(int i, bool all, const State &s) {
    const int n = c.uF.size();
    if (i == n) {
      best = std::min(best, s.time + std::max(0.0, (s.out + s.back) / c.bandwidth));
      return;
    }
    const double input = c.x[i] + (all && i > 0 ? c.saved[i - 1] : 0), left = memory - s.stays - input;
    const double made = c.moved(i + 1), needF = made + c.exF[i], needB = made + c.y[i] + c.y[i + 1] + c.exB[i];
    if (needF <= left && needB <= left)
      leave(i + 1, true, input, s, c.uF[i] + waits(needF + std::max(s.out, 0.0) - left),
            c.uB[i] + waits(needB + std::max(s.back, 0.0) - left));
    for (int j = i; j < n; ++j) {
      Seconds run = 0;
      double most = 0, late = 0;
      for (int k = i; k <= j; ++k) {
        const double need = c.moved(k + 1) + c.exF[k] + (k > i ? c.x[k] : 0);
        most = std::max(most, need);
        late = std::max(late, need - c.bandwidth * run);
        run += c.uF[k];
      }
      const Seconds again = rotor.best(left, i, j);
      if (most > left || !std::isfinite(again))
        continue;
      const Seconds copy = std::max(s.back, 0.0) / c.bandwidth;
      leave(j + 1, false, input, s, run + waits(late + std::max(s.out, 0.0) - left),
            copy > 0 ? (std::max(again, copy) + again + copy) / 2 : again);
    }
  }

private:
  Seconds waits(double bytes) const { return std::max(0.0, bytes) / c.bandwidth; }
  void leave(int next, bool all, double input, const State &s, Seconds f, Seconds b) {
    from(next, all, {s.stays + input, s.out - f * c.bandwidth, s.back - b * c.bandwidth, s.time + f + b});
    if (input > 0)
      from(next, all,
           {s.stays, std::max(s.out, 0.0) + input - f * c.bandwidth, std::max(s.back - b * c.bandwidth, 0.0) + input,
            s.time + f + b});
  }

  const Chain &c;
  const RotorTable &rotor;
  const double memory;
};

} // namespace

TEST(SmallOptima, PofoEqualsEnumerationOfItsModel) {
  int feasible = 0, blocks = 0, offloads = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Chain chain = test::randomChain(seed, 2 + seed % 4);
    for (size_t i = 0; i < chain.saved.size(); ++i)
      chain.saved[i] = (seed * 7 + i * 13) % 11;
    const RotorTable rotor(chain, 200);
    const double memory = chainPeak(chain) * (0.4 + 0.1 * (seed % 6));
    Cuts cuts(chain, rotor, memory + byteSlack(chain));
    cuts.from(0, false, {0, 0, 0, 0});
    const auto schedules = pofoSchedules(chain, rotor, memory, 1, 100000);
    ASSERT_EQ(schedules.empty(), !std::isfinite(cuts.best)) << "seed " << seed;
    if (schedules.empty())
      continue;
    ++feasible;
    ASSERT_NEAR(schedules[0].makespan, cuts.best, 1e-9 * cuts.best) << "seed " << seed;
    for (const PofoBlock &block : schedules[0].blocks) {
      blocks += !block.saved;
      offloads += block.offloaded;
    }
  }
  EXPECT_GT(feasible, 50);
  EXPECT_GT(blocks, 20);
  EXPECT_GT(offloads, 20);
}

// The table takes the most time of a long chain's planning, and is asked for at every memory that is tried.
TEST(RotorTable, IsMadeOncePerChainAndSlots) {
  const Chain chain = test::randomChain(1, 5), other = test::randomChain(2, 5);
  KnownPlans known;
  Options options;
  options.known = &known;
  const auto table = rotorTable(chain, 100, options);
  EXPECT_EQ(rotorTable(chain, 100, options), table);
  EXPECT_NE(rotorTable(chain, 50, options), table);
  EXPECT_NE(rotorTable(other, 100, options), table);
  EXPECT_EQ(known.rotorTables.size(), 3u);
  EXPECT_EQ(rotorTable(other, 100, options)->best(80), RotorTable(other, 100).best(80));
  EXPECT_TRUE(rotorTable(chain, 100, {})->isOf(chain, 100));
}

} // namespace sluice::planner
