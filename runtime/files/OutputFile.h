// SPDX-License-Identifier: Apache-2.0
// Files that appear under their name complete or not at all. All errors are DataError and name the file.
#pragma once

#include "runtime/files/File.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

/// A file that is written beside its final name and moved there by commit(), after its bytes have reached the disk.
/// Without commit() nothing stays behind and a former file of that name is untouched. The file aside has a name that no
/// other writer has, so any number of programs may write to one name: the last commit stays. What writers that were
/// killed left in the folder is removed: they no longer hold the locks of their files.
class OutputFile {
public:
  explicit OutputFile(const std::string &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Appends to what write() has written.
  void write(const void *from, size_t bytes);
  /// At any place; the next write() goes where it would have gone without.
  void writeAt(uint64_t offset, const void *from, size_t bytes);
  void commit();

private:
  void create(const std::string &folder);

  std::string name, partial;
  int descriptor = -1;
  uint64_t length = 0;
};

/// Appends all bytes of `from`, in pieces.
void copyAll(const InputFile &from, OutputFile &to);

/// What is written aside in `folder`, a file or a folder, is called by its writer and a number. Throws DataError, for
/// `name`, where there are no more numbers.
std::string partialName(const std::string &folder, int number, const std::string &name);
/// Takes the lock of what is written aside. False where another program removed it before it was locked; without locks
/// nobody removes it.
bool lockPartial(int descriptor);
/// All bytes, at a place of a file; errors are about `name`.
void writeAll(int descriptor, uint64_t offset, const void *from, size_t bytes, const std::string &name);
/// All bytes, from the start of a file that was just opened, which is closed whatever happens; errors are about `name`.
void writeAndClose(int descriptor, const std::string &bytes, const std::string &name);
/// A whole file, in place: of a folder that nobody else looks into yet. Throws DataError about `name`.
void writeFile(const std::string &path, const std::string &bytes, const std::string &name);
/// Removes what writers that were killed left in the folder.
void removeStalePartials(const std::string &folder);
/// A new name is durable only when its folder is; some file systems cannot sync folders, which is no failure.
void syncFolder(const std::string &path);

/// Whether both are one existing file, links followed, or would be if they existed.
bool isSameFile(const std::string &a, const std::string &b);

} // namespace sluice
