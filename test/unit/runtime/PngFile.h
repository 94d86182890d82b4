// SPDX-License-Identifier: Apache-2.0
// Small PNG files whose every pixel a test chooses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <zlib.h>

namespace sluice {

/// `kind` is PNG's type of colours: 0 grey, 2 red, green and blue, 3 the place in a palette, 4 grey and opacity. Rows
/// of `values`, one a channel, are packed into `bits` each.
inline std::string pngFile(uint32_t width, uint32_t height, int bits, int kind, const std::vector<uint16_t> &values) {
  const auto word = [](uint64_t value, int bytes) {
    std::string out;
    for (int i = bytes; i-- > 0;)
      out += static_cast<char>(value >> (8 * i));
    return out;
  };
  const auto chunk = [&](const std::string &type, const std::string &data) {
    const std::string whole = type + data;
    const auto sum = crc32(0, reinterpret_cast<const Bytef *>(whole.data()), static_cast<uInt>(whole.size()));
    return word(data.size(), 4) + whole + word(sum, 4);
  };
  std::string rows;
  for (size_t row = 0, each = values.size() / height; row < height; ++row) {
    rows += '\0'; // no filter
    uint32_t gathered = 0;
    int filled = 0;
    for (size_t i = 0; i < each; ++i) {
      gathered = gathered << bits | values[row * each + i], filled += bits;
      for (; filled >= 8; filled -= 8)
        rows += static_cast<char>(gathered >> (filled - 8));
    }
    if (filled > 0)
      rows += static_cast<char>(gathered << (8 - filled));
  }
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef *>(packed.data()), &size, reinterpret_cast<const Bytef *>(rows.data()), rows.size());
  packed.resize(size);
  std::string palette; // colours that would show if they were taken for the numbers
  for (int i = 0; i < 1 << bits && kind == 3; ++i)
    palette += word(static_cast<uint64_t>(255 - i) << 8, 3);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", word(width, 4) + word(height, 4) + static_cast<char>(bits) + static_cast<char>(kind) +
                           std::string(3, '\0')) +
         (kind == 3 ? chunk("PLTE", palette) : "") + chunk("IDAT", packed) + chunk("IEND", "");
}

} // namespace sluice
