// SPDX-License-Identifier: Apache-2.0
// The two arenas of a program: one cudaMalloc and one cudaHostAlloc of exactly the planned bytes, with a guard zone on
// both sides in poison mode.
#pragma once

#include "runtime/Tensor.h"

namespace sluice {

class Arena {
public:
  /// Throws MemoryNotAvailable naming both numbers. `poisoned` fills the arena with NaN and adds guard zones.
  Arena(Space space, size_t bytes, bool poisoned);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *base() const { return data; }
  size_t size() const { return bytes; }
  /// Poison mode: throws std::runtime_error when a guard zone was written to. Nothing may be running.
  void checkGuards() const;

private:
  Space space;
  size_t bytes, guard;
  char *allocation = nullptr, *data = nullptr;
};

} // namespace sluice
