// SPDX-License-Identifier: Apache-2.0
// Weights in fewer bits as floats, a few rows at a time: all of them, or those that ids name.
#include "runtime/Dequantize.h"
#include "runtime/host/RestoredRows.h"

namespace sluice {

void Dequantize::run(Stream &stream, const Tensor &form, const Tensor &y) const {
  const char *from = stream.data<char>(form);
  void *to = stream.address(y);
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    stream.launch(node, "dequantize", [this, from, to] {
      restoreRows(matrix, from, matrix.rows, [](int64_t row) { return row; }, 0, matrix.columns, static_cast<T *>(to));
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
      restoreRows(
          matrix, from, count, [named](int64_t i) { return named[i]; }, 0, matrix.columns, static_cast<T *>(to));
    });
  });
}

} // namespace sluice
