// SPDX-License-Identifier: Apache-2.0
// Turns offload sets into answers.
#include "passes/strategies/ChainPlan.h"

#include <algorithm>

namespace sluice::planner {

ChainAnswer offloadChain(const Chain &chain, double memory, const std::vector<bool> &offloaded, Release release) {
  if (chain.bandwidth == 0 && std::find(offloaded.begin(), offloaded.end(), true) != offloaded.end())
    return Refused{"the strategy offloads, and the problem's 'bandwidth' is 0"};
  std::optional<ChainTimeline> timeline = simulateChain(chain, memory, offloaded, release);
  if (!timeline)
    return ChainInfeasible{chainNeed(chain, offloaded), "the chosen tensors do not make enough room"};
  ChainPlan plan;
  for (bool off : offloaded)
    plan.actions.push_back(off ? Action::Offload : Action::Keep);
  plan.timeline = std::move(*timeline);
  return plan;
}

void takeBetter(ChainAnswer &best, ChainAnswer answer) {
  auto *plan = std::get_if<ChainPlan>(&answer), *bestPlan = std::get_if<ChainPlan>(&best);
  auto *none = std::get_if<ChainInfeasible>(&answer), *bestNone = std::get_if<ChainInfeasible>(&best);
  if ((plan && (!bestPlan || plan->timeline.makespan < bestPlan->timeline.makespan)) ||
      (none && bestNone && none->smallestMemory < bestNone->smallestMemory))
    best = std::move(answer);
}

ChainAnswer bestOffload(const Chain &chain, double memory, const std::vector<std::vector<bool>> &sets,
                        Release release) {
  ChainAnswer best = ChainInfeasible{chainPeak(chain), "keeping everything does not fit"};
  for (const std::vector<bool> &set : sets) {
    const bool any = std::find(set.begin(), set.end(), true) != set.end();
    if (any && chain.bandwidth == 0)
      continue;
    takeBetter(best, offloadChain(chain, memory, set, release));
  }
  return best;
}

} // namespace sluice::planner
