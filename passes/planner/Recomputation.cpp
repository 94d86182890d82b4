// SPDX-License-Identifier: Apache-2.0
// Which ops run again, and before which op. A fixed point over "needed before position p": an op that runs again needs
// its inputs at the same position, and all its outputs come back there.
#include "passes/planner/Recomputation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace sluice::planner {

static bool holds(const std::vector<int> &list, int b) { return std::find(list.begin(), list.end(), b) != list.end(); }

// A buffer comes back exactly if all its forward writers run again and each finds what it read before: by the end of
// the forward half nobody else has written over that, nor a backward op until then.
Recomputation::Recomputation(const Problem &problem)
    : problem(problem), accesses(accessesOf(problem)), firstOverwrite(problem.buffers.size(), problem.ops.size()),
      writers(problem.buffers.size()), can(problem.buffers.size(), false), seconds(problem.buffers.size(), 0) {
  const int n = problem.ops.size();
  for (int k = 0; k < n; ++k)
    for (int b : problem.ops[k].writes)
      if (problem.ops[k].phase == Phase::Forward)
        writers[b].push_back(k);
      else
        firstOverwrite[b] = std::min(firstOverwrite[b], k);
  const std::vector<int> latest = latestReruns();
  // What a re-run reads must be what the last forward writer left; its own first run may be that one. What it writes
  // over, as a region does that takes the places of several operands, all writers of that bring back before it.
  auto stableInput = [&](int op, int input) {
    const bool saved = problem.ops[op].rerun && !holds(problem.ops[op].rerun->writes, input);
    return holds(problem.ops[op].writesWhen(true), input) ||
           ((writers[input].empty() || writers[input].back() < op + saved) && latest[op] <= firstOverwrite[input]);
  };
  for (int b = 0; b < static_cast<int>(can.size()); ++b) {
    // A backward op that writes without reading has no use for the content.
    can[b] = !writers[b].empty() && (!overwritten(b) || holds(problem.ops[accesses[b].firstLater].reads, b));
    for (int op : writers[b]) {
      const Op &o = problem.ops[op];
      const std::vector<int> &reads = o.readsWhen(true);
      seconds[b] += o.rerun ? o.rerun->seconds : o.seconds;
      can[b] = can[b] && o.recomputable && holds(o.writesWhen(true), b) &&
               std::all_of(reads.begin(), reads.end(), [&](int input) { return stableInput(op, input); });
      // The first writer must not need what was in the buffer before.
      if (op == writers[b].front())
        can[b] = can[b] && !holds(reads, b);
    }
  }
}

/// The last position before which apply() may run a forward op again: the first backward access to what it writes, or
/// what the re-runs need that read it. What no backward op accesses is also back where other results of its writers
/// are, and all its writers run again by then; these may come after the writer that has the other result, so that it
/// takes several rounds.
std::vector<int> Recomputation::latestReruns() const {
  std::vector<int> latest(problem.ops.size(), -1), needed(problem.buffers.size(), -1);
  for (size_t b = 0; b < needed.size(); ++b)
    needed[b] = accesses[b].firstLater;
  for (bool changed = true; changed;) {
    changed = false;
    const auto raise = [&](int &position, int to) {
      changed |= to > position;
      position = std::max(position, to);
    };
    for (int k = static_cast<int>(problem.ops.size()) - 1; k >= 0; --k) {
      const Op &op = problem.ops[k];
      if (op.phase != Phase::Forward)
        continue;
      for (int b : op.writesWhen(true))
        raise(latest[k], needed[b]);
      for (const auto *list : {&op.writesWhen(true), &op.readsWhen(true)})
        for (int b : *list)
          if (accesses[b].firstLater < 0)
            raise(needed[b], latest[k]);
    }
  }
  return latest;
}

bool Recomputation::findsSame(int op, const std::vector<int> &together) const {
  const std::vector<int> &reads = problem.ops[op].readsWhen(true);
  return std::all_of(reads.begin(), reads.end(), [&](int input) {
    const bool saved = problem.ops[op].rerun && !holds(problem.ops[op].rerun->writes, input);
    return writers[input].empty() || writers[input].back() < op + saved || holds(together, writers[input].front());
  });
}

bool Recomputation::findsInputs(int op, int before) const {
  const std::vector<int> &reads = problem.ops[op].readsWhen(true);
  return std::all_of(reads.begin(), reads.end(), [&](int b) { return before <= firstOverwrite[b]; });
}

/// Whether dropping a buffer drops what its writer reads, too. Inputs from outside the step have no writer and stay.
bool Recomputation::goesWith(int input, int buffer, double dearer) const {
  auto rate = [&](int b) { return seconds[b] / std::max<Bytes>(problem.buffers[b].bytes, 1); };
  // The backward half does not read it, so it would be gone by then.
  return accesses[input].firstLater < 0 && !writers[input].empty() && can[input] &&
         rate(input) <= dearer * rate(buffer);
}

// A worklist: what an op writes goes with it, as its re-run brings back all of it.
std::vector<int> Recomputation::closure(const std::vector<int> &buffers, double dearer) const {
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
        if (goesWith(input, b, dearer))
          work.push_back(input);
    }
  }
  return {closed.begin(), closed.end()};
}

// A re-run reads what must be there by then, so that dropped inputs are needed as early as the op itself: positions
// only go down, from op to op backwards, until nothing changes.
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

// The content is the same at every re-run only where nothing else goes with it: one op, one output, inputs that stay.
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
    const bool plain = !overwritten(b) && std::all_of(writers[b].begin(), writers[b].end(), [&](int op) {
      const Op &o = problem.ops[op];
      const std::vector<int> &reads = o.readsWhen(true);
      return o.writesWhen(true).size() == 1 &&
             std::all_of(reads.begin(), reads.end(), [&](int i) { return i == b || !dropped.count(i); });
    });
    auto madeFrom = [&](int before) {
      return std::all_of(writers[b].begin(), writers[b].end(), [&](int op) { return findsInputs(op, before); });
    };
    for (size_t i = 1; plain && i < readers[b].size(); ++i)
      if (readers[b][i] > readers[b][i - 1] + 1 && madeFrom(readers[b][i]))
        segments[readers[b][i]].insert(writers[b].begin(), writers[b].end());
  }
  plan.recomputes.clear();
  for (const auto &[before, ops] : segments)
    plan.recomputes.push_back({before, {ops.begin(), ops.end()}});
}

namespace {

/// A later re-run in a plan, and the steps of the program between which its buffer is not live.
struct LaterRerun {
  int op, buffer, before;
  int first, last;
};

} // namespace

/// Second and later re-runs of ops that make one buffer anew; those are what can be left out one by one.
static std::vector<LaterRerun> laterReruns(const Problem &problem, const Program &program) {
  std::vector<LaterRerun> found;
  std::vector<int> lastAccess(problem.buffers.size(), -1);
  std::set<int> ran;
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step &step = program.steps[s];
    const std::vector<int> &reads = problem.ops[step.op].readsWhen(step.recomputed);
    const std::vector<int> &writes = problem.ops[step.op].writesWhen(step.recomputed);
    if (step.recomputed && !ran.insert(step.op).second && writes.size() == 1 && !holds(reads, writes[0]))
      found.push_back({step.op, writes[0], step.position, lastAccess[writes[0]] + 1, s - 1});
    for (const auto *list : {&reads, &writes})
      for (int b : *list)
        lastAccess[b] = s;
  }
  return found;
}

// The dearest first, as long as the buffer's bytes fit all the time between its last access and the re-run.
void Recomputation::giveBack(Bytes memory, Plan &plan) const {
  const Program program = expand(problem, plan);
  std::vector<Bytes> live = liveBytes(problem, program);
  std::vector<LaterRerun> later = laterReruns(problem, program);
  // A buffer of several writers comes back by all of them.
  later.erase(
      std::remove_if(later.begin(), later.end(), [&](const LaterRerun &r) { return writers[r.buffer].size() > 1; }),
      later.end());
  std::stable_sort(later.begin(), later.end(), [&](const LaterRerun &a, const LaterRerun &b) {
    return secondsOf(problem, plan, {a.op, 0, true}) > secondsOf(problem, plan, {b.op, 0, true});
  });
  for (const LaterRerun &r : later) {
    const Bytes bytes = aligned(problem, problem.buffers[r.buffer].bytes);
    if (std::any_of(live.begin() + r.first, live.begin() + r.last + 1, [&](Bytes b) { return b + bytes > memory; }))
      continue;
    for (int s = r.first; s <= r.last; ++s)
      live[s] += bytes;
    for (Recompute &segment : plan.recomputes)
      if (segment.before == r.before)
        segment.ops.erase(std::remove(segment.ops.begin(), segment.ops.end(), r.op), segment.ops.end());
  }
  plan.recomputes.erase(
      std::remove_if(plan.recomputes.begin(), plan.recomputes.end(), [](const Recompute &r) { return r.ops.empty(); }),
      plan.recomputes.end());
}

} // namespace sluice::planner
