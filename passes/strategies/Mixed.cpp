// SPDX-License-Identifier: Apache-2.0
// mixed: our own. Every exact action on one branching program: lossless encodings, recomputation and offloading
// together.
//
// Rule: what is cheap per byte is recomputed (normalization and activations before convolutions), what is expensive
// is offloaded while the link has time, earliest-born first, because early tensors have the longest windows and
// late ones none. How much of each is not guessed but tried: recompute sets are prefixes of the tensors by bytes
// per second of re-running, optionally without the borders of every g-th stage (which stops chains of re-runs) and
// without early tensors; every trial is completed by GREEDY's offloading and timed by the simulator. The best is
// then improved by giving single tensors another action. Plans of the other exact strategies enter as trials, so
// mixed is never slower than they are.
//
// Complexity O(trials * ops).
//
// Limits count trials, so planning is deterministic.
//
// Knobs: trials=0 (0: by the number of ops), recompute=1, offload=1, encode=1 (0 forbids the action).
//
// Fails below the live bytes of the smallest trial.
#include "passes/planner/Simulate.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Stages.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace sluice::planner {

namespace {

class Mixed {
public:
  Mixed(const Problem &problem, Bytes memory, const Options &options)
      : combiner(problem, memory, options), stages(problem), problem(problem), memory(memory), options(options) {
    const double ops = std::max<size_t>(problem.ops.size(), 1);
    trials = static_cast<int>(numberKnob(options, "trials", 0));
    if (trials == 0)
      trials = static_cast<int>(std::clamp(8e5 / ops, 60.0, 1500.0));
    mayRecompute = combiner.can("recompute") && numberKnob(options, "recompute", 1) > 0;
    mayOffload = combiner.can("offload") && numberKnob(options, "offload", 1) > 0;
    mayEncode = numberKnob(options, "encode", 1) > 0;
  }

  Answer run() {
    search();
    if (!best.feasible && memory > 0) {
      // The search went after this budget and found nothing; the one for the least memory ends at the smallest that
      // works.
      Mixed least(problem, 0, options);
      least.search();
      best = combiner.attempt(least.bestChoice);
    }
    return answerOf(best, "mixed", memory);
  }

private:
  void search() {
    best = combiner.attempt({});
    if (best.feasible)
      return;
    rankTensors();
    consider({});
    if (mayRecompute)
      for (double d : {4.0, 1e9}) {
        dearer = d;
        sweep(trials * 2 / 5);
      }
    dearer = bestChoice.dearer;
    refine();
  }

  void rankTensors();
  bool consider(std::vector<int> recomputed);
  void sweep(int share);
  void prefixes(const std::vector<int> &order);
  int birthAfter(double share) const;
  void refine();

  const Combiner combiner;
  const Stages stages;
  const Problem &problem;
  const Bytes memory;
  const Options &options;
  int trials = 0;
  bool mayRecompute = false, mayOffload = false, mayEncode = false;
  std::vector<int> ranked;                ///< droppable tensors, most bytes per second of re-running first
  std::vector<std::vector<int>> closures; ///< of the ranked tensors, by buffer
  Choice bestChoice;
  double dearer = 4; ///< of the trials to come
  Attempt best;
};

void Mixed::rankTensors() {
  closures.resize(problem.buffers.size());
  std::vector<std::pair<double, int>> rank;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    const Accesses &a = combiner.accesses[b];
    if (!problem.buffers[b].activation || !combiner.recomputation.possible(b) || !a.hasGap() ||
        problem.buffers[b].bytes < 4096)
      continue;
    const std::vector<int> closed = combiner.recomputation.closure({b});
    if (closed.empty())
      continue;
    Seconds cost = 1e-9;
    for (int c : closed)
      cost += combiner.recomputation.cost(c);
    rank.push_back({-problem.buffers[b].bytes / cost, b});
    closures[b] = closed;
  }
  std::sort(rank.begin(), rank.end());
  for (auto [key, b] : rank)
    ranked.push_back(b);
}

bool Mixed::consider(std::vector<int> recomputed) {
  bool won = false;
  for (bool encode : {true, false}) {
    if (encode && !mayEncode)
      continue;
    --trials;
    Choice choice;
    choice.recomputed = recomputed;
    choice.encode = encode;
    choice.dearer = dearer;
    choice.offloadRest = mayOffload;
    for (bool again : {false, true}) {
      choice.again = again;
      Attempt attempt = combiner.attempt(choice);
      const bool fits = attempt.feasible;
      if (improve(best, std::move(attempt))) {
        bestChoice = choice;
        won = true;
      }
      if (fits || recomputed.empty())
        break; // second re-runs are for budgets that nothing else reaches
    }
    if (std::none_of(problem.buffers.begin(), problem.buffers.end(),
                     [](const Buffer &b) { return !b.encodings.empty(); }))
      break;
  }
  return won;
}

/// Prefixes of an order by bytes: a coarse sweep, then finer around the best.
void Mixed::prefixes(const std::vector<int> &order) {
  Bytes total = 0;
  for (int b : order)
    total += problem.buffers[b].bytes;
  std::set<size_t> tried = {0};
  auto tryShare = [&](double share) {
    Bytes sum = 0;
    size_t length = 0;
    while (length < order.size() && sum < total * share)
      sum += problem.buffers[order[length++]].bytes;
    return tried.insert(length).second && consider({order.begin(), order.begin() + length});
  };
  double at = -1;
  for (double share : {1.0, 0.75, 0.5, 0.35, 0.2, 0.1})
    if (tryShare(share))
      at = share;
  for (double step : {0.08, 0.04, 0.02})
    for (double side : {-1.0, 1.0})
      if (at >= 0 && trials > 0 && at + side * step > 0 && at + side * step < 1 && tryShare(at + side * step))
        at += side * step;
}

void Mixed::sweep(int share) {
  const int leave = trials - share;
  // Early tensors have the longest windows, so they are left to the link: as many as it can carry during some share of
  // the forward half.
  for (double carried : {0.0, 0.5, 1.0, 1.7}) {
    const int from = birthAfter(carried);
    for (int spacing : {0, 1, 2, 3, 4, 6, 9}) {
      if (trials <= leave || spacing > stages.count())
        continue;
      std::vector<int> order;
      for (int b : ranked)
        if (combiner.accesses[b].first >= from && (spacing == 0 || !stages.anyCrosses(closures[b], spacing)))
          order.push_back(b);
      prefixes(order);
    }
  }
}

/// Position before which the tensors are born that fill the link for `share` of the forward half.
int Mixed::birthAfter(double share) const {
  Seconds forward = 0;
  for (const Op &op : problem.ops)
    forward += op.phase == Phase::Forward ? op.seconds : 0;
  double room = share * forward * problem.link.d2h;
  std::vector<std::pair<int, Bytes>> births;
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (problem.buffers[b].offloadable && combiner.accesses[b].hasGap())
      births.push_back({combiner.accesses[b].first, problem.buffers[b].bytes});
  std::sort(births.begin(), births.end());
  for (auto [born, bytes] : births)
    if ((room -= bytes) <= 0)
      return born;
  return static_cast<int>(problem.ops.size());
}

/// Gives single tensors another action while that helps: the most expensive re-runs are taken back, the cheapest
/// missing ones added.
void Mixed::refine() {
  std::vector<int> byCost(ranked.rbegin(), ranked.rend());
  for (bool changed = true; changed && trials > 0;) {
    changed = false;
    for (int b : byCost) {
      if (trials <= 0)
        return;
      std::vector<int> set = bestChoice.recomputed;
      const auto at = std::find(set.begin(), set.end(), b);
      if (at != set.end())
        set.erase(at);
      else
        set.push_back(b);
      changed |= mayRecompute && consider(set);
    }
  }
}

} // namespace

Answer planMixed(const Problem &problem, Bytes memory, const Options &options) {
  Answer best = Mixed(problem, memory, options).run();
  auto spanOf = [&](const Plan &plan) { return simulate(problem, plan).makespan; };
  Plan *bestPlan = std::get_if<Plan>(&best);
  Seconds bestSpan = bestPlan ? spanOf(*bestPlan) : std::numeric_limits<Seconds>::infinity();
  if (bestPlan && bestSpan <= spanOf(keepPlan(problem)))
    return best; // nothing is faster than doing nothing else
  Options plain = options;
  plain.knobs.clear();
  for (PlanFunction other : {planGreedy, planRotor, planChen, planSuperNeurons, planCapuchin, planDynProg}) {
    Answer answer = other(problem, memory, plain);
    if (Plan *plan = std::get_if<Plan>(&answer)) {
      if (const Seconds span = spanOf(*plan); span < bestSpan) {
        bestSpan = span;
        plan->strategy = "mixed"; // the table of tensors says what it does
        best = std::move(answer);
      }
    } else if (auto *none = std::get_if<Infeasible>(&answer), *bestNone = std::get_if<Infeasible>(&best);
               none && bestNone && none->smallestMemory < bestNone->smallestMemory) {
      best = std::move(answer);
    }
  }
  return best;
}

} // namespace sluice::planner
