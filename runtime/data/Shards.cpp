// SPDX-License-Identifier: Apache-2.0
// Tar as POSIX.1-1988 (ustar) has it, with the long names of POSIX.1-2001 (pax) and of GNU tar.

#include "runtime/data/Shards.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

namespace fs = std::filesystem;

namespace sluice {

static constexpr uint64_t block = 512, mostImageBytes = uint64_t{1} << 28, mostTextBytes = 1 << 16;

/// What is known of the sample whose members come.
struct Shards::Sample {
  std::string key;
  std::optional<Member> image;
  std::optional<int64_t> label;
};

Shards::Shards(const std::string &path, const Program &program, bool targets, bool skip, Tell tell)
    : LabelledImages("shards", program, targets), skip(skip), skipped(std::move(tell)) {
  std::vector<std::string> names;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    fs::directory_iterator entries(path, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error))
      if (entries->path().extension() == ".tar")
        names.push_back(entries->path().string());
    if (error)
      throw DataError(text("cannot list ", path, ": ", error.message()));
    if (names.empty())
      throw DataError(text(path, " has no .tar"));
  } else {
    names.push_back(path);
  }
  std::sort(names.begin(), names.end());
  for (const std::string &name : names)
    addFile(name);
  skipped.sayHowMany(path);
}

/// A number in octal digits, or with the highest bit set in binary.
static uint64_t tarNumber(const unsigned char *field, size_t bytes, const std::string &where) {
  uint64_t value = 0;
  if (field[0] == 0x80) {
    for (size_t i = bytes - 8; i < bytes; ++i)
      value = value << 8 | field[i];
    return value;
  }
  for (size_t i = 0; i < bytes && field[i] != 0 && field[i] != ' '; ++i) {
    if (field[i] < '0' || field[i] > '7' || value >> 60)
      throw DataError(text(where, ": a bad tar header: a number that is none"));
    value = value * 8 + (field[i] - '0');
  }
  return value;
}

static std::string word(const unsigned char *field, size_t bytes) {
  const auto *begin = reinterpret_cast<const char *>(field);
  return {begin, strnlen(begin, bytes)};
}

/// The path in records "LENGTH key=value\n" of a pax header; empty where it has none.
static std::string paxPath(const std::string &records) {
  for (size_t at = 0; at < records.size();) {
    size_t length = 0;
    const char *end = records.data() + records.size();
    const auto [stop, error] = std::from_chars(records.data() + at, end, length);
    const char *next = records.data() + at + length;
    if (error != std::errc() || length > records.size() - at || stop >= next || next[-1] != '\n')
      return "";
    const std::string record(stop, next);
    if (record.compare(0, 6, " path=") == 0)
      return record.substr(6, record.size() - 7);
    at += length;
  }
  return "";
}

void Shards::addFile(const std::string &path) {
  const InputFile &file = files.emplace_back(path);
  firsts.push_back(samples());
  Sample sample;
  std::string longName;
  for (uint64_t at = 0; at + block <= file.size();) {
    unsigned char header[block];
    file.readAt(at, header, block);
    const std::string where = text(path, ": byte ", at);
    if (std::all_of(header, header + block, [](unsigned char c) { return c == 0; }))
      break;
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < block; ++i)
      sum += i >= 148 && i < 156 ? 0 : header[i];
    if (tarNumber(header + 148, 8, where) != sum)
      throw DataError(text(where, ": no tar header, or a damaged one: write the file again"));
    const uint64_t bytes = tarNumber(header + 124, 12, where), begin = at + block;
    if (bytes > file.size() - begin)
      throw DataError(text(where, ": cut short: a member of ", bytes, " bytes, the file has ", file.size() - begin));
    std::string name = longName.empty() ? word(header, 100) : longName;
    if (longName.empty() && header[345] && std::memcmp(header + 257, "ustar\0", 6) == 0)
      name = word(header + 345, 155) + "/" + name;
    const char type = static_cast<char>(header[156]);
    longName.clear();
    if ((type == 'x' || type == 'L') && bytes <= mostTextBytes) {
      std::string records(bytes, '\0');
      file.readAt(begin, records.data(), bytes);
      longName = type == 'x' ? paxPath(records) : records.c_str();
    } else if (type == '0' || type == '\0') {
      addMember(sample, name, begin, bytes);
    }
    at = begin + (bytes + block - 1) / block * block;
  }
  endSample(sample);
}

void Shards::addMember(Sample &sample, const std::string &name, uint64_t offset, uint64_t bytes) {
  const size_t slash = name.find_last_of('/') + 1, dot = name.find('.', slash);
  if (dot == std::string::npos || dot == slash)
    return;
  if (name.compare(0, dot, sample.key) != 0) {
    endSample(sample);
    sample.key = name.substr(0, dot);
  }
  const std::string ending = name.substr(dot);
  const InputFile &file = files.back();
  if (ending == ".jpg" || ending == ".jpeg" || ending == ".png") {
    if (bytes > mostImageBytes)
      throw DataError(text(file.path(), ": ", name, " has ", bytes, " bytes, an image has at most ", mostImageBytes));
    sample.image = Member{offset, static_cast<uint32_t>(bytes), static_cast<uint32_t>(files.size() - 1), 0};
  } else if (ending == ".cls" && bytes <= 32) {
    char digits[32];
    file.readAt(offset, digits, bytes);
    int64_t label = 0;
    const auto [stop, error] = std::from_chars(digits, digits + bytes, label);
    const bool rest = std::any_of(stop, static_cast<const char *>(digits + bytes),
                                  [](char c) { return c != '\n' && c != '\r' && c != ' '; });
    if (error == std::errc() && !rest)
      sample.label = label;
  }
}

void Shards::endSample(Sample &sample) {
  if (sample.image && (sample.label || !targets)) {
    sample.image->label = sample.label.value_or(0);
    members.push_back(*sample.image);
  } else if (sample.image) {
    const std::string what = text(files.back().path(), ": ", sample.key, " has no .cls with a number beside its image");
    if (!skip)
      throw DataError(what + ": add it, or give --on-bad-data=skip");
    skipped.note(what);
  }
  sample = {};
}

std::vector<std::string> Shards::paths() const {
  std::vector<std::string> list;
  for (const InputFile &file : files)
    list.push_back(file.path());
  return list;
}

Image Shards::readImage(int, int64_t sample) const {
  const Member &member = members[static_cast<size_t>(sample)];
  std::vector<uint8_t> bytes(member.bytes);
  files[member.file].readAt(member.offset, bytes.data(), bytes.size());
  return decodeImage(bytes, wanted, name(0, sample));
}

std::string Shards::name(int, int64_t sample) const {
  const Member &member = members[static_cast<size_t>(sample)];
  return text(files[member.file].path(), ": the image at byte ", member.offset);
}

} // namespace sluice
