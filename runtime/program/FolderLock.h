// SPDX-License-Identifier: Apache-2.0
// One writer of checkpoints a folder: two programs that take turns in writing one file lose the steps of one of them.
#pragma once

#include <string>

namespace sluice {

/// Holds FOLDER/checkpoint.lock, which says who does, until it goes. The system frees the lock of a program that is
/// killed; the file that such a program leaves means nothing.
class FolderLock {
public:
  /// Creates the folder when it is missing. Throws DataError that names the holder where there is one.
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  bool take(const std::string &folder);
  void say() const;

  std::string name;
  int descriptor = -1;
};

} // namespace sluice
