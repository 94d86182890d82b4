// SPDX-License-Identifier: Apache-2.0
// The arena `storage` of the host runtime: a file of the planned bytes (--offload-to) that copies write and read at
// offsets, so that no kernel ever waits for a page of it. Its stream works on it beside compute.
#pragma once

#include "runtime/host/Faults.h"

#include <cstddef>
#include <string>

namespace sluice {

class StorageFile {
public:
  /// A new file, see reserveFile(). Poisoned, its bytes are NaN.
  StorageFile(const char *path, size_t bytes, const Faults &faults);
  ~StorageFile();
  StorageFile(const StorageFile &) = delete;
  StorageFile &operator=(const StorageFile &) = delete;

  /// All `count` bytes at `offset`, however many calls that takes. Throw MemoryNotAvailable where the disk is full or
  /// fails, or the file has lost bytes.
  void write(const char *from, size_t offset, size_t count) const;
  void read(char *to, size_t offset, size_t count) const;

  size_t size() const { return bytes; }

private:
  void requireWhole() const;
  [[noreturn]] void fail(const char *what, size_t offset, size_t count, int error) const;

  std::string path;
  size_t bytes;
  int descriptor;
};

} // namespace sluice
