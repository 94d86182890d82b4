// SPDX-License-Identifier: Apache-2.0
// See PackedPool.h.
#include "runtime/host/PackedPool.h"

#include "runtime/Stream.h"
#include "runtime/host/Codec.h"
#include "runtime/kernels/BFloat16.h"

#include <algorithm>
#include <string>

namespace sluice {

/// Vector loads of neighbours do not share lines.
constexpr size_t alignment = 64;

PackedPool::PackedPool(char *begin, size_t bytes, char *spill) : begin(begin), spill(spill), capacity(bytes) {}

void PackedPool::beginStep() {
  std::lock_guard<std::mutex> lock(mutex);
  used = needed = 0;
  pieces.clear();
}

template <typename T> size_t PackedPool::store(const Tensor &slot, const T *x, int64_t elements) {
  char *end = begin + used; // which only this thread and beginStep() change
  const size_t room = capacity - used;
  const auto bytes = static_cast<size_t>(packZeroValuesDensely(x, elements, end, static_cast<int64_t>(room)));
  Piece piece{end, bytes, false};
  if (bytes > room)
    piece = {spill ? spill + slot.offset : nullptr, slot.bytes(), true};
  if (bytes > room && spill)
    packZeroValues(x, elements, piece.data);
  const size_t padded = (bytes + alignment - 1) / alignment * alignment;
  std::lock_guard<std::mutex> lock(mutex);
  needed += padded;
  if (bytes <= room)
    used += std::min(padded, room);
  else if (spill)
    spilled += bytes;
  peak = std::max(peak, used);
  pieces[slot.offset] = piece;
  return bytes;
}

template <typename T> void PackedPool::load(const Tensor &slot, T *x, int64_t elements, const char *node) const {
  Piece piece;
  {
    std::lock_guard<std::mutex> lock(mutex);
    piece = pieces.at(slot.offset);
    if (!piece.data)
      throw MemoryNotAvailable("the pool of " + std::to_string(capacity) + " bytes for packed activations is full: '" +
                               node + "' does not fit, and this step needs " + std::to_string(needed) +
                               " bytes at least; run with --offload-to FILE, which takes the rest, or compile with a "
                               "larger codec=zvc:pool=BYTES");
  }
  unpackZeroValues(piece.data, piece.bytes, elements, x, node, !piece.ownSlot);
}

template size_t PackedPool::store(const Tensor &, const float *, int64_t);
template size_t PackedPool::store(const Tensor &, const BFloat16 *, int64_t);
template void PackedPool::load(const Tensor &, float *, int64_t, const char *) const;
template void PackedPool::load(const Tensor &, BFloat16 *, int64_t, const char *) const;

size_t PackedPool::peakBytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return peak;
}

size_t PackedPool::spilledBytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return spilled;
}

} // namespace sluice
