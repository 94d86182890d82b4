// SPDX-License-Identifier: Apache-2.0
// No loader thread is needed: enqueueing a step returns at once, so the main thread is free while the step runs. Beside
// a GPU's step it takes the other cores too, which would be too slow alone; on the host they compute.

#include "runtime/program/Batches.h"

#include "runtime/Kernels.h"

namespace sluice {

Batches::Batches(Session &session, const Program &program, Dataset &dataset)
    : session(session), program(program), dataset(dataset) {}

void Batches::prefetch(Position position) {
  const int helpers = runtimeTarget() == Target::Cuda ? threads() : 1;
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &input = program.inputs[i];
    dataset.gather(i, position, session.toDevice.address(input.staging), helpers);
    copyToDevice(session.toDevice, input.staging, session.nextBatch(input.slots), input.name);
  }
}

void Batches::advance() { session.batchParity = 1 - session.batchParity; }

} // namespace sluice
