// SPDX-License-Identifier: Apache-2.0
// Rows copied by id, and their gradients. The place of an id in the order of rows is the number of ids before it:
// counted, every id against every other, which for a batch of tokens takes less time than the launches of a sort. Then
// the first id of each row adds up the row. An id that is out of range (data are checked when they are read) gives NaN
// and no gradient.
#include "runtime/Embedding.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

template <typename T>
__global__ void gatherRows(const float *table, int64_t rows, int64_t columns, const int64_t *ids, int64_t count, T *y) {
  SLUICE_PIXEL_LOOP(i, count) {
    const int64_t id = ids[i];
    const bool known = id >= 0 && id < rows;
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

template <typename T>
__global__ void sumRows(const T *dy, int64_t rows, int64_t columns, const int64_t *ids, const int64_t *order,
                        int64_t count, float *dtable) {
  SLUICE_PIXEL_LOOP(place, count) {
    const int64_t id = ids[order[place]];
    if (id < 0 || id >= rows || (place > 0 && ids[order[place - 1]] == id))
      continue;
    for (int64_t c = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x; c < columns;
         c += static_cast<int64_t>(gridDim.y) * blockDim.x) {
      double sum = 0;
      for (int64_t at = place; at < count && ids[order[at]] == id; ++at)
        sum += static_cast<double>(widened(dy[order[at] * columns + c]));
      dtable[id * columns + c] = static_cast<float>(sum);
    }
  }
}

} // namespace

void Embedding::forward(Stream &stream, const Tensor &table, const Tensor &ids, const Tensor &y) const {
  const float *from = stream.data<float>(table);
  const int64_t *pi = stream.data<int64_t>(ids);
  void *to = stream.address(y);
  const PixelGrid shape(count, columns);
  stream.launch(node, "embedding", [&] {
    forStored(y.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      T *py = static_cast<T *>(to);
      gatherRows<<<shape.grid, shape.block, 0, native(stream)>>>(from, rows, columns, pi, count, py);
    });
  });
}

void Embedding::backward(Stream &stream, const Tensor &dy, const Tensor &ids, const Tensor &dtable,
                         const Tensor &scratch) const {
  const void *from = stream.address(dy);
  const int64_t *pi = stream.data<int64_t>(ids);
  float *to = stream.data<float>(dtable);
  int64_t *order = stream.data<int64_t>(scratch);
  const PixelGrid shape(count, columns);
  const int64_t bands = std::min<int64_t>((columns + shape.block.x - 1) / shape.block.x, 65535);
  const dim3 grid(shape.grid.x, static_cast<unsigned>(std::max<int64_t>(1, bands)));
  stream.launch(node, "embedding_backward", [&] {
    checkCuda(cudaMemsetAsync(to, 0, dtable.bytes(), native(stream)), "cannot clear a tensor");
    orderIds<<<blocksFor(count, blockThreads), blockThreads, 0, native(stream)>>>(pi, count, order);
    forStored(dy.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *gradients = static_cast<const T *>(from);
      sumRows<<<grid, shape.block, 0, native(stream)>>>(gradients, rows, columns, pi, order, count, to);
    });
  });
}

} // namespace sluice
