// SPDX-License-Identifier: Apache-2.0
// PKWARE's APPNOTE 6.3: local file headers (4.3.7), central directory (4.3.12), its end (4.3.16) and the 64-bit forms
// of all (4.3.14, 4.5.3). Encrypted members and archives of several files are refused.

#include "runtime/files/Zip.h"

#include "runtime/files/Inflate.h"

#include <algorithm>

namespace sluice {

/// `bytes` of a number, the lowest first.
static uint64_t number(const std::string &from, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(from.at(at + i));
  return value;
}

static std::string readPart(const InputFile &file, uint64_t begin, uint64_t bytes) {
  if (begin > file.size() || bytes > file.size() - begin)
    throw DataError(
        text(file.path(), ": a bad zip file: bytes ", begin, " and ", bytes, " more are beyond its ", file.size()));
  std::string part(bytes, '\0');
  file.readAt(begin, part.data(), bytes);
  return part;
}

ZipFile::ZipFile(const std::string &path) : file(path) { readDirectory(); }

void ZipFile::readDirectory() {
  constexpr size_t endBytes = 22, mostComment = 65535;
  const uint64_t tail = std::min<uint64_t>(file.size(), endBytes + mostComment);
  const std::string last = readPart(file, file.size() - tail, tail);
  const size_t at = last.rfind(std::string("PK\5\6", 4));
  if (at == std::string::npos || last.size() - at < endBytes)
    throw DataError(text(path(), ": not a zip file, or cut short: it has no directory at its end"));
  uint64_t count = number(last, at + 10, 2), bytes = number(last, at + 12, 4), begin = number(last, at + 16, 4);
  const uint64_t end = file.size() - tail + at;
  if ((count == 0xffff || bytes == 0xffffffff || begin == 0xffffffff) && end >= 20) {
    const std::string locator = readPart(file, end - 20, 20);
    if (number(locator, 0, 4) == 0x07064b50) {
      const std::string wide = readPart(file, number(locator, 8, 8), 56);
      if (number(wide, 0, 4) != 0x06064b50)
        throw DataError(text(path(), ": a bad zip file: its 64-bit directory is not where it should be"));
      count = number(wide, 32, 8), bytes = number(wide, 40, 8), begin = number(wide, 48, 8);
    }
  }
  constexpr uint64_t mostBytes = 1 << 24;
  if (bytes > mostBytes)
    throw DataError(
        text(path(), ": a bad zip file: a directory of ", bytes, " bytes, at most ", mostBytes, " are read"));
  readEntries(readPart(file, begin, bytes), count);
}

void ZipFile::readEntries(const std::string &directory, uint64_t count) {
  constexpr size_t fixed = 46;
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto bad = [&] { return DataError(text(path(), ": a bad zip file: entry ", i, " of its directory")); };
    if (directory.size() - at < fixed || number(directory, at, 4) != 0x02014b50)
      throw bad();
    const size_t name = number(directory, at + 28, 2), extra = number(directory, at + 30, 2),
                 comment = number(directory, at + 32, 2);
    if (directory.size() - at - fixed < name + extra + comment)
      throw bad();
    Entry entry = {static_cast<int>(number(directory, at + 10, 2)), number(directory, at + 20, 4),
                   number(directory, at + 24, 4), number(directory, at + 42, 4)};
    if (number(directory, at + 8, 2) & 1)
      entry.method = -1; // encrypted
    // What does not fit into 32 bits stands in the extra field 1, in this order.
    const size_t begin = at + fixed + name, end = begin + extra;
    for (size_t field = begin; end - field >= 4;) {
      const size_t length = number(directory, field + 2, 2), stop = field + 4 + length;
      if (stop > end)
        throw bad();
      size_t value = field + 4;
      if (number(directory, field, 2) == 1)
        for (uint64_t *wide : {&entry.size, &entry.packed, &entry.header})
          if (*wide == 0xffffffff && stop - value >= 8)
            *wide = number(directory, value, 8), value += 8;
      field = stop;
    }
    members[directory.substr(at + fixed, name)] = entry;
    at = end + comment;
  }
}

std::string ZipFile::names() const {
  std::string list;
  for (const auto &[name, entry] : members)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

ZipFile::Member ZipFile::open(const std::string &name) const {
  const Entry &entry = members.at(name);
  const std::string whole = text(path(), ": ", name), head = readPart(file, entry.header, 30);
  if (number(head, 0, 4) != 0x04034b50)
    throw DataError(text(whole, ": a bad zip file: no header at byte ", entry.header));
  const uint64_t begin = entry.header + 30 + number(head, 26, 2) + number(head, 28, 2);
  if (begin > file.size() || entry.packed > file.size() - begin)
    throw DataError(text(whole, ": cut short: ", entry.packed, " bytes at byte ", begin, " of ", file.size()));
  if (entry.method == 0 && entry.size == entry.packed)
    return {InputFile(path()), begin, begin + entry.size};
  if (entry.method != 8)
    throw DataError(text(whole, ": is neither stored nor deflated: write it with numpy.savez or savez_compressed"));
  InputFile unpacked = inflate(file, begin, entry.packed, Compression::Deflate, entry.size, whole);
  if (unpacked.size() != entry.size)
    throw DataError(text(whole, ": unpacks to ", unpacked.size(), " bytes, the directory says ", entry.size));
  return {std::move(unpacked), 0, entry.size};
}

} // namespace sluice
