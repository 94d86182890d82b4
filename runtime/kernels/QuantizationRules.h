// SPDX-License-Identifier: Apache-2.0
// What both targets do with a weight in fewer bits: one element, and on a processor a row.
#pragma once

#include "runtime/Math.h"
#include "runtime/Quantization.h"

#include <algorithm>

namespace sluice {

/// What the number `code` of an element, of `bits` bits, stands for.
template <int bits> SLUICE_KERNEL float restored(unsigned code, float scale) {
  constexpr unsigned mask = (1u << bits) - 1;
  return static_cast<float>(static_cast<int>(code & mask) - (1 << (bits - 1))) * scale;
}

/// Calls put(column, value) for all elements of a row of a form of `bits` bits, 8 or 4. Runs of one scale, or of one
/// scale each, are loops that compilers make vectors of.
template <int bits, typename Put> void restoreRow(const Quantization &form, const char *bytes, int64_t row, Put put) {
  const int64_t width = form.rowBytes(), columns = form.columns, group = form.group;
  const auto *codes = reinterpret_cast<const uint8_t *>(bytes) + form.elementsAt() + row * width;
  const float *scales =
      reinterpret_cast<const float *>(bytes) + (form.dimension == 0 ? row / group : row) * form.scaleColumns();
  for (int64_t begin = 0, shift = 0; begin < columns; begin += width, shift += bits) { // once, or for either half
    const int64_t end = std::min(begin + width, columns);
    const uint8_t *own = codes - begin;
    if (form.dimension == 0) {
      for (int64_t c = begin; c < end; ++c)
        put(c, restored<bits>(static_cast<unsigned>(own[c]) >> shift, scales[c]));
      continue;
    }
    for (int64_t c = begin; c < end;) {
      const float scale = scales[c / group];
      for (const int64_t stop = std::min(end, (c / group + 1) * group); c < stop; ++c)
        put(c, restored<bits>(static_cast<unsigned>(own[c]) >> shift, scale));
    }
  }
}

} // namespace sluice
