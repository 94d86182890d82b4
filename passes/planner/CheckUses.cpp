// SPDX-License-Identifier: Apache-2.0
// The part of checkTimeline() about what is used at home.
#include "passes/planner/Check.h"

#include <map>

namespace sluice::planner {

namespace {

/// One gradient: used once, when it has arrived, for as long as that takes, and before it is waited for.
Status checkUse(const Buffer &buffer, const std::vector<Event> &uses, Seconds arrival, Seconds awaited, Seconds slack) {
  const std::string who = "buffer '" + buffer.name + "' ";
  if (uses.size() != 1)
    return Error{who + "is used at home " + std::to_string(uses.size()) + " times"};
  const Event &use = uses.front();
  if (use.start + slack < arrival || use.end - use.start + slack < buffer.usedAtHome)
    return Error{who + "is used at home from " + textOf(use.start) + " to " + textOf(use.end) + " for " +
                 textOf(buffer.usedAtHome) + " seconds, it is there at " + textOf(arrival)};
  if (awaited + slack < use.end)
    return Error{"position " + std::to_string(buffer.usedBefore) + " begins at " + textOf(awaited) + " and waits for " +
                 who + "used at home until " + textOf(use.end)};
  return Success{};
}

} // namespace

Status checkUsesAtHome(const Problem &problem, const Plan &plan, const Timeline &timeline,
                       const std::vector<Seconds> &starts, const std::vector<Seconds> &ends) {
  const Seconds slack = 1e-9 * (1 + timeline.makespan);
  std::map<int, std::vector<Event>> uses;
  std::map<int, Seconds> gone;
  for (const Event &e : timeline.events)
    if (e.what == Event::What::Use)
      uses[e.buffer].push_back(e);
    else if (e.what == Event::What::CopyOut)
      gone[e.buffer] = e.end;
  size_t sent = 0;
  for (size_t k = 0; k < problem.ops.size(); ++k)
    for (int b : problem.ops[k].sends) {
      const int before = problem.buffers[b].usedBefore;
      const Seconds arrival = plan.decisions[b].absences.empty() ? ends[k] : gone[b],
                    awaited = before < static_cast<int>(starts.size()) ? starts[before] : timeline.makespan;
      if (Status status = checkUse(problem.buffers[b], uses[b], arrival, awaited, slack); !status)
        return status;
      ++sent;
    }
  return sent == uses.size() ? Status(Success{}) : Error{"a buffer is used at home that no op sends there"};
}

} // namespace sluice::planner
