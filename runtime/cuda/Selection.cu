// SPDX-License-Identifier: Apache-2.0
// A thread counts the elements of its row that are better than its own, which is the place of that among the best, and
// stops once there are too many: most elements see many better ones soon. Gradients are sums over the ids of a row, a
// thread an element. An id that is out of range gives NaN and no gradient,
// and ends the step with an error.
#include "runtime/Selection.h"
#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Launch.h"
#include "runtime/kernels/SelectionRules.h"

namespace sluice {

namespace {

__global__ void topKernel(const float *x, int64_t rows, int64_t columns, int64_t count, bool smallest, bool last,
                          int64_t *ids) {
  SLUICE_GRID_LOOP(i, rows * columns) {
    const int64_t row = i / columns, own = i % columns;
    const Better better{x + row * columns, smallest, last};
    int64_t place = 0;
    for (int64_t j = 0; j < columns && place < count; ++j)
      place += better(j, own);
    if (place < count)
      ids[row * count + place] = own;
  }
}

__global__ void pickKernel(const float *x, const int64_t *ids, int64_t total, int64_t columns, int64_t count,
                           IdNote note, float *y) {
  SLUICE_GRID_LOOP(i, total) {
    const int64_t id = ids[i];
    const bool known = id >= 0 && id < columns;
    if (!known)
      note(id, i, columns);
    y[i] = known ? x[i / count * columns + id] : nanf("");
  }
}

__global__ void pickBackward(const float *dy, const int64_t *ids, int64_t rows, int64_t columns, int64_t count,
                             float *dx) {
  SLUICE_GRID_LOOP(i, rows * columns) {
    const int64_t first = i / columns * count, own = i % columns;
    float sum = 0;
    for (int64_t j = first; j < first + count; ++j)
      sum = ids[j] == own ? sum + dy[j] : sum;
    dx[i] = sum;
  }
}

} // namespace

void Top::run(Stream &stream, const Tensor &x, const Tensor &ids) const {
  const float *px = stream.data<float>(x);
  int64_t *to = stream.data<int64_t>(ids);
  stream.launch(node, "top", [&] {
    topKernel<<<blocksFor(rows * columns, blockThreads), blockThreads, 0, native(stream)>>>(px, rows, columns, count,
                                                                                            smallest, last, to);
  });
}

void Pick::forward(Stream &stream, const Tensor &x, const Tensor &ids, const Tensor &y) const {
  const float *px = stream.data<float>(x);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(y);
  const IdNote note = idNote(IdUse::Element, node);
  stream.launch(node, "pick", [&] {
    pickKernel<<<blocksFor(rows * count, blockThreads), blockThreads, 0, native(stream)>>>(px, pi, rows * count,
                                                                                           columns, count, note, to);
  });
}

void Pick::backward(Stream &stream, const Tensor &dy, const Tensor &ids, const Tensor &dx) const {
  const float *from = stream.data<float>(dy);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(dx);
  stream.launch(node, "pick_backward", [&] {
    pickBackward<<<blocksFor(rows * columns, blockThreads), blockThreads, 0, native(stream)>>>(from, pi, rows, columns,
                                                                                               count, to);
  });
}

} // namespace sluice
