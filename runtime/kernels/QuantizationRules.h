// SPDX-License-Identifier: Apache-2.0
// What both targets do with a weight in fewer bits: one element, and on a processor a row.
#pragma once

#include "runtime/Math.h"
#include "runtime/Quantization.h"

#include <algorithm>

namespace sluice {

/// What elements of `bits` bits stand for in a coding.
template <int bits_, Coding coding> struct Code {
  static constexpr int bits = bits_;
  static constexpr bool hasZeros = coding == Coding::Asymmetric;

  /// Of the lowest bits of `code`; `zero` counts where there are zero points.
  static SLUICE_KERNEL float restored(unsigned code, float scale, [[maybe_unused]] float zero) {
    const unsigned number = code & ((1u << bits) - 1);
    if constexpr (coding == Coding::Symmetric)
      return static_cast<float>(static_cast<int>(number) - (1 << (bits - 1))) * scale;
    else if constexpr (coding == Coding::Asymmetric)
      return (static_cast<float>(static_cast<int>(number)) - zero) * scale;
    else
      return normalFloat(number) * scale;
  }

  /// The numbers of NF4, in order.
  static SLUICE_KERNEL float normalFloat(unsigned number) {
    static constexpr float values[16] = {-1.0f,
                                         -0.6961928009986877f,
                                         -0.5250730514526367f,
                                         -0.39491748809814453f,
                                         -0.28444138169288635f,
                                         -0.18477343022823334f,
                                         -0.09105003625154495f,
                                         0.0f,
                                         0.07958029955625534f,
                                         0.16093020141124725f,
                                         0.24611230194568634f,
                                         0.33791524171829224f,
                                         0.44070982933044434f,
                                         0.5626170039176941f,
                                         0.7229568362236023f,
                                         1.0f};
    return values[number];
  }
};

/// Calls work with the Code of a form of 8 or 4 bits.
template <typename Work> void forCode(const Quantization &form, Work &&work) {
  if (form.coding == Coding::NormalFloat)
    work(Code<4, Coding::NormalFloat>());
  else if (form.coding == Coding::Asymmetric)
    form.bits == 8 ? work(Code<8, Coding::Asymmetric>()) : work(Code<4, Coding::Asymmetric>());
  else
    form.bits == 8 ? work(Code<8, Coding::Symmetric>()) : work(Code<4, Coding::Symmetric>());
}

/// Calls put(column, value) for the elements of a row of a form in columns [from, to). Runs of one scale, or of one
/// scale each, are loops that compilers make vectors of.
template <typename Code, typename Put>
void restoreRow(Code code, const Quantization &form, const char *bytes, int64_t row, int64_t from, int64_t to,
                Put put) {
  const int64_t width = form.rowBytes(), group = form.group;
  const auto *codes = reinterpret_cast<const uint8_t *>(bytes) + form.elementsAt() + row * width;
  const float *scales =
      reinterpret_cast<const float *>(bytes) + (form.dimension == 0 ? row / group : row) * form.scaleColumns();
  const float *zeros = code.hasZeros ? scales + form.scales() : scales;             // else nobody looks
  for (int64_t half = 0, shift = 0; half < to; half += width, shift += code.bits) { // one, or two
    const int64_t end = std::min(half + width, to);
    const uint8_t *own = codes - half;
    int64_t c = std::max(half, from);
    if (form.dimension == 0) {
      for (; c < end; ++c)
        put(c, code.restored(static_cast<unsigned>(own[c]) >> shift, scales[c], zeros[c]));
      continue;
    }
    while (c < end) {
      const float scale = scales[c / group], zero = zeros[c / group];
      for (const int64_t stop = std::min(end, (c / group + 1) * group); c < stop; ++c)
        put(c, code.restored(static_cast<unsigned>(own[c]) >> shift, scale, zero));
    }
  }
}

/// Puts the number of an element, of `bytes` that are zeros there.
inline void putCode(const Quantization &form, char *bytes, int64_t row, int64_t column, int code) {
  const int64_t width = form.rowBytes();
  char &byte = bytes[form.elementsAt() + row * width + column % width];
  byte = static_cast<char>(static_cast<uint8_t>(byte) | code << (column < width ? 0 : form.bits));
}

} // namespace sluice
