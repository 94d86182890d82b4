// SPDX-License-Identifier: Apache-2.0
// Brings batches to the device one step ahead: while a step runs, the caller's thread gathers the next batch into the
// staging slots and its copy is enqueued after the step's own copies.
#pragma once

#include "runtime/program/Dataset.h"
#include "runtime/program/Metrics.h"

#include <chrono>
#include <future>

namespace sluice {

class Batches {
public:
  Batches(Session &session, const Program &program, Dataset &dataset);

  /// Gathers the batch at `position` and enqueues its copy into the slots that the running step does not read. The
  /// staging slots must be idle: the session was synchronized since the last call, or take() returned.
  void prefetch(Position position);
  /// The same where no step runs; the batch is on the device when it returns.
  void prefetchAlone(Position position);

  /// How long the last prefetch continued after the concurrent step had ended: what the next step waited for its data.
  /// Blocks until that step has ended, and comes before anything else that waits for it. 0 once it was told.
  double waitedSeconds();

  /// Makes the prefetched batch the current one. Call before enqueueing the step that reads it, after synchronizing.
  void advance();
  /// Targets of the current batch over which its loss is a mean: its samples, or its pixels or tokens where each has a
  /// class, but for those that are ignored. Of a sum of losses its samples.
  int64_t counted() const { return hasParts(program) || countedNow.empty() ? program.batch : countedNow[0]; }
  /// The same of the loss of one output of the program.
  int64_t countedOf(int output) const { return countedNow[static_cast<size_t>(output)]; }

private:
  void gather(Position position);

  Session &session;
  const Program &program;
  Dataset &dataset;
  std::vector<int64_t> countedNext, countedNow; ///< of the prefetched batch, of the current one, for each output
  using Clock = std::chrono::steady_clock;
  std::future<Clock::time_point> stepEnd; ///< of the step beside the last prefetch
  Clock::time_point gathered;
};

} // namespace sluice
