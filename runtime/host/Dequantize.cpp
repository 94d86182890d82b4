// SPDX-License-Identifier: Apache-2.0
// Weights in fewer bits as floats, a few rows at a time: all of them, or those that ids name.
#include "runtime/Dequantize.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/RowIds.h"
#include "runtime/kernels/QuantizationRules.h"

namespace sluice {

/// Row i of `to` is row rowOf(i) of the matrix.
template <typename T, typename RowOf>
static void restoreRows(const Quantization &matrix, const char *from, int64_t count, RowOf rowOf, T *to) {
  forCode(matrix, [&](auto code) {
    parallelRanges(count, grainOf(matrix.columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        restoreRow(code, matrix, from, rowOf(i),
                   [own = to + i * matrix.columns](int64_t column, float value) { store(own + column, value); });
    });
  });
}

void Dequantize::run(Stream &stream, const Tensor &form, const Tensor &y) const {
  const char *from = stream.data<char>(form);
  void *to = stream.address(y);
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    stream.launch(node, "dequantize", [this, from, to] {
      restoreRows(matrix, from, matrix.rows, [](int64_t row) { return row; }, static_cast<T *>(to));
    });
  });
}

void Dequantize::rows(Stream &stream, const Tensor &form, const Tensor &ids, const Tensor &y) const {
  const char *from = stream.data<char>(form);
  const int64_t *named = stream.data<int64_t>(ids);
  void *to = stream.address(y);
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    stream.launch(node, "dequantize", [this, from, named, to, count = ids.shape.elements()] {
      checkIds(node, named, count, matrix.rows);
      restoreRows(matrix, from, count, [named](int64_t i) { return named[i]; }, static_cast<T *>(to));
    });
  });
}

} // namespace sluice
