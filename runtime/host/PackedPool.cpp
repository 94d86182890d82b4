// SPDX-License-Identifier: Apache-2.0
// See PackedPool.h.
#include "runtime/host/PackedPool.h"

#include "runtime/Stream.h"
#include "runtime/host/Codec.h"

#include <algorithm>
#include <string>

namespace sluice {

/// Vector loads of neighbours do not share lines.
constexpr size_t alignment = 64;

// A slot has room for the raw bytes, so no tensor has more elements than a quarter of the arena's bytes.
PackedPool::PackedPool(char *begin, size_t bytes, char *spill, size_t spillBytes)
    : begin(begin), spill(spill), capacity(bytes),
      offsets(static_cast<size_t>(zvcParts(static_cast<int64_t>(spillBytes / 4)) + 1)) {}

void PackedPool::beginStep() {
  std::lock_guard<std::mutex> lock(mutex);
  used = needed = 0;
  pieces.clear();
}

PackedPool::Piece PackedPool::take(const Tensor &slot, size_t bytes) {
  const size_t padded = (bytes + alignment - 1) / alignment * alignment;
  std::lock_guard<std::mutex> lock(mutex);
  needed += padded;
  Piece piece{nullptr, bytes};
  if (bytes <= capacity - used) {
    piece.data = begin + used;
    used += std::min(padded, capacity - used);
    peak = std::max(peak, used);
  } else if (spill) {
    piece.data = spill + slot.offset;
    spilled += bytes;
  }
  return pieces[slot.offset] = piece;
}

size_t PackedPool::store(const Tensor &slot, const float *x, int64_t elements) {
  const auto bytes = static_cast<size_t>(measureZeroValues(x, elements, offsets.data()));
  if (const Piece piece = take(slot, bytes); piece.data)
    packZeroValues(x, elements, offsets.data(), piece.data);
  return bytes;
}

void PackedPool::load(const Tensor &slot, float *x, int64_t elements, const char *node) const {
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
  unpackZeroValues(piece.data, piece.bytes, elements, x, node);
}

size_t PackedPool::peakBytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return peak;
}

size_t PackedPool::spilledBytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return spilled;
}

} // namespace sluice
