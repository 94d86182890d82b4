// SPDX-License-Identifier: Apache-2.0
// Training steps: their rates, their batches, their losses.
#pragma once

#include "runtime/program/Batches.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/Log.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/Schedule.h"

#include <chrono>
#include <deque>
#include <functional>

namespace sluice {

/// What a step was and gave.
struct StepResult {
  int64_t step, epoch;
  int turn = 0;                                           ///< of Program::turns
  std::string name = {};                                  ///< of the loss: "loss", "discriminator.loss"
  float loss = 0;                                         ///< mean over the targets that count of all its batches
  std::vector<std::pair<std::string, double>> parts = {}; ///< losses of a sum or of its turn, by their names
  int64_t emptyBatches = 0;                               ///< in which none counts
  float norm = 0;                                         ///< of all gradients, where they are clipped by it
  float learningRate = 0;
  bool epochEnds = false;
  LossScaling::Seen scale = {}; ///< after it
  double mixed = 0;             ///< mean share of its batches with --mixup
  double seconds = 0;           ///< from the end of the step before, or its own begin if that was later
  double waitedSeconds = 0; ///< how long its batches' successors were still being gathered when it had done with them
};

class Step {
public:
  /// What session.state has now is what flags say; the schedule starts from that. `done` is called in order for each
  /// step that has ended, and may throw. By then the next one may be running already (Session::runsAhead):
  /// hyperparameters are that one's, and what is on the device is neither's until settle() has returned.
  Step(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
       std::function<void(const StepResult &)> done);

  /// --accumulate: batches that a step has. They may lie in two epochs.
  int64_t batches() const { return base.batches; }
  /// The same of all ranks.
  int64_t units() const { return base.units(); }
  /// The first batch that this rank has of the step whose first one is at `position`.
  Position first(Position position, const Dataset &dataset) const {
    return dataset.after(position, base.rank * base.batches);
  }

  /// Enqueues the step after `run`, of `last` of the whole training, and moves `run` on; run.step counts it before
  /// anything can fail. The batch at first(run.position) was prefetched, with `dataset` normalizing positions; leaves
  /// the next one prefetched unless the step is the last one. It has ended when this returns, unless `ahead` and the
  /// device take the next one before.
  void operator()(Batches &batches, const Dataset &dataset, RunState &run, int64_t last,
                  const std::function<bool(bool epochEnds)> &ahead);
  /// Until all steps have ended, the session synchronized.
  void settle(Batches &batches);
  bool isSettled() const { return outstanding == 0; }
  /// The same where something else has failed: does not call `done`. Whether `run` says where the session stands now,
  /// all losses finite.
  bool settleQuietly();
  /// The step that is waited for, or else the last one.
  int64_t current() const { return running.empty() ? latest : running.front().result.step; }

  /// Of a step, for the log: the losses of a sum, the rate, the mean share of its batches with --mixup, the scale of a
  /// loss that has one, and the norm of all gradients where they are clipped by it.
  void describe(const StepResult &result, LogFields &fields) const;
  /// Of all steps: the optimizer and its hyperparameters, and of the data that they train on, null: none.
  void describeAll(LogFields &fields, const Dataset *data) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    StepResult result;
    Clock::time_point begin;
    int64_t left = 0;                 ///< batches that have not ended
    std::deque<Counted> counted = {}; ///< of each of these that were enqueued
    std::vector<double> ended = {};   ///< of the others what unitFields() says, one after the other
    double enqueued = 0;              ///< weights of its batches
    std::vector<float> shares = {};   ///< of its batches, see Counted::share()
  };

  void begin(RunState &run, int64_t last);
  /// One batch, which this rank has at `own`; the next one is gathered if there are `more`.
  void enqueue(Batches &batches, RunState &run, const Dataset &dataset, Position own, bool more);
  /// Of the batch that is enqueued next: its weight in the step.
  void count(Counted counted);
  /// Before the last batch of a step that is for several ranks: what all of them weigh, and whether they go on.
  void meet(const std::vector<float> &shares);
  const std::vector<std::string> &partNames(int turn) const { return left[static_cast<size_t>(turn)].partNames; }
  /// Of the batches of all ranks, in order.
  void sum(const std::vector<double> &units, StepResult &result) const;
  /// The earliest batch has ended.
  void settleOne(Batches &batches);

  Session &session;
  const Program &program;
  const Entry &entry;
  const Arguments &arguments;
  const std::function<void(const StepResult &)> done;
  const Schedule schedule;
  const StepState base;
  LossScaling scaling;
  /// What a batch of a turn leaves.
  struct Left {
    std::vector<Tensor> scalars;        ///< loss, norm, scale, skipped, then the losses of a sum
    std::vector<std::string> partNames; ///< of those losses: "boxes.loss"
  };
  std::vector<Left> left; ///< by turns
  std::deque<Running> running;
  int outstanding = 0;  ///< batches
  bool isWhole = false; ///< all batches of the last step are enqueued, and the next one is no trouble
  int64_t latest = 0;
  Clock::time_point lastEnd;
};

} // namespace sluice
