// SPDX-License-Identifier: Apache-2.0
// Enqueueing a step returns at once, so the main thread is free to gather while the step runs, with the data set's
// other workers beside it.

#include "runtime/program/Batches.h"

namespace sluice {

Batches::Batches(Session &session, const Program &program, Dataset &dataset)
    : session(session), program(program), dataset(dataset) {}

void Batches::prefetch(Position position) {
  std::vector<void *> staging;
  for (int i = 0; i < program.inputCount; ++i)
    staging.push_back(session.toDevice.address(program.inputs[i].staging));
  dataset.gather(position, staging);
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &input = program.inputs[i];
    copyToDevice(session.toDevice, input.staging, session.nextBatch(input.slots), input.name);
  }
}

void Batches::advance() { session.batchParity = 1 - session.batchParity; }

} // namespace sluice
