// SPDX-License-Identifier: Apache-2.0
// rotor: O. Beaumont, L. Eyraud-Dubois, J. Herrmann, A. Joly, A. Shilova, Optimal Checkpointing for Heterogeneous
// Chains: How to Train Deep Neural Networks with Limited Memory, Inria RR-9302, 2019 (from public ports; see E1 of
// the planner digests).
//
// Rule: OPT(m, i, l) runs stages i..l forward and backward with m bytes besides x_i. Either F_i saves everything
// and the rest follows with less memory, or only x_i stays, stages i..j-1 run without saving, the right part runs
// with x_j kept, and the left part runs again.
//
// Changed: backward memory is y_i + y_(i+1) + x_(i+1) + saved_i + exB_i, as in our chain model; the ports differ.
// The check for runs without saving looks at every stage that runs, not only at the last. Every memory of the table
// is tried on the op-level program, whose tensors die one by one, and the fastest plan that really fits is taken. So
// are runs of equal length between kept borders (chen), which are schedules of this space, too: the table rounds sizes
// up and runs whole stages again, chen's plans run op by op.
//
// Complexity O(L^3 * slots); chains of more than 160 stages are grouped first: ResNet-152's and DenseNet-201's are not.
//
// Knobs: slots=0 (0: 300, fewer for long chains).
//
// Fails below the smallest table entry; never moves anything to the host.
#include "passes/strategies/Rotor.h"

#include "passes/strategies/Combine.h"
#include "passes/strategies/Stages.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace sluice::planner {

static constexpr float impossible = std::numeric_limits<float>::infinity();

/// Ranges by their length, as the best of one is made of shorter ones.
RotorTable::RotorTable(Chain of, int slots)
    : chain(std::move(of)), n(chain.uF.size()), slotCount(slots),
      unit(std::max(chainPeak(chain), 1e-9) / slots * (1 + 1e-12)) {
  cost.assign(at(n - 1, n - 1) + slotCount + 1, impossible);
  choice.assign(cost.size(), 0);
  for (int length = 0; length < n; ++length)
    for (int i = 0; i + length < n; ++i)
      fill(i, i + length);
}

bool RotorTable::isOf(const Chain &other, int slots) const {
  const auto sizes = [](const Chain &c) { return std::tie(c.uF, c.uB, c.x, c.y, c.exF, c.exB, c.saved); };
  return slots == slotCount && sizes(other) == sizes(chain);
}

int RotorTable::size(double bytes) const { return static_cast<int>(std::ceil(bytes / unit - 1e-9)); }

/// OPT(m, i, l) for all m at once: save everything (C2), or keep x_j and run i..j-1 again (C1). Shorter ranges are
/// there already.
void RotorTable::fill(int i, int l) {
  const int saved = size(chain.moved(i + 1));
  const int forwardNeed = size(chain.y[l + 1] + chain.moved(i + 1) + chain.exF[i]);
  const int backwardNeed = size(chain.y[i] + chain.y[i + 1] + chain.moved(i + 1) + chain.exB[i]);
  const int all = std::max(forwardNeed, backwardNeed);
  const float own = static_cast<float>(chain.uF[i] + chain.uB[i]);
  float *best = &cost[at(i, l)];
  int16_t *how = &choice[at(i, l)];
  for (int m = all; m <= slotCount; ++m) {
    const float rest = i == l ? 0 : m >= saved ? cost[at(i + 1, l) + m - saved] : impossible;
    if (own + rest < best[m]) {
      best[m] = own + rest;
      how[m] = 1;
    }
  }
  float again = 0;
  int need = 0; // of the runs without saving
  for (int j = i + 1; j <= l; ++j) {
    const int k = j - 1;
    again += static_cast<float>(chain.uF[k]);
    need = std::max(need, size(chain.y[l + 1] + chain.moved(k + 1) + chain.exF[k] + (k > i ? chain.x[k] : 0)));
    const int kept = size(chain.x[j]);
    const float *right = &cost[at(j, l)], *left = &cost[at(i, k)];
    for (int m = std::max(need, kept); m <= slotCount; ++m)
      if (const float total = again + right[m - kept] + left[m]; total < best[m]) {
        best[m] = total;
        how[m] = static_cast<int16_t>(j - i + 1);
      }
  }
}

Seconds RotorTable::best(int m) const {
  const int left = m - size(chain.x[0]);
  return left < 0 ? impossible : cost[at(0, n - 1) + left];
}

int RotorTable::slotsIn(double bytes) const {
  return static_cast<int>(std::clamp(std::floor(bytes / unit + 1e-9), -1.0, double(slotCount)));
}

Seconds RotorTable::best(double bytes, int i, int l) const {
  const int m = slotsIn(bytes);
  return m < 0 ? impossible : cost[at(i, l) + m];
}

void RotorTable::append(double bytes, int i, int l, std::vector<StageRun> &runs) const {
  emit(slotsIn(bytes), i, l, runs);
}

std::vector<StageRun> RotorTable::sequence(int m) const {
  std::vector<StageRun> runs;
  emit(m - size(chain.x[0]), 0, n - 1, runs);
  return runs;
}

/// Follows the choices down: a chain of C2 is a forward run in order and a backward one; C1 runs its left part again
/// after its right part is done.
void RotorTable::emit(int m, int i, int l, std::vector<StageRun> &runs) const {
  const int how = choice[at(i, l) + m];
  if (how == 1) {
    runs.push_back({i, true});
    if (i < l)
      emit(m - size(chain.moved(i + 1)), i + 1, l, runs);
    runs.push_back({i, false});
    return;
  }
  const int j = i + how - 1;
  for (int k = i; k < j; ++k)
    runs.push_back({k, true});
  emit(m - size(chain.x[j]), j, l, runs);
  emit(m, i, j - 1, runs);
}

/// Leaves out ops that write what another op writes, too, which is not among them: the buffer would come back with less
/// than it held.
static void keepWholeWriters(const Problem &problem, const Recomputation &recomputation, std::vector<int> &ops) {
  for (size_t before = ops.size() + 1; ops.size() < before;) {
    before = ops.size();
    const std::set<int> among(ops.begin(), ops.end());
    const auto isPart = [&](int op) {
      const std::vector<int> &writes = problem.ops[op].writesWhen(true);
      return std::any_of(writes.begin(), writes.end(), [&](int b) {
        const std::vector<int> &writers = recomputation.writersOf(b);
        return !std::all_of(writers.begin(), writers.end(), [&](int w) { return among.count(w); });
      });
    };
    ops.erase(std::remove_if(ops.begin(), ops.end(), isPart), ops.end());
  }
}

// Re-runs that stand between two backward runs come back in one segment, in front of the first backward op that
// follows. What a chain says of whole stages is cut down to what the program can do: ops that may not run again, or
// whose inputs are gone by then, are left out, and what they made stays.
std::vector<Recompute> segmentsOf(const Problem &problem, const Stages &stages, const std::vector<StageRun> &runs) {
  std::vector<std::vector<int>> forward(stages.count());
  std::vector<int> firstBackward(stages.count(), -1);
  const Recomputation recomputation(problem);
  // What cannot come back with its stage alone simply stays: a re-run that reads it extends its life.
  auto comesBack = [&](int b) {
    const auto &writers = recomputation.writersOf(b);
    return recomputation.possible(b) && !recomputation.overwritten(b) &&
           stages.ofOp(writers.front()) == stages.ofOp(writers.back());
  };
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const Op &op = problem.ops[k];
    const int stage = stages.ofOp(k);
    if (op.phase != Phase::Forward) {
      if (firstBackward[stage] < 0)
        firstBackward[stage] = k;
    } else if (std::all_of(op.writesWhen(true).begin(), op.writesWhen(true).end(), comesBack)) {
      forward[stage].push_back(k);
    }
  }
  std::vector<Recompute> segments;
  std::vector<bool> ran(stages.count(), false);
  std::vector<int> pending;
  for (const StageRun &run : runs) {
    if (run.forward) {
      if (ran[run.stage])
        pending.insert(pending.end(), forward[run.stage].begin(), forward[run.stage].end());
      ran[run.stage] = true;
    } else if (!pending.empty() && firstBackward[run.stage] >= 0) {
      const int before = firstBackward[run.stage];
      segments.push_back({before, {}});
      std::copy_if(pending.begin(), pending.end(), std::back_inserter(segments.back().ops),
                   [&](int op) { return recomputation.findsInputs(op, before); });
      keepWholeWriters(problem, recomputation, segments.back().ops);
      pending.clear();
    }
  }
  // Stages that branch may have their backward halves in another order than the schedule.
  std::stable_sort(segments.begin(), segments.end(),
                   [](const Recompute &a, const Recompute &b) { return a.before < b.before; });
  return segments;
}

std::shared_ptr<const RotorTable> rotorTable(const Chain &chain, int slots, const Options &options) {
  if (slots == 0)
    slots = static_cast<int>(std::clamp(1.2e9 / std::pow(chain.uF.size(), 3), 100.0, 300.0));
  if (options.known)
    for (const std::shared_ptr<const RotorTable> &table : options.known->rotorTables)
      if (table->isOf(chain, slots))
        return table;
  auto table = std::make_shared<const RotorTable>(chain, slots);
  if (options.known)
    options.known->rotorTables.push_back(table);
  return table;
}

/// Schedules for every memory of the table, fewest bytes first, not yet completed by a Combiner. Memories with the time
/// of a smaller one bring nothing new.
static std::vector<Plan> rotorPlans(const Problem &problem, int slots, const Options &options) {
  const Stages stages(problem, 160);
  const std::shared_ptr<const RotorTable> table = rotorTable(stages.chain(), slots, options);
  std::vector<Plan> plans;
  Seconds last = -1;
  for (int m = 0; m <= table->slots(); ++m) {
    if (!std::isfinite(table->best(m)) || table->best(m) == last)
      continue;
    last = table->best(m);
    Plan plan = keepPlan(problem);
    plan.recomputes = segmentsOf(problem, stages, table->sequence(m));
    pruneRecomputes(problem, plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

Attempt bestRematerialization(const Combiner &combiner, int slots) {
  Attempt best;
  std::vector<Plan> plans = rotorPlans(combiner.problem, slots, combiner.options);
  for (auto plan = plans.rbegin(); plan != plans.rend(); ++plan) // fastest first, so that slower ones need no look
    improve(best, combiner.complete(std::move(*plan), {},
                                    best.feasible ? best.makespan : std::numeric_limits<Seconds>::infinity()));
  improve(best, bestSegments(combiner, 0));
  return best;
}

static Answer planRotor(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "rotor", memory);
  if (!combiner.can(Action::Recompute))
    return Refused{"strategy 'rotor' needs action 'recompute', which the target does not execute"};
  improve(best, bestRematerialization(combiner, static_cast<int>(numberKnob(options, "slots", 0))));
  return answerOf(best, "rotor", memory);
}

Strategy rotorStrategy() {
  Strategy s{"rotor", "optimal rematerialization of a chain (Beaumont et al. 2019)", planRotor};
  s.knobs = {{"slots", 1e4}};
  s.actions = {Action::Recompute};
  return s;
}

} // namespace sluice::planner
