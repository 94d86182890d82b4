// SPDX-License-Identifier: Apache-2.0
// Enqueueing a step returns at once, so the main thread is free to gather while the step runs, with the data set's
// other workers beside it.

#include "runtime/program/Batches.h"

#include <algorithm>

namespace sluice {

Batches::Batches(Session &session, const Program &program, Dataset &dataset)
    : session(session), program(program), dataset(dataset) {}

/// Of the batch that lies in the staging slots, by the loss of one output.
static int64_t countTargets(Session &session, const Program &program, const Output &output) {
  if (output.target < 0 || program.otherMean || hasLoss(output, "ctc"))
    return program.batch;
  const Input &target = program.inputs[output.target];
  const int64_t all = target.staging.shape.elements();
  if (target.ignoreIndex == Loss::none || hasLoss(output, "mse"))
    return all;
  const void *values = session.toDevice.address(target.staging);
  const auto without = [&](const auto *first, auto ignored) { return all - std::count(first, first + all, ignored); };
  return target.staging.type == DataType::F32
             ? without(static_cast<const float *>(values), static_cast<float>(target.ignoreIndex))
             : without(static_cast<const int64_t *>(values), target.ignoreIndex);
}

void Batches::gather(Position position) {
  std::vector<void *> staging;
  for (int i = 0; i < program.inputCount; ++i)
    staging.push_back(session.toDevice.address(program.inputs[i].staging));
  dataset.gather(position, staging);
  countedNext.clear();
  for (int i = 0; i < program.outputCount; ++i)
    countedNext.push_back(countTargets(session, program, program.outputs[i]));
  gathered = Clock::now();
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &input = program.inputs[i];
    copyToDevice(session.toDevice, input.staging, session.nextBatch(input.slots), {input.name, OpRole::Batch});
  }
}

void Batches::prefetch(Position position) {
  // A thread of its own sees the step's end: this one is busy, and the copies must follow its gathering at once.
  stepEnd = std::async(std::launch::async, [wait = session.stepEnd()] {
    wait();
    return Clock::now();
  });
  gather(position);
}

void Batches::prefetchAlone(Position position) {
  gather(position);
  session.synchronize();
}

double Batches::waitedSeconds() {
  return stepEnd.valid() ? std::max(0.0, std::chrono::duration<double>(gathered - stepEnd.get()).count()) : 0;
}

void Batches::advance() {
  session.batchParity = 1 - session.batchParity;
  countedNow = countedNext;
}

} // namespace sluice
