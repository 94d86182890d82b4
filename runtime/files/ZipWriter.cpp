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
  file.write(bytes.data(), bytes.size());
  at += bytes.size();
}

static std::string sizes(uint64_t bytes) {
  return number(std::min(bytes, largest), 4) + number(std::min(bytes, largest), 4);
}

void ZipWriter::begin(const std::string &name, uint64_t bytes) {
  endMember();
  members.push_back({name, at, bytes});
  left = bytes;
  const std::string wide = bytes >= largest ? number(1, 2) + number(16, 2) + number(bytes, 8) + number(bytes, 8) : "";
  put(zipMark() + number(0, 4) + sizes(bytes) + number(name.size(), 2) + number(wide.size(), 2) + name + wide);
}

void ZipWriter::write(const void *from, size_t bytes) {
  if (bytes > left)
    throw std::logic_error("member '" + members.back().name + "' has more bytes than it was begun with");
  file.write(from, bytes);
  at += bytes, left -= bytes;
  const auto *next = static_cast<const Bytef *>(from);
  for (size_t done = 0; done < bytes; done += size_t{1} << 30)
    members.back().sum = static_cast<uint32_t>(
        crc32(members.back().sum, next + done, static_cast<uInt>(std::min(bytes - done, size_t{1} << 30))));
}

/// Its checksum goes into the header before it.
void ZipWriter::endMember() {
  if (left != 0)
    throw std::logic_error("member '" + members.back().name + "' lacks bytes that it was begun with");
  if (members.empty())
    return;
  const std::string sum = number(members.back().sum, 4);
  file.writeAt(members.back().header + 14, sum.data(), sum.size());
}

void ZipWriter::finish() {
  endMember();
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
