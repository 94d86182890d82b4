// SPDX-License-Identifier: Apache-2.0
// Brings batches to the device one step ahead: while a step runs, the caller's thread gathers the next batch into the
// staging slots and its copy is enqueued behind the step's own copies.
#pragma once

#include "runtime/program/Dataset.h"

namespace sluice {

class Batches {
public:
  Batches(Session &session, const Program &program, Dataset &dataset);

  /// Gathers the batch at `position` and enqueues its copy into the slots that the running step does not read. The
  /// staging slots must be idle: the session was synchronized since the last call.
  void prefetch(Position position);

  /// How long the last prefetch went on when the step beside it had ended: what the next step waited for its data.
  double waitedSeconds() const { return waited; }

  /// Makes the prefetched batch the current one. Call before enqueueing the step that reads it, after synchronizing.
  void advance();

private:
  Session &session;
  const Program &program;
  Dataset &dataset;
  double waited = 0;
};

} // namespace sluice
