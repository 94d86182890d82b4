// SPDX-License-Identifier: Apache-2.0
// How a kernel notes an id that names nothing; for sources with kernels.
#pragma once

#include "runtime/kernels/WrongId.h"

#include <cuda_runtime.h>

namespace sluice {

/// What a kernel needs to note an id of its own; by value.
struct IdNote {
  unsigned long long *words; ///< in device memory: node (0: nothing was noted), use, id, position, limit
  unsigned long long node;   ///< its name, an address of this process
  IdUse use;

  /// Keeps the first one of all kernels.
  __device__ void operator()(int64_t id, int64_t position, int64_t limit) const {
    if (atomicCAS(&words[0], 0ull, node) != 0)
      return;
    words[1] = static_cast<unsigned long long>(use);
    words[2] = static_cast<unsigned long long>(id);
    words[3] = static_cast<unsigned long long>(position);
    words[4] = static_cast<unsigned long long>(limit);
  }
};

/// `node` must outlive the program's last step. Throws what checkCuda throws.
IdNote idNote(IdUse use, const char *node);

} // namespace sluice
