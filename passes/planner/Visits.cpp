// SPDX-License-Identifier: Apache-2.0
// Each visitor asks for the positions that its copies need to be hidden, twice over, since they queue with those of its
// neighbours; of those, for half and half again until there is room. Where ops run again before its own, it comes in
// front of them if there is room beside them, else as planned before, between them and its op.
#include "passes/planner/Visits.h"

#include "passes/planner/Program.h"
#include "passes/planner/Room.h"
#include "passes/planner/Simulate.h"

#include <algorithm>
#include <map>

namespace sluice::planner {

bool hasVisitors(const Problem &problem) {
  return std::any_of(problem.buffers.begin(), problem.buffers.end(), [](const Buffer &b) { return b.visits; });
}

namespace {

/// Visitors in the order of their buffers, each in what room the ones before have left.
class Visits {
public:
  Visits(const Problem &problem, Bytes memory, Plan &plan)
      : problem(problem), plan(plan), room(problem, memory, plan), seconds(problem.ops.size(), 0) {
    comeBeforePositions();
    for (const Step &step : expand(problem, plan).steps)
      seconds[step.position] += secondsOf(problem, plan, step);
  }

  void run() {
    for (size_t b = 0; b < plan.decisions.size(); ++b)
      if (problem.buffers[b].visits && !plan.decisions[b].absences.empty())
        widen(static_cast<int>(b));
  }

private:
  /// Every visitor comes right before the position of its op and leaves right after it, but where ops run again there
  /// that leave no room for it.
  void comeBeforePositions() {
    for (const Recompute &again : plan.recomputes)
      for (int b : problem.ops[again.before].writes)
        if (problem.buffers[b].visits && !problem.buffers[b].born && stays.count(b) == 0)
          stays[b] = !room.giveBack({{again.before, again.before}}, aligned(problem, problem.buffers[b].bytes));
    for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k)
      for (int b : problem.ops[k].writes)
        if (const auto met = stays.find(b);
            problem.buffers[b].visits && !problem.buffers[b].born && (met == stays.end() || !met->second))
          plan.decisions[b] = {Action::Offload, {}, {{k, k + 1, k - 1, k}}, where};
    goAfterPositions();
  }

  /// What is made in the step goes right after the op that sends it; it is said to come when it is made.
  void goAfterPositions() {
    const std::vector<Accesses> accesses = accessesOf(problem);
    for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k)
      for (int b : problem.ops[k].sends) {
        const int made = accesses[b].first;
        plan.decisions[b] = {Action::Offload, {}, {{k, k + 1, made - 1, made}}, "goes home"};
      }
  }

  /// Earlier and later, each by itself: room may be on one side alone. What is given to the visitor is taken from the
  /// room of those that follow.
  void widen(int b) {
    Absence &absence = plan.decisions[b].absences.front();
    const Bytes bytes = aligned(problem, problem.buffers[b].bytes);
    const int first = absence.neededBy, last = absence.leaveAfter;
    for (int ahead = distance(first, -1, 2 * copySeconds(problem, b, {}, false)); ahead > 0; ahead /= 2)
      if (!problem.buffers[b].born && room.giveBack({{first - ahead, first - 1}}, bytes)) {
        absence.returnAfter = first - ahead - 1;
        break;
      }
    for (int after = distance(last, 1, 2 * copySeconds(problem, b, {}, true)); after > 0; after /= 2)
      if (!problem.buffers[b].dropped && room.giveBack({{last + 1, last + after}}, bytes)) {
        absence.freeBefore = last + after + 1;
        break;
      }
  }

  /// How many positions beside `position` take so long, on one side.
  int distance(int position, int side, Seconds needed) const {
    int count = 0;
    for (int k = position + side; k >= 0 && k < static_cast<int>(seconds.size()) && needed > 0; k += side) {
      needed -= seconds[k];
      ++count;
    }
    return count;
  }

  const Problem &problem;
  const char *const where = visitFromRanks(problem) ? "in shares of all ranks" : "at home elsewhere";
  Plan &plan;
  Room room;
  std::map<int, bool> stays;    ///< by visitor whose op others run again before: whether it comes between them
  std::vector<Seconds> seconds; ///< of compute, by position
};

} // namespace

Plan withVisits(const Problem &problem, Bytes memory, Plan plan) {
  Visits(problem, memory, plan).run();
  return plan;
}

} // namespace sluice::planner
