// SPDX-License-Identifier: Apache-2.0
// Rows copied by id, and their gradients. Ids are ordered by tiles, whose runs are merged in turn; then the first id of
// each row adds up the row. An id that is out of range gives NaN and no gradient, and ends the step with an error.
#include "runtime/Embedding.h"
#include "runtime/cuda/Cut.h"
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

/// order: the positions of a tile's ids, by id and then by position; a block a tile.
__global__ void orderTiles(const int64_t *ids, int64_t count, int64_t *order) {
  __shared__ int64_t tile[cuda::idTile];
  const int64_t begin = blockIdx.x * cuda::idTile;
  const int length = static_cast<int>(count - begin < cuda::idTile ? count - begin : cuda::idTile);
  for (int i = static_cast<int>(threadIdx.x); i < length; i += blockThreads)
    tile[i] = ids[begin + i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < length; i += blockThreads) {
    int before = 0;
    for (int j = 0; j < length; ++j)
      before += tile[j] < tile[i] || (tile[j] == tile[i] && j < i);
    order[begin + before] = begin + i;
  }
}

/// How many of the ordered positions come before `id`; with `equal`, those of the id itself as well.
__device__ int64_t countBefore(const int64_t *ids, const int64_t *order, int64_t length, int64_t id, bool equal) {
  int64_t low = 0;
  while (length > 0) {
    const int64_t half = length / 2, other = ids[order[low + half]];
    if (other < id || (equal && other == id))
      low += half + 1, length -= half + 1;
    else
      length = half;
  }
  return low;
}

/// Merges neighbouring runs of `width` positions: each finds its place by what the other run has before it.
__global__ void mergeRuns(const int64_t *ids, int64_t count, int64_t width, const int64_t *from, int64_t *to) {
  SLUICE_GRID_LOOP(i, count) {
    const int64_t run = i / width, own = run * width, pair = own - run % 2 * width;
    const int64_t other = min(run % 2 ? pair : own + width, count);
    const int64_t length = min(width, count - other);
    const int64_t before = countBefore(ids, from + other, length, ids[from[i]], run % 2);
    to[pair + (i - own) + before] = from[i];
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

size_t Embedding::bytesToOrder(int64_t count) { return static_cast<size_t>(cuda::idScratch(count)); }

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
  const void *source = stream.address(x);
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
    orderTiles<<<blocksFor(count, cuda::idTile), blockThreads, 0, native(stream)>>>(pi, count, order);
    int64_t *from = order, *into = order + count;
    for (int64_t width = cuda::idTile; width < count; width *= 2, std::swap(from, into))
      mergeRuns<<<blocksFor(count, blockThreads), blockThreads, 0, native(stream)>>>(pi, count, width, from, into);
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *values = static_cast<const T *>(source);
      const auto kernel = combineRows<Rule, T>;
      kernel<<<grid, shape.block, 0, native(stream)>>>(values, rows, columns, pi, from, count, note, to);
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
