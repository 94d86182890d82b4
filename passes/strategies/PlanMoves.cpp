// SPDX-License-Identifier: Apache-2.0
// Threshold accepting (G. Dueck, T. Scheuer, J. Comput. Phys. 90, 1990): a change is taken if the plan gets worse by
// less than a threshold, which falls to 0. Near the memory floor plans wait for copies that memory lets start late; a
// second re-run, or one before an earlier position where its workspace has room, takes the place of such a copy.
#include "passes/strategies/PlanMoves.h"

#include "passes/planner/Check.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace sluice::planner {

namespace {

/// A plan as moves see it.
struct State {
  std::set<std::pair<int, int>> runs; ///< (position, op): the op runs again before the position
  std::set<int> leaving;              ///< buffers to offload whether that is needed or not
  Gaps gaps = Gaps::Longest;
  Attempt made;
};

bool holds(const std::vector<int> &list, int b) { return std::find(list.begin(), list.end(), b) != list.end(); }

class PlanMoves {
public:
  PlanMoves(const Combiner &combiner, const Choice &choice)
      : combiner(combiner), problem(combiner.problem), again(combiner.recomputation), like(choice) {
    like.recomputed.clear();
    like.again = false;
    double all = 0;
    for (const Buffer &buffer : problem.buffers)
      all += static_cast<double>(buffer.bytes);
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
      if (static_cast<double>(problem.buffers[b].bytes) < smallest * all)
        continue;
      if (combiner.can(Action::Recompute) && again.possible(b) && combiner.accesses[b].firstLater >= 0)
        droppable.push_back(b);
      if (like.offloadRest && problem.buffers[b].offloadable)
        movable.push_back(b);
    }
  }

  Attempt run(Attempt start, double trials);

private:
  static constexpr double smallest = 5e-5;  ///< share of all bytes of the buffers that moves are about
  static constexpr double threshold = 4e-3; ///< of the makespan, or of the bytes where nothing fits yet
  static constexpr int reach = 8;           ///< positions by which a re-run moves at most

  State stateOf(Attempt start) const;
  void make(State &state, Seconds worthwhile) const;
  /// Re-runs are put together freely here: whether each finds what it reads is the checker's to say.
  bool sound(const Plan &plan) const { return static_cast<bool>(checkPlan(problem, plan, combiner.memory)); }
  bool change(State &state);
  bool runBefore(State &state, int buffer, int position, int depth = 0) const;
  bool needsRun(const State &state, int input, int position) const;
  void forget(State &state, int buffer, int position) const;
  bool runsAgain(const State &state, int buffer) const;
  std::vector<int> readersOf(const State &state, int buffer) const;
  bool dropOrKeep(State &state, int buffer);
  bool replaceCopy(State &state);
  bool shift(State &state);
  size_t random(size_t n) {
    seed = seed * 1664525u + 1013904223u; // Numerical Recipes' generator; its high bits are the good ones
    return (seed >> 8) % n;
  }
  int oneOf(const std::vector<int> &list) { return list[random(list.size())]; }
  std::pair<int, int> someRun(const State &state) {
    return *std::next(state.runs.begin(), static_cast<long>(random(state.runs.size())));
  }

  const Combiner &combiner;
  const Problem &problem;
  const Recomputation &again;
  Choice like;
  std::vector<int> droppable, movable;
  uint32_t seed = 1;
};

State PlanMoves::stateOf(Attempt start) const {
  State state;
  for (const Recompute &segment : start.plan.recomputes)
    for (int op : segment.ops)
      state.runs.insert({segment.before, op});
  state.leaving.insert(like.offloaded.begin(), like.offloaded.end());
  state.gaps = like.gaps;
  state.made = std::move(start);
  return state;
}

/// The plan of a state, whose re-runs that nobody needs are left out.
void PlanMoves::make(State &state, Seconds worthwhile) const {
  Plan plan = keepPlan(problem);
  for (auto [before, op] : state.runs) {
    if (plan.recomputes.empty() || plan.recomputes.back().before != before)
      plan.recomputes.push_back({before, {}});
    plan.recomputes.back().ops.push_back(op);
  }
  pruneRecomputes(problem, plan);
  plan.recomputes.erase(std::remove_if(plan.recomputes.begin(), plan.recomputes.end(),
                                       [](const Recompute &segment) { return segment.ops.empty(); }),
                        plan.recomputes.end());
  state.runs.clear();
  for (const Recompute &segment : plan.recomputes)
    for (int op : segment.ops) {
      state.runs.insert({segment.before, op});
      for (int b : problem.ops[op].writesWhen(true)) {
        plan.decisions[b].action = Action::Recompute;
        plan.decisions[b].reason = "its producers run again";
      }
    }
  Choice choice = like;
  choice.offloaded.assign(state.leaving.begin(), state.leaving.end());
  choice.gaps = state.gaps;
  state.made = combiner.complete(std::move(plan), choice, worthwhile);
}

bool PlanMoves::runsAgain(const State &state, int buffer) const {
  return std::any_of(state.runs.begin(), state.runs.end(),
                     [&](const auto &run) { return holds(problem.ops[run.second].writesWhen(true), buffer); });
}

/// Positions that read the buffer after the forward half, increasing.
std::vector<int> PlanMoves::readersOf(const State &state, int buffer) const {
  std::vector<int> readers;
  for (int k = std::max(combiner.accesses[buffer].firstLater, 0); k <= combiner.accesses[buffer].last; ++k)
    if (problem.ops[k].phase != Phase::Forward && holds(problem.ops[k].reads, buffer))
      readers.push_back(k);
  for (auto [before, op] : state.runs)
    if (holds(problem.ops[op].readsWhen(true), buffer) && !holds(problem.ops[op].writesWhen(true), buffer))
      readers.push_back(before);
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

/// Whether what a re-run reads has to be made again with it: nothing in the backward half does so up to there, and it
/// is not kept for readers of its own.
bool PlanMoves::needsRun(const State &state, int input, int position) const {
  if (!again.possible(input))
    return false;
  bool ever = false;
  for (auto [before, op] : state.runs)
    if (holds(problem.ops[op].writesWhen(true), input)) {
      if (before <= position)
        return false;
      ever = true;
    }
  return ever || combiner.accesses[input].firstLater < 0;
}

/// Makes the buffer again before a position, with all that the same ops write, and what they read where that is gone.
/// False where an op would not find what it read at first.
bool PlanMoves::runBefore(State &state, int buffer, int position, int depth) const {
  constexpr int deepest = 12; // longer chains of re-runs are for choices to propose
  if (depth > deepest || !again.possible(buffer))
    return false;
  for (int op : again.writersOf(buffer)) {
    if (!again.findsInputs(op, position))
      return false;
    if (!state.runs.insert({position, op}).second)
      continue;
    for (int other : problem.ops[op].writesWhen(true))
      if (other != buffer && !runBefore(state, other, position, depth + 1))
        return false;
    for (int input : problem.ops[op].readsWhen(true))
      if (input != buffer && needsRun(state, input, position) && !runBefore(state, input, position, depth + 1))
        return false;
  }
  return true;
}

/// Takes away what makes the buffer again before a position, -1: everywhere; and what makes there what else goes with
/// that, since some of a buffer's writers alone would leave it half made.
void PlanMoves::forget(State &state, int buffer, int position) const {
  std::vector<int> gone = {buffer};
  for (size_t i = 0; i < gone.size(); ++i)
    for (auto run = state.runs.begin(); run != state.runs.end();) {
      const std::vector<int> &made = problem.ops[run->second].writesWhen(true);
      if ((position >= 0 && run->first != position) || !holds(made, gone[i])) {
        ++run;
        continue;
      }
      for (int other : made)
        if (!holds(gone, other))
          gone.push_back(other);
      run = state.runs.erase(run);
    }
}

bool PlanMoves::dropOrKeep(State &state, int buffer) {
  if (runsAgain(state, buffer)) {
    forget(state, buffer, -1);
    return true;
  }
  const std::vector<int> readers = readersOf(state, buffer);
  return !readers.empty() && runBefore(state, buffer, readers.front());
}

/// A re-run in the place of a copy back, and perhaps more before later readers.
bool PlanMoves::replaceCopy(State &state) {
  std::vector<int> away;
  for (int b : droppable)
    if (const Decision &d = state.made.plan.decisions[b]; d.action == Action::Offload && !d.absences.empty())
      away.push_back(b);
  if (away.empty())
    return false;
  const int b = oneOf(away);
  const std::vector<Absence> &absences = state.made.plan.decisions[b].absences;
  const int position = absences[random(absences.size())].neededBy;
  if (problem.ops[position].phase == Phase::Forward || !runBefore(state, b, position))
    return false;
  state.leaving.erase(b);
  for (int reader : readersOf(state, b))
    if (reader > position + 1 && random(2) == 1 && !runBefore(state, b, reader))
      return false;
  return true;
}

/// A re-run some positions earlier or later.
bool PlanMoves::shift(State &state) {
  if (state.runs.empty())
    return false;
  const auto [from, op] = someRun(state);
  const int to = from + static_cast<int>(random(2 * reach + 1)) - reach;
  if (to < 0 || to >= static_cast<int>(problem.ops.size()) || problem.ops[to].phase == Phase::Forward)
    return false;
  const std::vector<int> &made = problem.ops[op].writesWhen(true);
  for (int b : made)
    forget(state, b, from);
  return std::all_of(made.begin(), made.end(), [&](int b) { return runBefore(state, b, to); });
}

/// One random change; false when it cannot be.
bool PlanMoves::change(State &state) {
  const size_t kind = random(8);
  if (kind == 4 || (kind == 6 && random(10) == 0)) {
    if (movable.empty())
      return false;
    if (kind == 6) {
      state.gaps = state.gaps == Gaps::Every ? Gaps::Longest : Gaps::Every;
    } else if (const int b = oneOf(movable); !state.leaving.erase(b)) {
      state.leaving.insert(b);
    }
    return true;
  }
  if (droppable.empty())
    return false;
  switch (kind) {
  case 2:
    if (state.runs.empty())
      return false;
    else if (const auto [before, op] = someRun(state); true)
      for (int b : problem.ops[op].writesWhen(true))
        forget(state, b, before);
    return true;
  case 3:
    return dropOrKeep(state, oneOf(droppable));
  case 5:
    return shift(state);
  case 6: { // copies in the place of re-runs, or the other way round
    const int b = oneOf(droppable);
    if (like.offloadRest && runsAgain(state, b))
      state.leaving.insert(b);
    else
      state.leaving.erase(b);
    return dropOrKeep(state, b);
  }
  case 7:
    return replaceCopy(state);
  default: {
    const int b = oneOf(droppable);
    const std::vector<int> readers = readersOf(state, b);
    return !readers.empty() && runBefore(state, b, oneOf(readers));
  }
  }
}

/// Whether a search goes on from `to` when it is worse than `from` by no more than a share.
bool goesOn(const Attempt &from, const Attempt &to, double share) {
  if (to.feasible != from.feasible)
    return to.feasible;
  return to.feasible ? to.makespan <= from.makespan * (1 + share)
                     : static_cast<double>(to.peak) <= static_cast<double>(from.peak) * (1 + share);
}

// A change that cannot be costs no trial, but the search has an end all the same.
Attempt PlanMoves::run(Attempt start, double trials) {
  if (droppable.empty() && movable.empty())
    return start;
  constexpr double each = 60; // more than so many of one buffer find nothing new
  trials = std::min(trials, each * static_cast<double>(droppable.size() + movable.size()));
  State current = stateOf(std::move(start));
  Attempt best = current.made;
  double left = trials;
  for (double proposals = 4 * trials; left > 0 && proposals > 0; --proposals) {
    State next = current;
    bool possible = true;
    for (size_t changes = 1 + (random(3) == 0) + (random(6) == 0); changes > 0 && possible; --changes)
      possible = change(next);
    if (!possible)
      continue;
    --left;
    make(next, best.feasible ? best.makespan * (1 + threshold) : std::numeric_limits<Seconds>::infinity());
    const double share = threshold * left / trials * static_cast<double>(random(1024) * random(1024)) / (1 << 20);
    if (!goesOn(current.made, next.made, share) || (next.made.feasible && !sound(next.made.plan)))
      continue;
    current = std::move(next);
    improve(best, current.made);
  }
  return best;
}

} // namespace

Attempt withMoves(const Combiner &combiner, const Choice &choice, Attempt start, double trials) {
  return PlanMoves(combiner, choice).run(std::move(start), trials);
}

} // namespace sluice::planner
