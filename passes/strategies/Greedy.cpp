// SPDX-License-Identifier: Apache-2.0
// greedy: O. Beaumont, L. Eyraud-Dubois, A. Shilova, Optimal GPU-CPU Offloading Strategies for Deep Neural Network
// Training, Euro-Par 2020, Section 4.2, algorithm GREEDY.
//
// Rule: offload the earliest-born activations, a prefix of the chain that is just large enough, in order of birth;
// prefetch in the opposite order; every op and copy starts as soon as data and memory allow.
//
// Changed: works tensor by tensor on a branching program, because a stage may be a whole dense block. A tensor
// whose absence relieves no op above the limit is passed over, and tensors that the later ones made unnecessary are
// given back, latest-born first: both only save copies. Where leaving does not help (two ops meet at the turn) the
// prefix stays a prefix in order of birth.
//
// Complexity O(tensors * ops).
//
// Knobs: min-copy, bytes below which a copy costs more than it brings; default: smallestCopy(). every=0 (1: tensors
// leave in every gap between two accesses, gradients, too; the paper's chains have one gap a tensor).
//
// Fails below the live bytes that remain when every activation is away between its uses; chooses badly when the
// last tensor of the prefix is much larger than what was missing (dynprog and mixed repair that).
#include "passes/planner/Room.h"
#include "passes/planner/Transfers.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>

namespace sluice::planner {

// From the last chosen to the first, what still fits is given back: an early tensor that was chosen for one position
// may be needless once a later one has gone for another.
Bytes offloadEarliest(const Problem &problem, Bytes memory, Bytes smallest, Plan &plan, Gaps kind) {
  Room room(problem, memory, plan);
  const std::vector<std::vector<Gap>> gaps = gapsOf(problem, plan, kind);
  const std::vector<Accesses> accesses = accessesOf(problem);
  std::vector<int> candidates;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (plan.decisions[b].action == Action::Keep && problem.buffers[b].offloadable && !gaps[b].empty() &&
        problem.buffers[b].bytes >= smallest)
      candidates.push_back(b);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int a, int b) { return accesses[a].first < accesses[b].first; });

  std::vector<int> taken;
  for (int b : candidates) {
    if (room.fits())
      break;
    if (!room.relieves(gaps[b]))
      continue;
    room.add(gaps[b], -aligned(problem, problem.buffers[b].bytes));
    taken.push_back(b);
  }
  const bool fits = room.fits();
  for (auto b = taken.rbegin(); b != taken.rend(); ++b) {
    if (fits && room.giveBack(gaps[*b], aligned(problem, problem.buffers[*b].bytes)))
      continue;
    plan.decisions[*b].action = Action::Offload;
    plan.decisions[*b].reason = "among the earliest-born that make room";
  }
  return room.peak();
}

std::optional<Plan> movingAll(const Problem &problem, Bytes smallest, Plan plan) {
  const Bytes peak = peakBytes(problem, expand(problem, plan));
  const std::vector<std::vector<Gap>> gaps = gapsOf(problem, plan, Gaps::Longest);
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (plan.decisions[b].action == Action::Keep && problem.buffers[b].offloadable && !gaps[b].empty() &&
        problem.buffers[b].bytes >= smallest) {
      plan.decisions[b].action = Action::Offload;
      plan.decisions[b].reason = "makes room for places";
    }
  widenGaps(problem, plan);
  return placeTransfers(problem, peak, plan, {false}) ? std::optional(std::move(plan)) : std::nullopt;
}

// Absence by absence, as a tensor may have several.
bool giveBack(const Problem &problem, Bytes memory, Plan &plan) {
  Room room(problem, memory, plan);
  const std::vector<Accesses> accesses = accessesOf(problem);
  std::vector<int> away;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (plan.decisions[b].action == Action::Offload)
      away.push_back(b);
  std::stable_sort(away.begin(), away.end(), [&](int a, int b) { return accesses[a].first > accesses[b].first; });
  bool any = false;
  for (int b : away) {
    std::vector<Absence> &absences = plan.decisions[b].absences;
    const auto needless = std::remove_if(absences.begin(), absences.end(), [&](const Absence &absence) {
      return room.giveBack({{absence.freeBefore, absence.returnAfter}}, aligned(problem, problem.buffers[b].bytes));
    });
    any |= needless != absences.end();
    absences.erase(needless, absences.end());
    if (absences.empty())
      plan.decisions[b] = Decision();
  }
  return any;
}

Bytes smallestCopy(const Problem &problem) {
  const Link &link = problem.link;
  return static_cast<Bytes>(std::min(65536.0, link.latency * std::min(link.d2h, link.h2d)));
}

static Answer planGreedy(const Problem &problem, Bytes memory, const Options &options) {
  Plan plan = keepPlan(problem);
  plan.strategy = "greedy";
  if (peakBytes(problem, expand(problem, plan)) <= memory)
    return plan;
  if (!options.executable.has(Action::Offload))
    return Refused{"strategy 'greedy' needs action 'offload', which the target does not execute"};
  const Gaps gaps = numberKnob(options, "every", 0) > 0 ? Gaps::Every : Gaps::Longest;
  const Bytes peak =
      offloadEarliest(problem, memory, numberKnob(options, "min-copy", smallestCopy(problem)), plan, gaps);
  if (peak > memory)
    return Infeasible{peak, "offloading every activation leaves " + std::to_string(peak) + " bytes live, memory is " +
                                std::to_string(memory)};
  placeTransfers(problem, memory, plan, {true, gaps});
  return plan;
}

/// The first tensors have the longest to wait for their backward op.
std::vector<bool> greedyPrefix(const Chain &chain, double memory) {
  std::vector<bool> set(chain.uF.size(), false);
  double missing = chainPeak(chain) - memory;
  for (size_t i = 0; i < set.size() && missing > byteSlack(chain); ++i) {
    set[i] = true;
    missing -= chain.moved(i);
  }
  return set;
}

/// On chains the rule is the paper's to the letter: whole x_0..x_k.
static ChainAnswer chainGreedy(const Chain &chain, double memory, Release release, const Options &) {
  ChainAnswer answer = bestOffload(chain, memory, {greedyPrefix(chain, memory)}, release);
  if (auto *none = std::get_if<ChainInfeasible>(&answer))
    none->smallestMemory = chain.bandwidth > 0 ? chainFloor(chain) : chainPeak(chain);
  return answer;
}

Strategy greedyStrategy() {
  Strategy s{"greedy", "offload the earliest-born activations (Beaumont et al. 2020)", planGreedy, chainGreedy};
  s.knobs = {{"min-copy"}, {"every"}};
  s.actions = {Action::Offload};
  s.weaker = {"vdnn-all"};
  return s;
}

} // namespace sluice::planner
