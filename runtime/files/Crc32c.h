// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78): finds every change of up to 32 neighbouring bits, others but
// for one in 2^32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

namespace detail {

/// Eight tables, so that eight bytes are taken at once: table k says what a byte does that is followed by k others.
constexpr std::array<std::array<uint32_t, 256>, 8> crc32cTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0u);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

} // namespace detail

class Crc32c {
public:
  void add(const void *data, size_t bytes) {
    static constexpr auto tables = detail::crc32cTables();
    const unsigned char *at = static_cast<const unsigned char *>(data);
    for (; bytes >= 8; bytes -= 8, at += 8) {
      const uint32_t low = state ^ (at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24);
      state = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
              tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
    }
    for (; bytes > 0; --bytes, ++at)
      state = state >> 8 ^ tables[0][(state ^ *at) & 0xff];
  }
  uint32_t value() const { return ~state; }

private:
  uint32_t state = ~0u;
};

} // namespace sluice
