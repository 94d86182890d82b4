// SPDX-License-Identifier: Apache-2.0
// Folders that appear under their name with all of their files or not at all. All errors are DataError and name the
// folder or the file.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

/// What files of a folder begin with, by which a run knows those that it may replace.
struct FileMark {
  size_t offset; ///< in the file
  std::string bytes;
};

/// A folder that is filled beside its final name and put there by commit(), when its bytes have reached the disk.
/// Without commit() nothing stays behind. A former folder of that name stays untouched until then and is replaced as a
/// whole, which is refused unless all of its files have the mark, lest somebody's files vanish with it. What writers
/// that were killed left beside it is removed.
class OutputFolder {
public:
  /// `path` may end in a slash. Throws for a name that cannot be a folder of this kind: that of a file, of a folder
  /// with other files in it, of the working directory, of a mounted file system.
  OutputFolder(const std::string &path, const FileMark &mark);
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;

  /// A file of the folder; `name` may lead into folders of it, which are made, but not out of it.
  void write(const std::string &name, const std::string &bytes);
  void commit();

private:
  void checkFormer() const;

  std::string name, partial;
  const FileMark mark;
  int holder = -1; ///< of the lock of `partial`
};

} // namespace sluice
