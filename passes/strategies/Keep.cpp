// SPDX-License-Identifier: Apache-2.0
// keep: every activation stays on the device in the form its backward op reads. The baseline of every comparison.
//
// Complexity O(ops).
//
// No knobs.
//
// Fails where the step as it stands does not fit.
#include "passes/planner/Program.h"
#include "passes/strategies/Strategies.h"

namespace sluice::planner {

static Answer planKeep(const Problem &problem, Bytes memory, const Options &) {
  const Bytes peak = peakBytes(problem, expand(problem, keepPlan(problem)));
  if (peak > memory)
    return Infeasible{peak, "keeping everything needs " + std::to_string(peak) + " bytes, memory is " +
                                std::to_string(memory)};
  return keepPlan(problem);
}

ChainAnswer chainKeep(const Chain &chain, double memory, Release release, const Options &) {
  return offloadChain(chain, memory, std::vector<bool>(chain.uF.size(), false), release);
}

Strategy keepStrategy() {
  Strategy s{"keep", "every activation stays on the device", planKeep, chainKeep};
  s.reference = true;
  s.takenOver = {0, 0};
  return s;
}

} // namespace sluice::planner
