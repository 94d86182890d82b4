// SPDX-License-Identifier: Apache-2.0
// Depth first over sources: an inversion is placed once the inverted ones of its sources are.
#include "passes/planner/Inversions.h"

#include <algorithm>

namespace sluice::planner {

namespace {

/// Of all inversions of one plan. Positions that others need are gathered first, then each inversion is placed once its
/// sources are.
class Placement {
public:
  Placement(const Problem &problem, Plan &plan) : problem(problem), plan(plan), accesses(accessesOf(problem)) {}

  void run() {
    for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
      if (plan.decisions[b].action == Action::Invert) {
        plan.decisions[b].absences.clear();
        inverted.push_back(b);
      }
    collect();
    for (int b : inverted)
      place(b);
  }

private:
  enum class State { Open, Visiting, Done };

  void collect();
  void place(int b);
  int earliest(const Inversion &inversion);
  int best(int b, int earliest, int latest) const;

  const Problem &problem;
  Plan &plan;
  const std::vector<Accesses> accesses;
  int backward = 0; ///< first position after the forward half
  std::vector<int> inverted;
  std::vector<int> wanted;      ///< by buffer: position before which the content must be there again
  std::vector<int> last;        ///< last position that accesses it without the plan's inversions
  std::vector<int> restored;    ///< position before which its writers have run again; -1: they do not
  std::vector<int> overwritten; ///< first op of the backward half that writes into it
  std::vector<State> state;
};

/// When each content is wanted and each source is there, by the ops, by what runs again, and by other inversions.
void Placement::collect() {
  const int n = problem.ops.size(), buffers = problem.buffers.size();
  wanted.assign(buffers, n);
  last.assign(buffers, -1);
  restored.assign(buffers, -1);
  overwritten.assign(buffers, n);
  state.assign(buffers, State::Open);
  for (int b = 0; b < buffers; ++b) {
    last[b] = accesses[b].last;
    if (accesses[b].firstLater >= 0)
      wanted[b] = accesses[b].firstLater;
  }
  for (backward = n; backward > 0 && problem.ops[backward - 1].phase != Phase::Forward; --backward)
    for (int b : problem.ops[backward - 1].writes)
      overwritten[b] = backward - 1;
  std::vector<bool> ran(n, false);
  for (const Recompute &r : plan.recomputes)
    for (int op : r.ops) {
      for (const auto *list : {&problem.ops[op].readsWhen(true), &problem.ops[op].writesWhen(true)})
        for (int b : *list) {
          wanted[b] = std::min(wanted[b], r.before > accesses[b].lastForward ? r.before : n);
          last[b] = std::max(last[b], r.before);
        }
      if (!ran[op])
        for (int b : problem.ops[op].writesWhen(true))
          restored[b] = std::max(restored[b], r.before);
      ran[op] = true;
    }
  // A source must be rebuilt before what is rebuilt from it. Circles are found when they are placed.
  for (size_t round = 0; round < inverted.size(); ++round) {
    bool changed = false;
    for (int b : inverted) {
      const int before = std::min(wanted[b], problem.buffers[b].inversion->latest) - 1;
      for (int source : problem.buffers[b].inversion->sources)
        if (plan.decisions[source].action == Action::Invert && wanted[source] > before) {
          wanted[source] = before;
          changed = true;
        }
    }
    if (!changed)
      break;
  }
}

/// The first position where all sources are there; a large one when one never is.
int Placement::earliest(const Inversion &inversion) {
  const int never = std::numeric_limits<int>::max();
  int position = 0;
  for (int source : inversion.sources) {
    Decision &d = plan.decisions[source];
    if (d.action == Action::Invert)
      place(source); // may turn it into Keep
    if (accesses[source].lastForward < 0 || state[source] == State::Visiting || d.action == Action::Encode)
      return never;
    position = std::max(position, accesses[source].lastForward + 1);
    if (d.action == Action::Invert)
      position = std::max(position, d.absences.front().neededBy + 1);
    else if (d.action == Action::Recompute)
      position = std::max(position, restored[source] < 0 ? never - 1 : restored[source] + 1);
  }
  return position;
}

/// Bytes times positions decide; the later of equals.
int Placement::best(int b, int earliest, int latest) const {
  const Inversion &inversion = *problem.buffers[b].inversion;
  auto cost = [&](int position) {
    double sum = static_cast<double>(problem.buffers[b].bytes) * (wanted[b] - position);
    for (int source : inversion.sources)
      sum += static_cast<double>(problem.buffers[source].bytes) * std::max(0, position - last[source]);
    return sum;
  };
  int found = latest;
  auto consider = [&](int position) {
    if (position >= earliest && position < latest && cost(position) < cost(found))
      found = position;
  };
  consider(earliest);
  for (int source : inversion.sources)
    consider(last[source]);
  return found;
}

/// One inversion, after those of its sources (earliest()). State::Visiting tells a circle: two buffers that would be
/// rebuilt from each other are not rebuilt.
void Placement::place(int b) {
  if (state[b] != State::Open)
    return;
  state[b] = State::Visiting;
  const Inversion &inversion = *problem.buffers[b].inversion;
  const int first = std::max({earliest(inversion), accesses[b].lastForward + 2, backward});
  int latest = std::min(wanted[b], inversion.latest);
  for (int source : inversion.sources)
    latest = std::min(latest, overwritten[source]);
  Decision &d = plan.decisions[b];
  if (accesses[b].lastForward < 0 || first > latest || latest >= static_cast<int>(problem.ops.size())) {
    d = {};
  } else {
    const int position = best(b, first, latest), leaves = accesses[b].lastForward;
    d.absences = {{leaves, leaves + 1, position - 1, position}};
    for (int source : inversion.sources)
      last[source] = std::max(last[source], position);
  }
  state[b] = State::Done;
}

} // namespace

// Most plans invert nothing.
void placeInversions(const Problem &problem, Plan &plan) {
  if (std::any_of(plan.decisions.begin(), plan.decisions.end(),
                  [](const Decision &d) { return d.action == Action::Invert; }))
    Placement(problem, plan).run();
}

/// Whether an op after the forward half wrote what leaves.
static bool writtenInBackward(const Problem &problem, int buffer, const Absence &away) {
  for (int k = away.leaveAfter; k >= 0 && problem.ops[k].phase != Phase::Forward; --k)
    if (const std::vector<int> &writes = problem.ops[k].writes;
        std::find(writes.begin(), writes.end(), buffer) != writes.end())
      return true;
  return false;
}

// See the header for the three reasons: a forward reader after the return, a backward writer before it, an inversion.
bool mayRound(const Problem &problem, const Plan &plan, int buffer, Codec codec) {
  if (!rounds(codec))
    return true;
  for (const Absence &away : plan.decisions[buffer].absences)
    if ((away.neededBy >= 0 && problem.ops[away.neededBy].phase == Phase::Forward) ||
        writtenInBackward(problem, buffer, away))
      return false;
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (plan.decisions[b].action == Action::Invert) {
      const Inversion &inversion = *problem.buffers[b].inversion;
      if ((!factsOf(codec)->guardedInversion || !inversion.fromHalves) &&
          std::find(inversion.sources.begin(), inversion.sources.end(), buffer) != inversion.sources.end())
        return false;
    }
  return true;
}

} // namespace sluice::planner
