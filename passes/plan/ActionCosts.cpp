// SPDX-License-Identifier: Apache-2.0
// Adds up a simulated timeline by buffer, see ActionCosts.h.
#include "passes/plan/ActionCosts.h"

#include "passes/planner/Program.h"

#include <algorithm>

using namespace sluice;
using namespace sluice::planner;

/// The buffer for whose sake op runs again.
static int broughtBack(const Problem &problem, const Plan &plan, int op) {
  for (int b : problem.ops[op].writesWhen(true))
    if (plan.decisions[b].action == Action::Recompute)
      return b;
  return -1;
}

/// Whether the peak leaves room for `buffer` during an absence.
static bool roomToStay(const Problem &problem, const Plan &plan, const Program &program, const std::vector<Bytes> &live,
                       Bytes peak, int buffer, const Absence &away) {
  switch (away.kind()) {
  case AbsenceKind::AroundEnd:
    return false; // it has no bytes to stay in
  case AbsenceKind::Between:
    break;
  }
  const bool returns = factsOf(plan.decisions[buffer].action).returns;
  int last = returns ? program.firstStep[away.returnAfter + 1] - 1 : 0;
  for (const Life &life : program.lives)
    if (!returns && life.buffer == buffer)
      last = std::max(last, life.last);
  for (int step = program.firstStep[away.freeBefore]; step <= last; ++step)
    if (live[step] + aligned(problem, problem.buffers[buffer].bytes) > peak)
      return false;
  return true;
}

std::vector<ActionCost> sluice::actionCosts(const Problem &problem, const Plan &plan, const Timeline &timeline) {
  std::vector<ActionCost> costs(problem.buffers.size());
  for (const Event &event : timeline.events) {
    const int buffer = event.what == Event::What::Rerun ? broughtBack(problem, plan, event.op) : event.buffer;
    if (buffer >= 0 && event.what != Event::What::Run)
      costs[buffer].seconds += event.end - event.start;
  }
  for (const Wait &wait : timeline.waits)
    if (wait.buffer >= 0)
      costs[wait.buffer].stall += wait.seconds;
  const Program program = expand(problem, plan);
  const std::vector<Bytes> live = liveBytes(problem, program);
  const Bytes peak = peakBytes(problem, program);
  for (size_t b = 0; b < costs.size(); ++b)
    if (const auto &absences = plan.decisions[b].absences; !absences.empty())
      costs[b].freesNothing = std::all_of(absences.begin(), absences.end(), [&](const Absence &away) {
        return roomToStay(problem, plan, program, live, peak, static_cast<int>(b), away);
      });
  return costs;
}
