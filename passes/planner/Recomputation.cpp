// SPDX-License-Identifier: Apache-2.0
// Which ops run again, and before which op. A fixed point over "needed before position p": an op that runs again needs
// its inputs at the same position, and all its outputs come back there.
#include "passes/planner/Recomputation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace sluice::planner {

Recomputation::Recomputation(const Problem &problem)
    : problem(problem), accesses(accessesOf(problem)), writers(problem.buffers.size()),
      can(problem.buffers.size(), false), seconds(problem.buffers.size(), 0) {
  const int n = problem.ops.size();
  for (int k = 0; k < n; ++k)
    if (problem.ops[k].phase == Phase::Forward)
      for (int b : problem.ops[k].writes)
        writers[b].push_back(k);
  auto holds = [](const std::vector<int> &list, int b) { return std::find(list.begin(), list.end(), b) != list.end(); };
  // What a re-run reads must be what the last forward writer left; its own first run may be that one.
  auto stableInput = [&](int b, int op, int input) {
    const bool saved = problem.ops[op].rerun && !holds(problem.ops[op].rerun->writes, input);
    return input == b || writers[input].empty() || writers[input].back() < op + saved;
  };
  for (int b = 0; b < static_cast<int>(can.size()); ++b) {
    can[b] = !writers[b].empty();
    for (int op : writers[b]) {
      const Op &o = problem.ops[op];
      const std::vector<int> &reads = o.readsWhen(true);
      seconds[b] += o.rerun ? o.rerun->seconds : o.seconds;
      can[b] = can[b] && o.recomputable && holds(o.writesWhen(true), b) &&
               std::all_of(reads.begin(), reads.end(), [&](int input) { return stableInput(b, op, input); });
      // The first writer must not need what was in the buffer before.
      if (op == writers[b].front())
        can[b] = can[b] && !holds(reads, b);
    }
  }
  // A backward op that writes into the buffer would see its own write undone.
  for (const Op &op : problem.ops)
    if (op.phase != Phase::Forward)
      for (int b : op.writes)
        can[b] = false;
}

std::vector<int> Recomputation::closure(const std::vector<int> &buffers, double dearer) const {
  auto rate = [&](int b) { return seconds[b] / std::max<Bytes>(problem.buffers[b].bytes, 1); };
  std::set<int> closed;
  std::vector<int> work = buffers;
  while (!work.empty()) {
    const int b = work.back();
    work.pop_back();
    if (!closed.insert(b).second)
      continue;
    if (!can[b])
      return {};
    for (int op : writers[b]) {
      for (int other : problem.ops[op].writesWhen(true))
        work.push_back(other);
      for (int input : problem.ops[op].readsWhen(true))
        // The backward half does not read it, so it would be gone by then. Inputs from outside the step have no writer
        // and stay.
        if (accesses[input].firstLater < 0 && !writers[input].empty() && can[input] && rate(input) <= dearer * rate(b))
          work.push_back(input);
    }
  }
  return {closed.begin(), closed.end()};
}

void Recomputation::apply(const std::vector<int> &buffers, Plan &plan) const {
  const int never = std::numeric_limits<int>::max();
  std::vector<int> needed(problem.buffers.size(),
                          -1); // position before which a dropped buffer must be back; -1: not dropped
  std::set<int> ops;
  for (int b : buffers) {
    needed[b] = accesses[b].firstLater >= 0 ? accesses[b].firstLater : never;
    ops.insert(writers[b].begin(), writers[b].end());
    plan.decisions[b] = {};
    plan.decisions[b].action = Action::Recompute;
    plan.decisions[b].reason = "its producers run again";
  }
  std::map<int, int> before; // op -> position
  for (bool changed = true; changed;) {
    changed = false;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      int at = never;
      for (int b : problem.ops[*op].writesWhen(true))
        at = std::min(at, needed[b]);
      before[*op] = at;
      for (const auto *list : {&problem.ops[*op].writesWhen(true), &problem.ops[*op].readsWhen(true)})
        for (int b : *list)
          if (needed[b] >= 0 && needed[b] > at) {
            needed[b] = at;
            changed = true;
          }
    }
  }
  std::map<int, std::vector<int>> segments;
  for (auto [op, at] : before)
    if (at != never)
      segments[at].push_back(op);
  plan.recomputes.clear();
  for (auto &[at, list] : segments)
    plan.recomputes.push_back({at, list});
}

void Recomputation::applyAgain(const std::vector<int> &buffers, Plan &plan) const {
  const std::set<int> dropped(buffers.begin(), buffers.end());
  std::map<int, std::set<int>> segments;
  for (const Recompute &r : plan.recomputes)
    segments[r.before].insert(r.ops.begin(), r.ops.end());
  std::vector<std::vector<int>> readers(problem.buffers.size()); // backward ops and re-runs, by position
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    if (segments.count(k))
      for (int op : segments[k])
        for (int b : problem.ops[op].readsWhen(true))
          readers[b].push_back(k);
    if (problem.ops[k].phase != Phase::Forward)
      for (int b : problem.ops[k].reads)
        readers[b].push_back(k);
  }
  for (int b : buffers) {
    const bool plain = std::all_of(writers[b].begin(), writers[b].end(), [&](int op) {
      const Op &o = problem.ops[op];
      const std::vector<int> &reads = o.readsWhen(true);
      return o.writesWhen(true).size() == 1 &&
             std::all_of(reads.begin(), reads.end(), [&](int i) { return i == b || !dropped.count(i); });
    });
    for (size_t i = 1; plain && i < readers[b].size(); ++i)
      if (readers[b][i] > readers[b][i - 1] + 1)
        segments[readers[b][i]].insert(writers[b].begin(), writers[b].end());
  }
  plan.recomputes.clear();
  for (const auto &[before, ops] : segments)
    plan.recomputes.push_back({before, {ops.begin(), ops.end()}});
}

} // namespace sluice::planner
