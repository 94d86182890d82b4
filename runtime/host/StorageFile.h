// SPDX-License-Identifier: Apache-2.0
// The arena `storage` of the host runtime: a file of the planned bytes (--offload-to) that copies write and read at
// offsets, so that no kernel ever waits for a page of it. Its stream works on it beside compute.
#pragma once

#include "runtime/host/Faults.h"

#include <cstddef>
#include <cstdint>
#include <memory>
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

  /// Copies that pack do so a piece at a time, into memory for one, which the stream of storage alone uses.
  static constexpr int64_t pieceElements = int64_t(1) << 18;
  static constexpr size_t pieceBytes = sizeof(float) * pieceElements; ///< of its raw or its packed form
  char *pieceOfStream() const { return form.get(); }

private:
  void requireWhole() const;
  [[noreturn]] void fail(const char *what, size_t offset, size_t count, int error) const;

  std::string path;
  size_t bytes;
  int descriptor;
  std::unique_ptr<char[]> form;
};

} // namespace sluice
