// SPDX-License-Identifier: Apache-2.0
// Writes zip files of stored members whose sizes are known before, as numpy.savez does, with zip64's sizes where they
// are needed.
#pragma once

#include "runtime/files/OutputFile.h"

#include <string>
#include <vector>

namespace sluice {

/// What files that are written here begin with: a time of day that no other writer has.
std::string zipMark();

class ZipWriter {
public:
  explicit ZipWriter(OutputFile &file) : file(file) {}

  /// Begins a member of exactly this many bytes. Returns its number, for write(), which brings them in any number of
  /// pieces, in order, after other members are begun as well. More bytes, or fewer at finish(), are a std::logic_error.
  size_t begin(const std::string &name, uint64_t bytes);
  void write(size_t member, const void *from, size_t bytes);
  /// After the last member; the caller commits the file.
  void finish();

private:
  struct Member {
    std::string name;
    uint64_t header, at, bytes, left;
    uint32_t sum = 0;
  };
  void put(const std::string &bytes);

  OutputFile &file;
  std::vector<Member> members;
  uint64_t at = 0; ///< end of the last member
};

} // namespace sluice
