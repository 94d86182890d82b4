// SPDX-License-Identifier: Apache-2.0
// One walk in issue order with a clock for each stream.
#include "passes/analysis/Lifetimes.h"

#include "ir/Together.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::RecordOp;
using sched::RunOp;
using sched::Stream;
using sched::WaitOp;

// What compute has not waited for when the program ends lives to the last step, and so does what is read after it.
Lifetimes::Lifetimes(sched::ProgramOp program) {
  for (Operation &op : program.ops()) {
    if (auto run = dyn_cast<RunOp>(op); run && run.getStream() == Stream::Compute) {
      compute(run->getOperands());
      launch(run);
    } else if (run) {
      beside(run.getStream(), run->getOperands());
    } else if (auto copy = dyn_cast<CopyOp>(op)) {
      beside(copy.getStream(), copy->getOperands());
    } else if (auto record = dyn_cast<RecordOp>(op)) {
      Clock clock = clocks[static_cast<int>(record.getStream())];
      if (record.getStream() == Stream::Compute)
        clock.steps = steps;
      events[record.getEvent()] = clock;
    } else if (auto waitOp = dyn_cast<WaitOp>(op)) {
      wait(waitOp);
    }
  }
  for (const Access &access : pending)
    lives[access.buffer].cover(steps, steps);
  for (auto buffer : program.getBody().getOps<BufferOp>())
    if (buffer.getKept())
      lives[buffer.getBuffer()].cover(steps, steps);
}

/// A kernel of compute takes its own step alone.
void Lifetimes::compute(ValueRange buffers) {
  ++steps;
  for (Value buffer : buffers)
    lives[buffer].cover(steps, steps);
  clocks[0].steps = steps;
}

/// What is launched together runs in any order: all that one of the runs uses is there in the steps of each of them.
void Lifetimes::launch(RunOp run) {
  if (!sched::isTogether(run))
    launched.clear(), launchedFrom = steps;
  launched.append(run->operand_begin(), run->operand_end());
  for (Value buffer : launched)
    lives[buffer].cover(launchedFrom, steps);
}

/// A copy may begin as soon as compute has let go of what it waits for, before ops that were issued ahead of it: its
/// buffers live from that step on. When it ends is known where compute waits for it (`pending`).
void Lifetimes::beside(Stream on, ValueRange buffers) {
  int stream = static_cast<int>(on);
  ++steps;
  int64_t position = ++clocks[stream].done[stream];
  for (Value buffer : buffers) {
    lives[buffer].cover(std::min(steps, clocks[stream].steps + 1), steps);
    pending.push_back({buffer, stream, position});
  }
}

/// A copy's bytes are in use until compute has waited for it: lives end on the compute stream, as slots are given away
/// in its order.
void Lifetimes::wait(WaitOp op) {
  Clock &clock = clocks[static_cast<int>(op.getStream())];
  clock.merge(events.lookup(op.getEvent()));
  if (op.getStream() != Stream::Compute)
    return;
  llvm::erase_if(pending, [&](const Access &access) {
    bool over = access.position <= clock.done[access.stream];
    if (over)
      lives[access.buffer].cover(steps, steps);
    return over;
  });
}
