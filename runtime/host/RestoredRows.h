// SPDX-License-Identifier: Apache-2.0
// The floats of some rows of a weight that is held in fewer bits.
#pragma once

#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/RowIds.h"
#include "runtime/kernels/QuantizationRules.h"

namespace sluice {

/// Row i of `to` is columns [begin, end) of row rowOf(i) of the matrix.
template <typename T, typename RowOf>
void restoreRows(const Quantization &matrix, const char *from, int64_t count, RowOf rowOf, int64_t begin, int64_t end,
                 T *to) {
  const auto restoreAll = [&](auto restore) {
    parallelRanges(count, grainOf(end - begin), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        restore(rowOf(i), to + i * (end - begin));
    });
  };
  if (matrix.bits == 16)
    return restoreAll([&](int64_t row, T *own) {
      const BFloat16 *halves = reinterpret_cast<const BFloat16 *>(from) + row * matrix.columns;
      for (int64_t c = begin; c < end; ++c)
        store(own + c - begin, widened(halves[c]));
    });
  forCode(matrix, [&](auto code) {
    restoreAll([&](int64_t row, T *own) {
      restoreRow(code, matrix, from, row, begin, end,
                 [own, begin](int64_t column, float value) { store(own + column - begin, value); });
    });
  });
}

} // namespace sluice
