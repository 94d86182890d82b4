// SPDX-License-Identifier: Apache-2.0
// Reads gaps off the program's accesses, see Gaps.h.
#include "passes/planner/Gaps.h"

#include "passes/planner/Inversions.h"

#include <algorithm>

namespace sluice::planner {

/// First access of every buffer after its forward ones, re-runs and inversions included; the number of ops without one.
static std::vector<int> nextAccesses(const Problem &problem, const Plan &plan, const std::vector<Accesses> &accesses) {
  const int n = problem.ops.size();
  std::vector<int> next(problem.buffers.size(), n);
  for (size_t b = 0; b < next.size(); ++b)
    if (accesses[b].firstLater >= 0)
      next[b] = accesses[b].firstLater;
  for (const Recompute &r : plan.recomputes)
    for (int op : r.ops)
      for (const auto *list : {&problem.ops[op].readsWhen(true), &problem.ops[op].writesWhen(true)})
        for (int b : *list)
          if (r.before > accesses[b].lastForward)
            next[b] = std::min(next[b], r.before);
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (const Decision &d = plan.decisions[b]; d.action == Action::Invert && !d.absences.empty()) {
      const int position = d.absences.front().neededBy;
      next[b] = std::min(next[b], position);
      for (int source : problem.buffers[b].inversion->sources)
        next[source] = std::min(next[source], position);
    }
  return next;
}

/// Between the last access of the forward half and the next one, which a recomputation or an inversion may move
/// forward.
static std::vector<Gap> longestGaps(const Problem &problem, const Plan &plan, const std::vector<Accesses> &accesses) {
  const int n = problem.ops.size();
  const std::vector<int> next = nextAccesses(problem, plan, accesses);
  std::vector<Gap> gaps(next.size());
  for (size_t b = 0; b < next.size(); ++b)
    if (accesses[b].lastForward >= 0 && next[b] < n)
      gaps[b] = {accesses[b].lastForward + 1, next[b] - 1};
  return gaps;
}

std::vector<Gap> gapsOf(const Problem &problem, const Plan &plan) {
  return longestGaps(problem, plan, accessesOf(problem));
}

/// By buffer, the positions that access it, increasing.
static std::vector<std::vector<int>> accessedAt(const Problem &problem, const Plan &plan) {
  std::vector<std::vector<int>> at(problem.buffers.size());
  const auto note = [&](const std::vector<int> &buffers, int position) {
    for (int b : buffers)
      if (at[b].empty() || at[b].back() != position)
        at[b].push_back(position);
  };
  std::vector<std::vector<int>> inverted(problem.ops.size()); // by position
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
    if (plan.decisions[b].action == Action::Invert)
      for (const Absence &absence : plan.decisions[b].absences)
        inverted[absence.neededBy].push_back(b);
  auto again = plan.recomputes.begin();
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    for (int b : inverted[k]) {
      note({b}, k);
      note(problem.buffers[b].inversion->sources, k);
    }
    for (; again != plan.recomputes.end() && again->before == k; ++again)
      for (int op : again->ops) {
        note(problem.ops[op].readsWhen(true), k);
        note(problem.ops[op].writesWhen(true), k);
      }
    note(problem.ops[k].reads, k);
    note(problem.ops[k].writes, k);
  }
  return at;
}

// All gaps of a buffer are those between neighbouring positions of accesses, in whichever half.
std::vector<std::vector<Gap>> gapsOf(const Problem &problem, const Plan &plan, Gaps gaps) {
  std::vector<std::vector<Gap>> all(problem.buffers.size());
  if (gaps == Gaps::Longest) {
    const std::vector<Gap> longest = gapsOf(problem, plan);
    for (size_t b = 0; b < all.size(); ++b)
      if (!longest[b].empty())
        all[b] = {longest[b]};
    return all;
  }
  const std::vector<std::vector<int>> accessed = accessedAt(problem, plan);
  for (size_t b = 0; b < all.size(); ++b)
    for (size_t i = 1; i < accessed[b].size(); ++i)
      if (const Gap gap = {accessed[b][i - 1] + 1, accessed[b][i] - 1}; !gap.empty())
        all[b].push_back(gap);
  return all;
}

/// By buffer, the ops that write it in their first run, increasing.
static std::vector<std::vector<int>> writersOf(const Problem &problem) {
  std::vector<std::vector<int>> writers(problem.buffers.size());
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k)
    for (int b : problem.ops[k].writes)
      writers[b].push_back(k);
  return writers;
}

/// The absence of an offloaded buffer that takes all of a gap, from the last of its writers before.
static Absence absenceIn(Gap gap, const std::vector<int> &writers) {
  const auto after = std::lower_bound(writers.begin(), writers.end(), gap.first);
  return {after == writers.begin() ? -1 : *std::prev(after), gap.first, gap.last, gap.last + 1};
}

// Inversions first: when they run decides which gaps their sources have. Buffers that visit have their own absence,
// which withVisits() places.
void widenGaps(const Problem &problem, Plan &plan, Gaps gaps) {
  placeInversions(problem, plan);
  const std::vector<Accesses> accesses = accessesOf(problem);
  const std::vector<Gap> longest = longestGaps(problem, plan, accesses);
  const bool all = gaps == Gaps::Every;
  const auto every = all ? gapsOf(problem, plan, gaps) : std::vector<std::vector<Gap>>();
  const auto writers = all ? writersOf(problem) : std::vector<std::vector<int>>();
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    Decision &d = plan.decisions[b];
    if (!factsOf(d.action).returns || problem.buffers[b].visits)
      continue;
    d.absences.clear();
    const bool offloaded = d.action == Action::Offload;
    if (offloaded && all)
      for (Gap gap : every[b])
        d.absences.push_back(absenceIn(gap, writers[b]));
    else if (!longest[b].empty())
      d.absences = {{offloaded ? accesses[b].lastForwardWrite : accesses[b].lastForward, longest[b].first,
                     longest[b].last, longest[b].last + 1}};
    if (d.absences.empty())
      d = {};
  }
}

} // namespace sluice::planner
