// SPDX-License-Identifier: Apache-2.0
// Brings batches to the device one step ahead: while a step runs, the caller's thread gathers the next batch into the
// staging slots and its copy is enqueued after the step's own copies.
#pragma once

#include "runtime/program/Dataset.h"
#include "runtime/program/Metrics.h"

#include <chrono>
#include <future>

namespace sluice {

/// What the loss of a batch is a mean over.
struct Counted {
  int64_t targets; ///< its samples, or its pixels or tokens where each has a class, but for those that are ignored
  double weight;   ///< the same, or the sum of the weights of their classes
  int64_t among;   ///< the targets that there are
  static Counted all(int64_t targets) { return {targets, static_cast<double>(targets), targets}; }
  /// 1 where all count alike.
  float share() const { return static_cast<float>(weight / static_cast<double>(among)); }
};

/// Why steps of several batches may differ from those of one large batch, as a warning says it; empty: they do not. The
/// losses of a sum reach a gradient together, so that each batch has one weight for all of them.
std::string doubtsOfAccumulation(const Program &program);
/// Says so of a run whose steps have this many.
void warnOfUnevenBatches(const std::string &name, const Program &program, int64_t batches);

class Batches {
public:
  Batches(Session &session, const Program &program, Dataset &dataset);

  /// Gathers the batch at `position` on this thread and enqueues its copy into the slots that the running step does not
  /// read. The staging slots must be idle: since the last call the session was synchronized, or Session::take()
  /// returned. Throws DataError for what cannot be gathered; then nothing is enqueued.
  void prefetch(Position position);
  /// The same where no step runs; the batch is on the device when it returns.
  void prefetchAlone(Position position);
  /// The same right before the step that takes the batch, which comes there in front of it. The staging slots are read
  /// until that step has ended, so that nothing may be prefetched beside it.
  void prefetchForOne(Position position);

  /// How long, in seconds, the last prefetch went on after the step beside it had ended: what the next step waited for
  /// its data. Blocks until that step has ended, throws what it failed with, and comes before anything else that waits
  /// for it. 0 once it was told.
  double waitedSeconds();

  /// Makes the prefetched batch the current one. Call before enqueueing the step that reads it, after synchronizing.
  void advance();
  /// Shape of the current batch: its number in Program::buckets.
  int bucket() const { return bucketNow; }
  /// Of the current batch, by the losses of a turn. Of a sum of losses that count different targets its samples.
  Counted counted(int turn = 0) const;
  /// The same of the loss of one output of the program.
  Counted countedOf(int output) const { return countedNow[0][static_cast<size_t>(output)]; }

private:
  void gather(Position position, Stream &copies);

  Session &session;
  const Program &program;
  Dataset &dataset;
  const std::vector<Program> turns;  ///< the program as each of its turns has it; of one without, itself
  int bucketNext = 0, bucketNow = 0; ///< of the prefetched batch, of the current one
  /// Of the prefetched batch, of the current one, for each output of each turn.
  std::vector<std::vector<Counted>> countedNext, countedNow;
  using Clock = std::chrono::steady_clock;
  std::future<Clock::time_point> stepEnd; ///< of the step beside the last prefetch
  Clock::time_point gathered;
};

} // namespace sluice
