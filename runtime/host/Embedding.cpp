// SPDX-License-Identifier: Apache-2.0
// Rows copied by id, and their gradients: ids are brought into the order of rows, then each range of rows adds up its
// own, which lie side by side.
#include "runtime/Embedding.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/RowIds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice {

namespace {

/// to[0, columns) = the sum of the rows dy[places[i]], in double and in order.
template <typename T> void sumRows(const T *dy, const int64_t *places, int64_t count, int64_t columns, float *to) {
  constexpr int64_t block = 32;
  for (int64_t first = 0; first < columns; first += block) {
    const int64_t width = std::min(block, columns - first);
    double sums[block] = {};
    for (int64_t i = 0; i < count; ++i) {
      const T *row = dy + places[i] * columns + first;
      for (int64_t c = 0; c < width; ++c)
        sums[c] += static_cast<double>(widened(row[c]));
    }
    for (int64_t c = 0; c < width; ++c)
      to[first + c] = static_cast<float>(sums[c]);
  }
}

/// to[0, columns) = the largest of the elements of x in each column; NaN is larger than any number.
void largestOfRows(const float *x, const int64_t *places, int64_t count, int64_t columns, float *to) {
  std::fill_n(to, columns, -HUGE_VALF);
  for (int64_t i = 0; i < count; ++i) {
    const float *row = x + places[i] * columns;
    for (int64_t c = 0; c < columns; ++c)
      to[c] = to[c] < row[c] || std::isnan(row[c]) ? row[c] : to[c];
  }
}

} // namespace

size_t Embedding::bytesToOrder(int64_t count) { return static_cast<size_t>(count) * sizeof(int64_t); }

void Embedding::forward(Stream &stream, const Tensor &table, const Tensor &ids, const Tensor &y) const {
  const float *from = stream.data<float>(table);
  const int64_t *pi = stream.data<int64_t>(ids);
  forStored(node, y.type, [&](auto *type) {
    auto *to = stream.data<Stored<decltype(type)>>(y);
    stream.launch(node, "embedding", [this, from, pi, to] {
      checkIds(node, pi, count, rows);
      parallelRanges(count, grainOf(columns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t c = 0; c < columns; ++c)
            store(to + i * columns + c, from[pi[i] * columns + c]);
      });
    });
  });
}

/// Each row of y by `rule`, from the rows of x, of type T, whose ids name it.
template <typename T, typename Rule>
static void combine(Node node, const char *op, Stream &stream, const Tensor &x, const Tensor &ids, const Tensor &y,
                    const Tensor &scratch, int64_t rows, Rule rule) {
  const T *from = stream.data<T>(x);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(y);
  int64_t *order = stream.data<int64_t>(scratch);
  const int64_t columns = y.shape.elements() / rows, count = ids.shape.elements();
  stream.launch(node, op, [=] {
    checkIds(node, pi, count, rows);
    std::iota(order, order + count, int64_t{0});
    std::sort(order, order + count, [pi](int64_t a, int64_t b) { return pi[a] != pi[b] ? pi[a] < pi[b] : a < b; });
    parallelRanges(rows, grainOf(columns), [&](int64_t begin, int64_t end) {
      const int64_t *first = order, *last = first + count;
      const int64_t *at = std::lower_bound(first, last, begin, [pi](int64_t i, int64_t row) { return pi[i] < row; });
      for (int64_t row = begin; row < end; ++row) {
        const int64_t *next = at;
        while (next != last && pi[*next] == row)
          ++next;
        rule(from, at, next - at, columns, to + row * columns);
        at = next;
      }
    });
  });
}

void Embedding::backward(Stream &stream, const Tensor &dy, const Tensor &ids, const Tensor &dtable,
                         const Tensor &scratch) const {
  forStored(node, dy.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    combine<T>(node, "embedding_backward", stream, dy, ids, dtable, scratch, rows, sumRows<T>);
  });
}

void Embedding::largest(Stream &stream, const Tensor &x, const Tensor &ids, const Tensor &y,
                        const Tensor &scratch) const {
  combine<float>(node, "scatter_rows", stream, x, ids, y, scratch, rows, largestOfRows);
}

} // namespace sluice
