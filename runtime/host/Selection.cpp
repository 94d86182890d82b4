// SPDX-License-Identifier: Apache-2.0
// The best elements of a row by a heap in the result; elements by their ids, and their gradients, row by row.
#include "runtime/Selection.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/SelectionRules.h"
#include "runtime/kernels/WrongId.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace sluice {

namespace {

/// Rows of about 32 KiB together.
int64_t grainOf(int64_t columns) { return std::max<int64_t>(1, 8192 / columns); }

void selectBest(const Better &better, int64_t columns, int64_t *ids, int64_t count) {
  std::iota(ids, ids + count, int64_t{0});
  std::make_heap(ids, ids + count, better); // the worst in front
  for (int64_t i = count; i < columns; ++i)
    if (better(i, ids[0])) {
      std::pop_heap(ids, ids + count, better);
      ids[count - 1] = i;
      std::push_heap(ids, ids + count, better);
    }
  std::sort_heap(ids, ids + count, better);
}

void checkIds(const char *node, const int64_t *ids, int64_t total, int64_t columns) {
  for (int64_t i = 0; i < total; ++i)
    if (ids[i] < 0 || ids[i] >= columns)
      throw wrongId(IdUse::Element, node, ids[i], i, columns);
}

} // namespace

void Top::run(Stream &stream, const Tensor &x, const Tensor &ids) const {
  const float *px = stream.data<float>(x);
  int64_t *to = stream.data<int64_t>(ids);
  stream.launch(node, "top", [this, px, to] {
    parallelRanges(rows, grainOf(columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        selectBest({px + row * columns, smallest, last}, columns, to + row * count, count);
    });
  });
}

void Pick::forward(Stream &stream, const Tensor &x, const Tensor &ids, const Tensor &y) const {
  const float *px = stream.data<float>(x);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(y);
  stream.launch(node, "pick", [this, px, pi, to] {
    checkIds(node, pi, rows * count, columns);
    parallelRanges(rows, grainOf(count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * count; i < end * count; ++i)
        to[i] = px[i / count * columns + pi[i]];
    });
  });
}

void Pick::backward(Stream &stream, const Tensor &dy, const Tensor &ids, const Tensor &dx) const {
  const float *from = stream.data<float>(dy);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(dx);
  stream.launch(node, "pick_backward", [this, from, pi, to] {
    checkIds(node, pi, rows * count, columns);
    parallelRanges(rows, grainOf(columns + count), [&](int64_t begin, int64_t end) {
      std::fill(to + begin * columns, to + end * columns, 0.0f);
      for (int64_t i = begin * count; i < end * count; ++i)
        to[i / count * columns + pi[i]] += from[i];
    });
  });
}

} // namespace sluice
