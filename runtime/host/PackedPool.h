// SPDX-License-Identifier: Apache-2.0
// The pool of zvc (`zvc:pool=BYTES`): packed tensors of one step lie one after the other in a part of the host arena
// until the step ends. The stream that stores them works in order, so that what fits does not depend on timing. What
// does not fit goes to the tensor's own slot in the spill arena; without one, the step that wants it back stops.
#pragma once

#include "runtime/Tensor.h"

#include <map>
#include <mutex>

namespace sluice {

class PackedPool {
public:
  /// `begin`, `spill`: memory of the arenas, which outlives the pool. `spill` may be null.
  PackedPool(char *begin, size_t bytes, char *spill);

  /// Forgets all tensors. Nothing of another step is running.
  void beginStep();
  /// One thread at a time. Returns the bytes of the packed form, wherever it is.
  template <typename T> size_t store(const Tensor &slot, const T *x, int64_t elements);
  /// Throws MemoryNotAvailable when there was no place for the tensor, std::runtime_error when its bytes were changed.
  template <typename T> void load(const Tensor &slot, T *x, int64_t elements, const char *node) const;

  const char *begins() const { return begin; }
  /// Most bytes in use at once, padding between tensors included, and what went to the spill arena, since the
  /// beginning.
  size_t peakBytes() const;
  size_t spilledBytes() const;

private:
  struct Piece {
    char *data; ///< null: no place
    size_t bytes;
    bool ownSlot; ///< in the spill arena
  };

  char *begin, *spill;
  size_t capacity;
  mutable std::mutex mutex; ///< of all that follows
  size_t used = 0, needed = 0, peak = 0, spilled = 0;
  std::map<size_t, Piece> pieces; ///< by offset of the slot
};

} // namespace sluice
