// SPDX-License-Identifier: Apache-2.0
// Turns offload sets into answers, and makes them faster.
#include "passes/strategies/ChainPlan.h"

#include <algorithm>
#include <initializer_list>

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

namespace {

/// Climbs from a set to faster ones. Of pairs near ones come first, since they take each other's place.
class Exchanges {
public:
  Exchanges(const Chain &chain, double memory, ChainPlan plan, Release release)
      : chain(chain), memory(memory), release(release), best(std::move(plan)),
        left(static_cast<int>(1e6 / chain.uF.size())) {
    for (Action a : best.actions)
      set.push_back(a == Action::Offload);
  }

  /// Changes of one tensor first, then exchanges of ever farther pairs, until a round finds nothing faster.
  ChainPlan run() {
    const int n = set.size();
    for (bool faster = true; faster && left > 0;) {
      faster = false;
      for (int i = 0; i < n; ++i)
        faster |= changed({i});
      for (int apart = 1; apart < n; ++apart)
        for (int i = apart; i < n; ++i)
          if (set[i] != set[i - apart])
            faster |= changed({i - apart, i});
    }
    return std::move(best);
  }

private:
  /// Whether the set is faster with these the other way round; then it stays so.
  bool changed(std::initializer_list<int> tensors) {
    if (left-- <= 0)
      return false;
    std::vector<bool> other = set;
    for (int i : tensors)
      other[i] = !other[i];
    ChainAnswer answer = offloadChain(chain, memory, other, release);
    auto *plan = std::get_if<ChainPlan>(&answer);
    if (!plan || plan->timeline.makespan >= best.timeline.makespan * (1 - 1e-9))
      return false;
    best = std::move(*plan);
    set = std::move(other);
    return true;
  }

  const Chain &chain;
  const double memory;
  const Release release;
  ChainPlan best;
  std::vector<bool> set; ///< of best
  int left;              ///< simulations
};

} // namespace

ChainPlan exchanged(const Chain &chain, double memory, ChainPlan plan, Release release) {
  return Exchanges(chain, memory, std::move(plan), release).run();
}

} // namespace sluice::planner
