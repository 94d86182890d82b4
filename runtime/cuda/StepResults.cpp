// SPDX-License-Identifier: Apache-2.0
// Slots of locked memory, which copies out of device memory need to be after nothing but the step.
#include "runtime/cuda/StepResults.h"

#include <algorithm>
#include <stdexcept>

namespace sluice {

StepResults::Slot::Slot() : done(cudaEventDisableTiming) {
  void *address = nullptr;
  checkCuda(cudaHostAlloc(&address, sizeof(Words), cudaHostAllocDefault), "cannot lock memory for losses");
  words = new (address) Words();
}

void StepResults::leave(cudaStream_t stream, const std::vector<const float *> &scalars) {
  if (scalars.size() > mostScalars || waiting() == 2)
    throw std::logic_error("a step leaves too much for the CPU");
  Slot &slot = slots[leaves++ % 2];
  slot.count = scalars.size();
  for (size_t i = 0; i < scalars.size(); ++i) {
    slot.words->scalars[i] = 0;
    if (scalars[i])
      checkCuda(cudaMemcpyAsync(&slot.words->scalars[i], scalars[i], sizeof(float), cudaMemcpyDeviceToHost, stream),
                "cannot read what a step has computed");
  }
  slot.notes = copyNotes(stream, slot.words->notes);
  checkCuda(cudaEventRecord(slot.done.event, stream), "cannot record an event");
}

void StepResults::take(float *scalars) {
  if (waiting() == 0)
    throw std::logic_error("no step left anything for the CPU");
  const Slot &slot = slots[takes++ % 2];
  checkCuda(cudaEventSynchronize(slot.done.event), "failed while the program ran");
  raiseNotes(slot.words->notes, slot.notes);
  std::copy_n(slot.words->scalars, slot.count, scalars);
}

} // namespace sluice
