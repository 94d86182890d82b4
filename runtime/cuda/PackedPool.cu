// SPDX-License-Identifier: Apache-2.0
// See PackedPool.h; kernels that fill it are in ZeroValue.cu.
#include "runtime/cuda/PackedPool.h"

#include "runtime/PoolIndex.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Note.h"

#include <algorithm>
#include <string>

namespace sluice {

namespace {

/// Where the next part begins, and most of that at the end of a step.
__device__ unsigned long long used[2];
/// See PoolPlace::full.
__device__ unsigned long long full[noteWords];

__global__ void emptyKernel(unsigned long long room) {
  used[1] = max(used[1], min(used[0], room));
  used[0] = 0;
}

unsigned long long *addressOf(const void *symbol) {
  void *address = nullptr;
  checkCuda(cudaGetSymbolAddress(&address, symbol), "cannot find what the pool holds");
  return static_cast<unsigned long long *>(address);
}

[[noreturn]] void raiseFull(const unsigned long long *note) {
  throw MemoryNotAvailable("the pool has room for " + std::to_string(note[1]) + " bytes of packed activations: '" +
                           notedNode(note) + "' does not fit, and this step needs " + std::to_string(note[2]) +
                           " at least; compile with a larger codec=zvc:pool=BYTES");
}

} // namespace

PackedPool::PackedPool(char *arena, size_t arenaBytes, ArenaSizes sizes)
    : begin(arena + arenaBytes - sizes.pool), offset(arenaBytes - sizes.pool), bytes(sizes.pool),
      index(static_cast<size_t>(poolIndexBytes(static_cast<int64_t>(sizes.spill)))) {
  if (bytes > arenaBytes)
    throw std::invalid_argument("a pool of " + std::to_string(bytes) + " bytes in a host arena of " +
                                std::to_string(arenaBytes));
  if (index > bytes)
    throw MemoryNotAvailable("a pool of " + std::to_string(bytes) +
                             " bytes for packed activations has no room for its " + "index of " +
                             std::to_string(index) + "; compile with a larger codec=zvc:pool=BYTES");
  watchNotes(full, raiseFull);
  checkCuda(cudaMemset(addressOf(used), 0, sizeof used), "cannot empty the pool");
}

void PackedPool::beginStep(cudaStream_t stream) const {
  const unsigned long long room = bytes - index;
  emptyKernel<<<1, 1, 0, stream>>>(room);
}

size_t PackedPool::peakBytes() const {
  unsigned long long both[2];
  checkCuda(cudaMemcpy(both, addressOf(used), sizeof both, cudaMemcpyDeviceToHost), "cannot read what the pool held");
  const unsigned long long most = std::max(both[1], std::min<unsigned long long>(both[0], bytes - index));
  return most > 0 ? index + static_cast<size_t>(most) : 0;
}

size_t PackedPool::peakEnd() const {
  const size_t peak = peakBytes();
  return peak > 0 ? offset + peak : 0;
}

PoolPlace PackedPool::placeOf(const Tensor &slot) const {
  return {begin + index, reinterpret_cast<unsigned long long *>(begin) + slot.offset / poolIndexUnit, addressOf(used),
          addressOf(full), bytes - index};
}

} // namespace sluice
