// SPDX-License-Identifier: Apache-2.0
// Rows copied by id, and their gradients. The place of an id in the order of rows is the number of ids before it:
// counted, every id against every other, which for a batch of tokens takes less time than the launches of a sort. Then
// the first id of each row adds up the row. An id that is out of range gives NaN and no gradient, and ends the step
// with an error.
#include "runtime/Embedding.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

template <typename T>
__global__ void gatherRows(const float *table, int64_t rows, int64_t columns, const int64_t *ids, int64_t count,
                           IdNote note, T *y) {
  SLUICE_PIXEL_LOOP(i, count) {
    const int64_t id = ids[i];
    const bool known = id >= 0 && id < rows;
    if (!known && threadIdx.x == 0)
      note(id, i, rows);
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x)
      store(y + i * columns + c, known ? table[id * columns + c] : nanf(""));
  }
}

/// order: the ids' positions, by id and then by position.
__global__ void orderIds(const int64_t *ids, int64_t count, int64_t *order) {
  __shared__ int64_t tile[blockThreads];
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockThreads;
  for (int64_t first = blockIdx.x * static_cast<int64_t>(blockThreads); first < count; first += step) {
    const int64_t i = first + threadIdx.x, id = i < count ? ids[i] : 0;
    int64_t before = 0;
    for (int64_t begin = 0; begin < count; begin += blockThreads) {
      const int64_t length = count - begin < blockThreads ? count - begin : blockThreads;
      __syncthreads();
      if (threadIdx.x < length)
        tile[threadIdx.x] = ids[begin + threadIdx.x];
      __syncthreads();
      for (int64_t j = 0; j < length; ++j)
        before += tile[j] < id || (tile[j] == id && begin + j < i);
    }
    if (i < count)
      order[before] = i;
  }
}

/// What becomes of the rows of one id.
struct Sum {
  double value = 0;
  __device__ void take(float x) { value += static_cast<double>(x); }
};
struct Largest {
  float value = -INFINITY;
  __device__ void take(float x) { value = value < x || x != x ? x : value; } // NaN is the largest
};

/// What rows are that no id names.
template <typename Rule> __global__ void fillRows(float *y, int64_t count) {
  SLUICE_GRID_LOOP(i, count)
  y[i] = static_cast<float>(Rule().value);
}

template <typename Rule, typename T>
__global__ void combineRows(const T *dy, int64_t rows, int64_t columns, const int64_t *ids, const int64_t *order,
                            int64_t count, IdNote note, float *dtable) {
  SLUICE_PIXEL_LOOP(place, count) {
    const int64_t id = ids[order[place]];
    if (id < 0 || id >= rows) {
      if (threadIdx.x == 0 && blockIdx.y == 0)
        note(id, order[place], rows);
      continue;
    }
    if (place > 0 && ids[order[place - 1]] == id)
      continue;
    for (int64_t c = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x; c < columns;
         c += static_cast<int64_t>(gridDim.y) * blockDim.x) {
      Rule rule;
      for (int64_t at = place; at < count && ids[order[at]] == id; ++at)
        rule.take(widened(dy[order[at] * columns + c]));
      dtable[id * columns + c] = static_cast<float>(rule.value);
    }
  }
}

} // namespace

void Embedding::forward(Stream &stream, const Tensor &table, const Tensor &ids, const Tensor &y) const {
  const float *from = stream.data<float>(table);
  const int64_t *pi = stream.data<int64_t>(ids);
  void *to = stream.address(y);
  const PixelGrid shape(count, columns);
  const IdNote note = idNote(IdUse::Row, node);
  stream.launch(node, "embedding", [&] {
    forStored(y.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      T *py = static_cast<T *>(to);
      gatherRows<<<shape.grid, shape.block, 0, native(stream)>>>(from, rows, columns, pi, count, note, py);
    });
  });
}

template <typename Rule>
static void combine(Node node, const char *op, Stream &stream, const Tensor &x, const Tensor &ids, const Tensor &y,
                    const Tensor &scratch, int64_t rows) {
  const int64_t columns = y.shape.elements() / rows, count = ids.shape.elements();
  const void *from = stream.address(x);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(y);
  int64_t *order = stream.data<int64_t>(scratch);
  const PixelGrid shape(count, columns);
  const int64_t bands = std::min<int64_t>((columns + shape.block.x - 1) / shape.block.x, 65535);
  const dim3 grid(shape.grid.x, static_cast<unsigned>(std::max<int64_t>(1, bands)));
  const IdNote note = idNote(IdUse::Row, node);
  stream.launch(node, op, [&] {
    const auto fill = fillRows<Rule>;
    fill<<<blocksFor(rows * columns, blockThreads), blockThreads, 0, native(stream)>>>(to, rows * columns);
    orderIds<<<blocksFor(count, blockThreads), blockThreads, 0, native(stream)>>>(pi, count, order);
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *values = static_cast<const T *>(from);
      const auto kernel = combineRows<Rule, T>;
      kernel<<<grid, shape.block, 0, native(stream)>>>(values, rows, columns, pi, order, count, note, to);
    });
  });
}

void Embedding::backward(Stream &stream, const Tensor &dy, const Tensor &ids, const Tensor &dtable,
                         const Tensor &scratch) const {
  combine<Sum>(node, "embedding_backward", stream, dy, ids, dtable, scratch, rows);
}

void Embedding::largest(Stream &stream, const Tensor &x, const Tensor &ids, const Tensor &y,
                        const Tensor &scratch) const {
  combine<Largest>(node, "scatter_rows", stream, x, ids, y, scratch, rows);
}

} // namespace sluice
