// SPDX-License-Identifier: Apache-2.0
// Names and words of files, as a terminal may see them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace sluice {

namespace detail {

/// Bytes of the character at `at`, 0 where there is none that may be shown as it is: a control character, one that
/// turns the direction of the text around, or no UTF-8.
inline size_t shownBytes(const std::string &text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const unsigned char first = byte(at);
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  uint32_t code = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool turns =
      (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return first < 0xc2 || first > 0xf4 || code < least[bytes] || code > 0x10ffff || turns || surrogate ? 0 : bytes;
}

} // namespace detail

/// Every byte that may not be shown becomes \xNN; what is longer than `most` bytes is cut and says so.
inline std::string printable(const std::string &text, size_t most = 2000) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= most)
      return out + "... (" + std::to_string(text.size()) + " bytes)";
    if (const size_t bytes = detail::shownBytes(text, at)) {
      out.append(text, at, bytes);
      at += bytes;
      continue;
    }
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(text[at++]));
    out += hex;
  }
  return out;
}

/// As a shell takes it for one word.
inline std::string shellWord(const std::string &word) {
  static constexpr char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+%@";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string out = "'";
  for (const char character : word)
    out += character == '\'' ? std::string("'\\''") : std::string(1, character);
  return out + "'";
}

/// Of a list of names that a message holds.
inline constexpr size_t shownNames = 8;

/// "'a', 'b', 'c' and 12 more", of `count` names where these are only the first of them.
inline std::string someOf(const std::vector<std::string> &names, size_t count = 0) {
  count = count > names.size() ? count : names.size();
  std::string out;
  size_t shown = 0;
  for (; shown < names.size() && shown < shownNames; ++shown)
    out += (shown ? ", '" : "'") + names[shown] + "'";
  return count > shown ? out + " and " + std::to_string(count - shown) + " more" : out;
}

} // namespace sluice
