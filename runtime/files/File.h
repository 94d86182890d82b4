// SPDX-License-Identifier: Apache-2.0
// Files that the program reads, and paths. Input is read at offsets, never mapped: pages of data sets and weights would
// count as the program's own memory, and a file that shrinks under a mapping kills it. All errors are DataError and
// name the file.
#pragma once

#include "runtime/Errors.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

/// A regular file, open for reading.
class InputFile {
public:
  explicit InputFile(const std::string &path);
  /// Takes over a descriptor; `name` is what messages call the file.
  InputFile(int descriptor, const std::string &name);
  ~InputFile();
  InputFile(InputFile &&other) noexcept;
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  /// Reads exactly `bytes` bytes; fewer are an error. Any thread.
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

/// Gives the numbers of standard streams that are closed to descriptors whose use fails, lest a file gets one of them
/// and with it what is printed. Call it first.
void openStandardStreams();

/// "cannot ACTION PATH: " and what errno says.
DataError systemError(const char *action, const std::string &path);

/// Whether the path, or any text, ends so.
bool endsWith(const std::string &path, const std::string &ending);
/// "dir/name"; creates no folder.
std::string joinPath(const std::string &folder, const std::string &name);
/// The folder that holds a path, "." for a bare name.
std::string parentFolder(const std::string &path);
/// A file name of the compiler's, which lies beside the running executable, or the shared library that this code is in;
/// an absolute path is itself.
std::string besideProgram(const std::string &name);

} // namespace sluice
