// SPDX-License-Identifier: Apache-2.0
// The part of checkTimeline() about what all ranks do together.
#include "passes/planner/Check.h"

#include <set>
#include <sstream>

namespace sluice::planner {

std::string textOf(Seconds a) {
  std::ostringstream s;
  s.precision(12);
  s << a;
  return s.str();
}

/// What touches the op's buffers afterwards finds the exchange over.
static Status checkLater(const Problem &problem, const Event &e, const std::vector<Seconds> &starts, Seconds slack) {
  std::set<int> touched(problem.ops[e.op].reads.begin(), problem.ops[e.op].reads.end());
  touched.insert(problem.ops[e.op].writes.begin(), problem.ops[e.op].writes.end());
  for (int later = e.op + 1; later < static_cast<int>(problem.ops.size()); ++later)
    for (const auto *list : {&problem.ops[later].reads, &problem.ops[later].writes})
      for (int b : *list)
        if (touched.count(b) && starts[later] + slack < e.end)
          return Error{"op " + std::to_string(later) + " touches '" + problem.buffers[b].name + "' at " +
                       textOf(starts[later]) + ", the exchange of op " + std::to_string(e.op) + " ends at " +
                       textOf(e.end)};
  return Success{};
}

Status checkExchanges(const Problem &problem, const Timeline &timeline, const std::vector<Seconds> &starts,
                      const std::vector<Seconds> &ends) {
  const Seconds slack = 1e-9 * (1 + timeline.makespan);
  std::vector<Event> done;
  for (const Event &e : timeline.events)
    if (e.what == Event::What::Exchange)
      done.push_back(e);
  size_t next = 0;
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const Op &op = problem.ops[k];
    if (op.exchange <= 0)
      continue;
    const std::string who = "the exchange of op " + std::to_string(k) + " ";
    if (next == done.size() || done[next].op != k)
      return Error{who + "is not number " + std::to_string(next)};
    const Event e = done[next++];
    if (e.end - e.start + slack < op.exchange)
      return Error{who + "lasts " + textOf(e.end - e.start) + " seconds, it takes " + textOf(op.exchange)};
    if (e.start + slack < ends[k])
      return Error{who + "starts at " + textOf(e.start) + ", compute comes to it at " + textOf(ends[k])};
    if (Status status = checkLater(problem, e, starts, slack); !status)
      return status;
  }
  return next == done.size() ? Status(Success{}) : Error{"an exchange of no op"};
}

} // namespace sluice::planner
