// SPDX-License-Identifier: Apache-2.0
// An arena: one mapping of exactly the planned bytes between two guard zones. Pages come zeroed and are taken when
// first touched, but whether the machine has them is asked before.
#pragma once

#include "runtime/host/Faults.h"

#include <cstddef>

namespace sluice {

/// Makes the new file `file` (--offload-to) for the arena `name`, with all of its bytes on the disk, and takes its name
/// away, so that it vanishes with the process. Returns its descriptor, which the caller closes. Throws
/// MemoryNotAvailable, also where there is a file or a link of that name or the disk is full.
int reserveFile(const char *name, const char *file, size_t bytes);

class Arena {
public:
  /// `name` appears in errors. With `file`, the bytes live in that file.
  Arena(const char *name, size_t bytes, const char *file, const Faults &faults);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *base() const { return data; }
  size_t size() const { return bytes; }
  /// Throws std::runtime_error when a guard zone was written to.
  void checkGuards() const;

private:
  static constexpr size_t guard = 4096;
  const char *name;
  size_t bytes, mapped;
  char *mapping = nullptr, *data = nullptr;
};

} // namespace sluice
