// SPDX-License-Identifier: Apache-2.0
// A strategy plans as if compute waited for every visitor, which leaves the link free for activations and all memory to
// them, and visitors get what is left. Where much visits, both are wrong: copies of activations queue with those of
// visitors, and these come too late. So it plans once more beside them, and the faster plan is taken.
#include "passes/strategies/VisitorRoom.h"

#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Visits.h"
#include "passes/strategies/Strategies.h"
#include "passes/strategies/WithinBudget.h"

#include <algorithm>

namespace sluice::planner {

/// Lets visitors come ahead and leave later where that is faster, in what room the plan leaves; without a budget in its
/// own arena.
static void placeVisitors(const Problem &problem, Bytes budget, const Options &options, Plan &plan) {
  const Bytes most = budget < noBudget ? budget : plan.arenaBytes;
  Bytes inner = most;
  for (int attempt = 0; attempt < 5; ++attempt) {
    Plan ahead = withVisits(problem, attempt < 4 ? inner : 0, plan); // at last with no room but for themselves
    measure(problem, options, most, ahead);
    if (ahead.arenaBytes > most) {
      inner = tightened(problem, ahead, inner, most);
      continue;
    }
    if (simulate(problem, ahead).makespan <= simulate(problem, plan).makespan) {
      plan = checked(problem, ahead, most);
      return;
    }
    attempt = std::max(attempt, 3);
  }
}

static Seconds computeSeconds(const Problem &problem) {
  Seconds seconds = 0;
  for (const Op &op : problem.ops)
    seconds += op.seconds;
  return seconds;
}

/// Adds to workspaces a part of the bytes of visitors that are there before or after their own op.
static void takeRoom(const Problem &problem, double part, std::vector<Op> &ops) {
  const Plan ahead = withVisits(problem, noBudget, keepPlan(problem));
  std::vector<Bytes> room(ops.size(), 0);
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    for (const Absence &absence : ahead.decisions[b].absences) {
      const int first = problem.buffers[b].born ? absence.leaveAfter + 1 : absence.returnAfter + 1;
      for (int k = first; k < absence.freeBefore; ++k)
        if (k < absence.neededBy || k > absence.leaveAfter)
          room[k] += aligned(problem, problem.buffers[b].bytes);
    }
  for (size_t k = 0; k < ops.size(); ++k) {
    const Bytes more = static_cast<Bytes>(part * static_cast<double>(room[k]));
    ops[k].workspace += more;
    for (Alternative &alternative : ops[k].alternatives)
      alternative.workspace += more;
  }
}

Problem besideVisitors(const Problem &problem, double room) {
  constexpr double leastShare = 0.02; // of the link, where visitors take all of it
  Problem beside = problem;
  if (room > 0)
    takeRoom(problem, room, beside.ops);
  Seconds out = 0, in = 0;
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    Buffer &buffer = beside.buffers[b];
    if (!buffer.visits)
      continue;
    const double bytes = static_cast<double>(buffer.bytes);
    out += buffer.dropped ? 0 : problem.visitorsLink.latency + bytes / problem.visitorsLink.d2h;
    in += buffer.born ? 0 : problem.visitorsLink.latency + bytes / problem.visitorsLink.h2d;
    buffer.visits = buffer.dropped = buffer.born = false;
  }
  for (Op &op : beside.ops)
    op.sends.clear();
  beside.visitorsLink = {};
  if (const Seconds compute = computeSeconds(problem); problem.visitorsHome == problem.home && compute > 0) {
    beside.link.d2h *= std::max(leastShare, 1 - out / compute);
    beside.link.h2d *= std::max(leastShare, 1 - in / compute);
    beside.link.duplex *= std::max(leastShare, 1 - std::max(out, in) / compute);
  }
  return beside;
}

Answer withVisitors(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options,
                    Answer answer) {
  Plan *best = hasVisitors(problem) ? std::get_if<Plan>(&answer) : nullptr;
  if (!best)
    return answer;
  placeVisitors(problem, budget, options, *best);
  if (strategy.reference || budget >= noBudget)
    return answer;
  constexpr double worthwhile = 1.005; // times compute alone
  const std::vector<double> rooms = options.sketch ? std::vector<double>{1} : std::vector<double>{0, 0.5, 1};
  for (const double room : rooms) {
    Seconds span = simulate(problem, *best).makespan;
    if (span <= worthwhile * computeSeconds(problem))
      break;
    KnownPlans known;
    Options apart = options;
    apart.known = &known;
    Answer other = Planner(besideVisitors(problem, room), strategy, apart).sketch(budget);
    Plan *plan = std::get_if<Plan>(&other);
    if (!plan)
      continue;
    measure(problem, options, budget, *plan);
    if (plan->arenaBytes > budget)
      continue;
    placeVisitors(problem, budget, options, *plan);
    if (simulate(problem, *plan).makespan < span)
      *best = std::move(*plan);
  }
  return answer;
}

} // namespace sluice::planner
