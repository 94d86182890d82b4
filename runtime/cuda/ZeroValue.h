// SPDX-License-Identifier: Apache-2.0
// Zero values on the device: left out of copies to the host, into slots or into a pool.
#pragma once

#include "runtime/cuda/PackedPool.h"

#include <cuda_runtime.h>

namespace sluice {

/// Where a packed tensor lies: in a slot of packedBytes() in memory that the device can reach, or in the pool.
struct PackedHome {
  char *slot = nullptr;
  const PackedPool *pool = nullptr;
  Tensor place = {}; ///< its slot in the spill arena
};

/// The tensor, of floats or halves, that lies at `x`, into its home and back. `node` outlives the program.
void packZeroValues(cudaStream_t stream, const void *x, const PackedHome &home, const Tensor &tensor, const char *node);
void unpackZeroValues(cudaStream_t stream, const PackedHome &home, void *x, const Tensor &tensor);

/// From here on Session::packedBytes() counts what packZeroValues() is given and leaves of that. No stream may be
/// running, here or there.
void clearPackedTotals();

} // namespace sluice
