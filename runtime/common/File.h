// SPDX-License-Identifier: Apache-2.0
// Files as the program uses them. Input is read at offsets, never mapped: pages of data sets and weights would count as
// the program's own memory, and a file that shrinks under a mapping kills it. Output appears under its name complete or
// not at all. All errors are DataError and name the file.
#pragma once

#include "runtime/common/Errors.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

/// A regular file, open for reading.
class InputFile {
public:
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(InputFile &&other) noexcept;
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  /// Reads exactly `bytes` bytes.
  void readAt(uint64_t offset, void *to, size_t bytes) const;
  /// Tells the system that the pages read so far are not needed again.
  void dropPages() const;
  uint64_t size() const { return length; }
  const std::string &path() const { return name; }

private:
  std::string name;
  int descriptor = -1;
  uint64_t length = 0;
};

/// A file that is written beside its final name and moved there by commit(), after its bytes have reached the disk.
/// Without commit() nothing stays behind and a former file of that name is untouched.
class OutputFile {
public:
  explicit OutputFile(const std::string &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(const void *from, size_t bytes);
  void writeAt(uint64_t offset, const void *from, size_t bytes);
  void commit();

private:
  std::string name, partial;
  int descriptor = -1;
  uint64_t length = 0;
};

/// "dir/name"; creates no folder.
std::string joinPath(const std::string &folder, const std::string &name);
/// The folder that holds a path, "." for a bare name.
std::string parentFolder(const std::string &path);
/// A file name of the compiler's, which lies beside the running executable.
std::string besideExecutable(const std::string &name);

} // namespace sluice
