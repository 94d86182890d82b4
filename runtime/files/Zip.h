// SPDX-License-Identifier: Apache-2.0
// The directory of a zip file, and its members as files. Trusts nothing of what the file says of itself.
#pragma once

#include "runtime/files/File.h"

#include <map>

namespace sluice {

class ZipFile {
public:
  /// Throws DataError unless the file ends in a directory whose members lie within it.
  explicit ZipFile(const std::string &path);
  const std::string &path() const { return file.path(); }

  bool contains(const std::string &name) const { return members.count(name) != 0; }
  /// "a.npy, b.npy"
  std::string names() const;

  /// A member that is stored or deflated, and where in the file it begins and ends; deflated ones are unpacked first.
  struct Member {
    InputFile file;
    uint64_t begin, end;
  };
  Member open(const std::string &name) const;

private:
  struct Entry {
    int method;
    uint64_t packed, size, header; ///< bytes in the file and unpacked; offset of the header before them
  };
  void readDirectory();
  void readEntries(const std::string &directory, uint64_t count);

  InputFile file;
  std::map<std::string, Entry> members;
};

} // namespace sluice
