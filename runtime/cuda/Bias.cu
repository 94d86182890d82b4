// SPDX-License-Identifier: Apache-2.0
// What stands around the libraries' products: a bias added to their results, and weights turned between the order of
// the model and that of the engines.
#include "runtime/cuda/Reduce.h"

#include "runtime/Fused.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

namespace {

/// One row to every row, four neighbours a thread.
template <typename T, typename B>
__global__ void addRowKernel(T *y, const B *row, int64_t count, int64_t columns, float beta) {
  SLUICE_GRID_LOOP(g, count / Cut::vector) {
    float values[Cut::vector], added[Cut::vector];
    loadVector(values, y + g * Cut::vector);
    loadVector(added, row + g * Cut::vector % columns);
    for (int i = 0; i < Cut::vector; ++i)
      values[i] += beta * added[i];
    storeVector(y + g * Cut::vector, values);
  }
}

template <typename T, typename B>
__global__ void addBiasKernel(T *y, const B *bias, int64_t rows, int64_t columns, int64_t biasRows, int64_t rowStep,
                              int64_t columnStep, float beta) {
  for (int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.y) + threadIdx.y; row < rows;
       row += static_cast<int64_t>(gridDim.x) * blockDim.y)
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x)
      store(y + row * columns + c,
            widened(y[row * columns + c]) + beta * widened(bias[row % biasRows * rowStep + c * columnStep]));
}

template <typename T>
__global__ void turnKernel(const T *from, float *to, int64_t outs, int64_t ins, int64_t window, bool back, bool add) {
  SLUICE_GRID_LOOP(i, outs * ins * window) { // i walks what is written
    const int64_t inner = back ? window : ins, middle = back ? ins : window;
    const int64_t c = i % inner, m = i / inner % middle, o = i / inner / middle;
    const float value = widened(from[(o * inner + c) * middle + m]);
    to[i] = add ? to[i] + value : value;
  }
}

template <typename T> __global__ void addKernel(const T *from, T *to, int64_t count) {
  SLUICE_GRID_LOOP(i, count)
  store(to + i, widened(to[i]) + widened(from[i]));
}

} // namespace

template <typename T, typename B>
static void addBiasOf(cudaStream_t stream, T *y, const B *data, int64_t rows, int64_t columns, const Bias &bias) {
  const PixelGrid shape(rows, columns);
  const auto kernel = addBiasKernel<T, B>;
  const auto oneRow = addRowKernel<T, B>;
  if (bias.rows == 1 && bias.columnStep == 1 && columns % Cut::vector == 0 && detail::aligned(y) &&
      detail::aligned(data)) {
    oneRow<<<blocksFor(rows * columns, Cut::vector * blockThreads), blockThreads, 0, stream>>>(y, data, rows * columns,
                                                                                               columns, bias.beta);
    return;
  }
  kernel<<<shape.grid, shape.block, 0, stream>>>(y, data, rows, columns, bias.rows, bias.rowStep, bias.columnStep,
                                                 bias.beta);
}

void addBias(cudaStream_t stream, DataType type, void *y, int64_t rows, int64_t columns, const Bias &bias) {
  forStored(type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    auto add = [&](const auto *data) { addBiasOf(stream, static_cast<T *>(y), data, rows, columns, bias); };
    bias.type == DataType::F32 ? add(static_cast<const float *>(bias.data)) : add(static_cast<const T *>(bias.data));
  });
}

void turnWeights(cudaStream_t stream, const TurnedWeights &weights, const void *from, float *to, bool back, bool add) {
  const int64_t outs = weights.outs, ins = weights.ins, window = weights.window;
  forStored(weights.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = turnKernel<T>;
    const T *first = static_cast<const T *>(from);
    kernel<<<blocksFor(outs * ins * window, blockThreads), blockThreads, 0, stream>>>(first, to, outs, ins, window,
                                                                                      back, add);
  });
}

void addWeights(cudaStream_t stream, const TurnedWeights &weights, const void *from, void *to) {
  const int64_t count = weights.outs * weights.ins * weights.window;
  forStored(weights.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = addKernel<T>;
    kernel<<<blocksFor(count, blockThreads), blockThreads, 0, stream>>>(static_cast<const T *>(from),
                                                                        static_cast<T *>(to), count);
  });
}

} // namespace sluice
