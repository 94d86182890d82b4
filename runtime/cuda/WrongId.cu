// SPDX-License-Identifier: Apache-2.0
// The one place for notes of ids that name nothing.
#include "runtime/cuda/Device.h"
#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Note.h"

namespace sluice {

static __device__ unsigned long long wrong[noteWords];

[[noreturn]] static void raiseWrongId(const unsigned long long *note) {
  throw wrongId(static_cast<IdUse>(note[1]), notedNode(note), static_cast<int64_t>(note[2]),
                static_cast<int64_t>(note[3]), static_cast<int64_t>(note[4]));
}

IdNote idNote(IdUse use, const char *node) {
  static void *const address = [] {
    void *found = nullptr;
    checkCuda(cudaGetSymbolAddress(&found, wrong), "cannot find what kernels noted");
    return found;
  }();
  watchNotes(wrong, raiseWrongId);
  return {static_cast<unsigned long long *>(address), reinterpret_cast<uintptr_t>(node), use};
}

} // namespace sluice
