// SPDX-License-Identifier: Apache-2.0
// The pool of zvc (`zvc:pool=BYTES`) in locked memory: parts of packed tensors lie one after the other, in the order
// in which blocks finish them, until the step ends. In front of them is an index, an entry a part, at a place that
// follows from the tensor's slot in the spill arena, which is no memory here. Where parts do not fit, the step ends
// with MemoryNotAvailable.
#pragma once

#include "runtime/Stream.h"

#include <cuda_runtime.h>

namespace sluice {

/// What kernels know of the pool for one tensor.
struct PoolPlace {
  char *parts = nullptr;
  unsigned long long *entries = nullptr; ///< by part: its place in lines above 24 bits of bytes; 0: no place
  unsigned long long *used = nullptr;    ///< counter in device memory: where the next part begins
  unsigned long long *full = nullptr;    ///< note of a part that found no place: its node, the room, and what is needed
  unsigned long long room = 0;           ///< bytes for parts

  static constexpr unsigned long long line = 64; ///< parts begin at multiples of it
};

/// One pool a process at a time.
class PackedPool {
public:
  /// The last `sizes.pool` of an arena of locked memory, which outlives the pool. Throws MemoryNotAvailable where they
  /// have no room for the index.
  PackedPool(char *arena, size_t arenaBytes, ArenaSizes sizes);

  /// Enqueues that the pool is empty. Nothing of another step is running.
  void beginStep(cudaStream_t stream) const;
  /// Most bytes in use at once so far, the index among them, and where in the arena they end; 0: none. No stream may be
  /// running.
  size_t peakBytes() const;
  size_t peakEnd() const;

  /// Of the tensor with this slot in the spill arena.
  PoolPlace placeOf(const Tensor &slot) const;

private:
  char *begin;
  size_t offset, bytes, index;
};

} // namespace sluice
