// SPDX-License-Identifier: Apache-2.0
// The one place for notes of ids that name nothing.
#include "runtime/cuda/WrongId.h"

#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Note.h"

namespace sluice {

namespace {

__device__ unsigned long long wrong[5];
bool indexes = false;

} // namespace

IdNote idNote(IdUse use, const char *node) {
  static void *const address = [] {
    void *found = nullptr;
    checkCuda(cudaGetSymbolAddress(&found, wrong), "cannot find what kernels noted");
    return found;
  }();
  indexes = true;
  return {static_cast<unsigned long long *>(address), reinterpret_cast<uintptr_t>(node), use};
}

void checkIds() {
  if (!indexes)
    return;
  unsigned long long note[5];
  if (!takeNote(wrong, note))
    return;
  throw wrongId(static_cast<IdUse>(note[1]), reinterpret_cast<const char *>(static_cast<uintptr_t>(note[0])),
                static_cast<int64_t>(note[2]), static_cast<int64_t>(note[3]), static_cast<int64_t>(note[4]));
}

} // namespace sluice
