// SPDX-License-Identifier: Apache-2.0
// PKWARE's APPNOTE 6.3.3: local headers (4.3.7), directory (4.3.12), its end (4.3.14 to 4.3.16), zip64 (4.5.3).

#include "runtime/files/ZipWriter.h"

#include <stdexcept>
#include <zlib.h>

namespace sluice {

static constexpr uint64_t largest = 0xffffffff; ///< from here on zip64 says it

/// Numbers of so many bytes, the lowest first.
static std::string number(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

/// Version 4.5, names in UTF-8, stored, at 13:37:46 on the first day of 1980.
static std::string common() {
  return number(45, 2) + number(1 << 11, 2) + number(0, 2) + number(0x6cb7, 2) + number(0x21, 2);
}

std::string zipMark() { return "PK\x03\x04" + common(); }

void ZipWriter::put(const std::string &bytes) {
  file.writeAt(at, bytes.data(), bytes.size());
  at += bytes.size();
}

static std::string sizes(uint64_t bytes) {
  return number(std::min(bytes, largest), 4) + number(std::min(bytes, largest), 4);
}

size_t ZipWriter::begin(const std::string &name, uint64_t bytes) {
  const uint64_t header = at;
  const std::string wide = bytes >= largest ? number(1, 2) + number(16, 2) + number(bytes, 8) + number(bytes, 8) : "";
  put(zipMark() + number(0, 4) + sizes(bytes) + number(name.size(), 2) + number(wide.size(), 2) + name + wide);
  members.push_back({name, header, at, bytes, bytes});
  at += bytes;
  return members.size() - 1;
}

void ZipWriter::write(size_t member, const void *from, size_t bytes) {
  Member &to = members[member];
  if (bytes > to.left)
    throw std::logic_error("member '" + to.name + "' has more bytes than it was begun with");
  file.writeAt(to.at, from, bytes);
  to.at += bytes, to.left -= bytes;
  const auto *next = static_cast<const Bytef *>(from);
  for (size_t done = 0; done < bytes; done += size_t{1} << 30)
    to.sum =
        static_cast<uint32_t>(crc32(to.sum, next + done, static_cast<uInt>(std::min(bytes - done, size_t{1} << 30))));
}

/// Checksums go into the headers of their members.
void ZipWriter::finish() {
  for (const Member &m : members) {
    if (m.left != 0)
      throw std::logic_error("member '" + m.name + "' lacks bytes that it was begun with");
    const std::string sum = number(m.sum, 4);
    file.writeAt(m.header + 14, sum.data(), sum.size());
  }
  const uint64_t directory = at;
  for (const Member &m : members) {
    std::string wide = m.bytes >= largest ? number(m.bytes, 8) + number(m.bytes, 8) : "";
    wide += m.header >= largest ? number(m.header, 8) : "";
    const std::string extra = wide.empty() ? "" : number(1, 2) + number(wide.size(), 2) + wide;
    put("PK\x01\x02" + number(45, 2) + common() + number(m.sum, 4) + sizes(m.bytes) + number(m.name.size(), 2) +
        number(extra.size(), 2) + number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) +
        number(std::min(m.header, largest), 4) + m.name + extra);
  }
  const uint64_t end = at, bytes = end - directory, count = members.size();
  if (directory >= largest)
    put("PK\x06\x06" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 4) + number(0, 4) + number(count, 8) +
        number(count, 8) + number(bytes, 8) + number(directory, 8) + "PK\x06\x07" + number(0, 4) + number(end, 8) +
        number(1, 4));
  put("PK\x05\x06" + number(0, 2) + number(0, 2) + number(count, 2) + number(count, 2) + number(bytes, 4) +
      number(std::min(directory, largest), 4) + number(0, 2));
}

} // namespace sluice
