// SPDX-License-Identifier: Apache-2.0
// V7 of verify-schedule: the runs of one launch run in any order.
#include "passes/analysis/Replay.h"

#include "ir/Together.h"

using namespace mlir;
using namespace sluice;
using sched::RunOp;

/// Whether there is a run in front of this one that can share a launch with it.
static LogicalResult checkNeighbour(const Access &access, RunOp run) {
  auto before = dyn_cast_or_null<RunOp>(run->getPrevNode());
  if (before && before.getStream() == sched::Stream::Compute && run.getStream() == sched::Stream::Compute)
    return success();
  return run.emitOpError() << "V7: step " << access.step << ", " << describe(run)
                           << ", is launched together with the run in front of it, but there is none on compute";
}

// Every pair of accesses within a launch, as launches are small: streams do not order what runs in one.
LogicalResult sluice::checkLaunches(const Replay &replay) {
  const std::vector<Access> &accesses = replay.accesses;
  size_t launch = 0; // the first access of the launch at hand
  for (size_t j = 0; j < accesses.size(); ++j) {
    const Access &second = accesses[j];
    auto run = dyn_cast<RunOp>(second.op);
    if (!run || !sched::isTogether(run)) {
      launch = accesses[launch].op == second.op ? launch : j;
      continue;
    }
    if (failed(checkNeighbour(second, run)))
      return failure();
    for (size_t i = launch; i < j; ++i) {
      const Access &first = accesses[i];
      const Place &one = replay.places[first.place], &other = replay.places[second.place];
      if (first.op != second.op && (first.writes || second.writes) && one.overlaps(other)) // V7
        return run.emitOpError() << "V7: step " << second.step << ", " << describe(run)
                                 << ", is launched together with step " << first.step << ", " << describe(first.op)
                                 << ", but '" << sched::BufferOp(other.op).getName() << "' shares bytes with '"
                                 << sched::BufferOp(one.op).getName() << "', and one of them is written";
    }
  }
  return success();
}
