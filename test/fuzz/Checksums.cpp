// SPDX-License-Identifier: Apache-2.0
// Checksums of changed safetensors files, renewed as runtime/files/Safetensors.cpp reads them.
#include "test/fuzz/Target.h"

#include "runtime/files/Crc32c.h"

#include "nlohmann/json.hpp"

#include <cstdio>
#include <iterator>

namespace sluice::fuzz {

using Json = nlohmann::json;

namespace {

constexpr size_t lengthBytes = 8;
constexpr int deepest = 8;
constexpr char key[] = "crc32c";

std::string sumOf(std::string_view bytes) {
  Crc32c sum;
  sum.add(bytes.data(), bytes.size());
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", sum.value());
  return digits;
}

std::string textOf(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// The bytes of a tensor as its entry says, cut where the file ends.
std::string_view bytesOf(const Json &entry, std::string_view data) {
  auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned())
    return {};
  const uint64_t begin = (*offsets)[0], end = (*offsets)[1];
  return begin <= end && begin <= data.size() ? data.substr(begin, end - begin) : std::string_view();
}

/// Those of all tensors, then that of the metadata with them.
void renew(Json &header, std::string_view data) {
  Json &metadata = header["__metadata__"];
  if (!metadata.is_object())
    metadata = Json::object();
  for (auto it = metadata.begin(); it != metadata.end();)
    it = it.key().rfind(key, 0) == 0 ? metadata.erase(it) : std::next(it);
  for (const auto &[name, entry] : header.items())
    if (name != "__metadata__" && entry.is_object())
      metadata[std::string(key) + ":" + name] = sumOf(bytesOf(entry, data));
  metadata[key] = sumOf(textOf(metadata));
}

} // namespace

std::string withChecksums(const std::string &file) {
  if (file.size() < lengthBytes)
    return file;
  uint64_t length = 0;
  for (size_t i = lengthBytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(file[i]);
  if (length > file.size() - lengthBytes)
    return file;
  const std::string text = file.substr(lengthBytes, length), data = file.substr(lengthBytes + length);
  // What is deep is no header, and a copy of it would take as many calls.
  const Json header = Json::parse(text, [](int depth, Json::parse_event_t, Json &) { return depth < deepest; }, false);
  if (!header.is_object())
    return file;
  Json renewed = header;
  renew(renewed, data);
  const std::string bytes = textOf(renewed);
  std::string before(lengthBytes, '\0');
  for (size_t i = 0; i < lengthBytes; ++i)
    before[i] = static_cast<char>(bytes.size() >> (8 * i));
  return before + bytes + data;
}

} // namespace sluice::fuzz
