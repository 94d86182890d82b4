// SPDX-License-Identifier: Apache-2.0
// One training step: its rate, its batches, its loss.
#pragma once

#include "runtime/program/Batches.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/Log.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/Schedule.h"

namespace sluice {

class Step {
public:
  /// What session.state has now is what flags say; the schedule starts from that.
  Step(Session &session, const Program &program, const Entry &entry, const Arguments &arguments);

  /// --accumulate: batches that a step has. They may lie in two epochs.
  int64_t batches() const { return base.batches; }
  /// How long its batches' successors were still being gathered when it had done with them.
  double waitedSeconds() const { return waited; }

  /// Runs the step behind `run`, of `last` of the whole training, and moves `run` on; run.step counts it before
  /// anything can fail. The batch at run.position was prefetched, with `dataset` normalizing positions; leaves the next
  /// one prefetched unless the step is the last one, and the session synchronized. Returns the mean loss of its
  /// batches.
  float operator()(Batches &batches, const Dataset &dataset, RunState &run, int64_t last);

  /// Of the step that has just run, for the log: the rate, the mean share of its batches with --mixup, and the norm of
  /// all gradients where they are clipped by it, and the scale of a loss that has one.
  void describe(LogFields &fields) const;
  /// Of all steps: the optimizer and its hyperparameters, and of the data that they train on, null: none.
  void describeAll(LogFields &fields, const Dataset *data) const;

private:
  float oneBatch(Batches &batches, Position next, bool more);

  Session &session;
  const Program &program;
  const Entry &entry;
  const Arguments &arguments;
  const Schedule schedule;
  const StepState base;
  LossScaling scaling;
  double waited = 0, mixed = 0; ///< of the last step
};

} // namespace sluice
