// SPDX-License-Identifier: Apache-2.0
// Bisects how many tensors may leave, within a memory and for the memory that suffices.
#include "passes/plan/HostBudget.h"

#include "passes/analysis/Storages.h"

#include <map>

using namespace sluice;
using namespace sluice::planner;

namespace {

/// Mixed, with a limit of host memory.
class Search {
public:
  Search(const Problem &problem, const std::string &strategy, const Options &options, Bytes hostRoom,
         const HostBytes &hostBytes)
      : problem(problem), strategy(strategy), options(options), hostRoom(hostRoom), hostBytes(hostBytes) {
    for (size_t b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].offloadable)
        movable.push_back(static_cast<int>(b));
  }

  bool fitsHost(const Answer &answer) const {
    const Plan *plan = std::get_if<Plan>(&answer);
    return !plan || hostBytes(*plan) <= hostRoom;
  }

  /// Without a limit at first, then the largest number of tensors that may leave; not a plan when none was found.
  Answer planWithin(Bytes memory) const {
    Answer best = run(movable.size(), memory);
    if (fitsHost(best))
      return best;
    best = Infeasible{};
    // Invariant: with more than `high` movable tensors too much leaves; `low` of them fit, or are too few for the
    // device.
    for (size_t low = 0, high = movable.size(), middle = 0;; middle = (low + high + 1) / 2) {
      const Answer &trial = run(middle, memory);
      const bool fits = fitsHost(trial);
      if (fits && std::holds_alternative<Plan>(trial))
        best = trial;
      if (fits)
        low = middle;
      else
        high = middle - 1;
      if (low >= high)
        return best;
    }
  }

  /// The least memory found within which planWithin() finds a plan: `unlimited`, what the device needs without a limit
  /// of the host's, or the least that suffices for as many tensors as the host has room for.
  Bytes smallestMemory(Bytes unlimited) const {
    if (std::holds_alternative<Plan>(planWithin(unlimited)))
      return unlimited;
    const Bytes copyingNothing = needed(0); // planWithin() tries that one always
    Bytes smallest = copyingNothing;
    for (size_t low = 0, high = movable.size(); low < high;) {
      const size_t middle = (low + high + 1) / 2;
      const Bytes candidate = needed(middle);
      if (fitsHost(run(middle, candidate))) {
        smallest = std::min(smallest, candidate);
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return std::holds_alternative<Plan>(planWithin(smallest)) ? smallest : copyingNothing;
  }

  /// The least memory for plans with so many tensors that may leave, as it is printed.
  Bytes needed(size_t count) const {
    const Answer &answer = run(count, 0);
    const Infeasible *infeasible = std::get_if<Infeasible>(&answer);
    return slotBytes(infeasible ? infeasible->smallestMemory : 0);
  }
  Bytes neededWithoutHost() const { return needed(movable.size()); }

private:
  /// Where the first `count` movable tensors, in order of birth, may leave. The bisections ask for some pairs again.
  const Answer &run(size_t count, Bytes memory) const {
    auto [known, isNew] = answers.try_emplace({count, memory});
    if (isNew) {
      Problem restricted = problem;
      for (size_t i = count; i < movable.size(); ++i)
        restricted.buffers[movable[i]].offloadable = false;
      known->second = runStrategy(restricted, memory, strategy, options);
    }
    return known->second;
  }

  const Problem &problem;
  const std::string &strategy;
  const Options &options;
  const Bytes hostRoom;
  const HostBytes &hostBytes;
  std::vector<int> movable; ///< in order of birth
  mutable std::map<std::pair<size_t, Bytes>, Answer> answers;
};

} // namespace

// Strategies of papers know no limit of the host: theirs is the plan as published, and plan-memory refuses it where it
// copies too much.
Answer sluice::planWithinHost(const Problem &problem, Bytes memory, const std::string &strategy, const Options &options,
                              Bytes hostRoom, const HostBytes &hostBytes) {
  if (hostRoom < 0 || hostRoom >= noBudget || (strategy != "mixed" && strategy != "auto"))
    return runStrategy(problem, memory, strategy, options);
  const Search search(problem, strategy, options, hostRoom, hostBytes);
  Answer answer = search.planWithin(memory);
  Infeasible *infeasible = std::get_if<Infeasible>(&answer);
  if (!infeasible)
    return answer;
  // Whatever the memory, the same figure; with room for it the search went for more than it needed.
  infeasible->smallestMemory = search.smallestMemory(
      infeasible->smallestMemory > 0 ? slotBytes(infeasible->smallestMemory) : search.neededWithoutHost());
  return infeasible->smallestMemory <= memory ? search.planWithin(infeasible->smallestMemory) : answer;
}
