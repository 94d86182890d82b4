// SPDX-License-Identifier: Apache-2.0
// Bisects how many tensors may leave.
#include "passes/HostBudget.h"

using namespace sluice;
using namespace sluice::planner;

Answer sluice::planWithinHost(const Problem &problem, Bytes memory, const std::string &strategy, const Options &options, Bytes hostRoom,
                              const HostBytes &hostBytes) {
  const auto fitsHost = [&](const Answer &answer) {
    const Plan *plan = std::get_if<Plan>(&answer);
    return !plan || hostBytes(*plan) <= hostRoom;
  };
  Answer answer = runStrategy(problem, memory, strategy, options);
  if (fitsHost(answer) || hostRoom < 0 || (strategy != "mixed" && strategy != "auto"))
    return answer;
  std::vector<int> movable; // in order of birth
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (problem.buffers[b].offloadable)
      movable.push_back(static_cast<int>(b));
  Answer best = std::move(answer);
  // Invariant: with more than `high` movable tensors too much leaves; `low` of them fit, or are too few for the device.
  for (size_t low = 0, high = movable.size(), middle = 0;; middle = (low + high + 1) / 2) {
    Problem restricted = problem;
    for (size_t i = middle; i < movable.size(); ++i)
      restricted.buffers[movable[i]].offloadable = false;
    Answer trial = runStrategy(restricted, memory, strategy, options);
    const bool fits = fitsHost(trial);
    if (fits && std::holds_alternative<Plan>(trial))
      best = std::move(trial);
    if (fits)
      low = middle;
    else
      high = middle - 1;
    if (low >= high)
      return best;
  }
}
