// SPDX-License-Identifier: Apache-2.0
// Layer normalization of row-major rows, a warp a row. Sums are taken in double; dx may be dy.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

/// Calls body(row, lane) for all rows of this warp.
template <typename Body> __device__ void forRows(int64_t rows, Body &&body) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockThreads / 32;
  for (int64_t row = (blockIdx.x * static_cast<int64_t>(blockThreads) + threadIdx.x) / 32; row < rows; row += stride)
    body(row, static_cast<int>(threadIdx.x % 32));
}

/// What the backward pass reads of each row.
struct RowMoments {
  float *mean, *rstd;
};

template <typename T>
__global__ void layerNormForward(int64_t rows, int64_t columns, float epsilon, const T *x, const float *scale,
                                 const float *bias, T *y, RowMoments moments) {
  forRows(rows, [&](int64_t row, int lane) {
    const T *from = x + row * columns;
    double sum = 0;
    for (int64_t i = lane; i < columns; i += 32)
      sum += static_cast<double>(widened(from[i]));
    const auto middle = static_cast<float>(warpSum(sum) / static_cast<double>(columns));
    double squares = 0;
    for (int64_t i = lane; i < columns; i += 32) {
      const float distance = widened(from[i]) - middle;
      squares += static_cast<double>(distance * distance);
    }
    const double variance = warpSum(squares) / static_cast<double>(columns);
    const auto factor = static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)));
    if (lane == 0) {
      moments.mean[row] = middle;
      moments.rstd[row] = factor;
    }
    for (int64_t i = lane; i < columns; i += 32)
      store(y + row * columns + i, (widened(from[i]) - middle) * factor * scale[i] + bias[i]);
  });
}

template <typename T>
__global__ void layerNormBackward(int64_t rows, int64_t columns, const T *dy, const T *x, const float *scale,
                                  RowMoments moments, T *dx) {
  forRows(rows, [&](int64_t row, int lane) {
    const int64_t at = row * columns;
    const float middle = moments.mean[row], factor = moments.rstd[row];
    double sum = 0, product = 0;
    for (int64_t i = lane; i < columns; i += 32) {
      const float scaled = widened(dy[at + i]) * scale[i];
      sum += static_cast<double>(scaled);
      product += static_cast<double>(scaled * ((widened(x[at + i]) - middle) * factor));
    }
    const auto shift = static_cast<float>(warpSum(sum) / static_cast<double>(columns));
    const auto slope = static_cast<float>(warpSum(product) / static_cast<double>(columns));
    for (int64_t i = lane; i < columns; i += 32) {
      const float scaled = widened(dy[at + i]) * scale[i], normal = (widened(x[at + i]) - middle) * factor;
      store(dx + at + i, factor * (scaled - shift - normal * slope));
    }
  });
}

} // namespace

LayerNorm::LayerNorm(Node node, Shape x, float epsilon) : Kernel(node), rows(x[0]), columns(x[1]), epsilon(epsilon) {}

void LayerNorm::forward(Stream &stream, const Tensor &x, const Tensor &scale, const Tensor &bias, const Tensor &y,
                        const Tensor &mean, const Tensor &rstd) const {
  const float *pScale = stream.data<float>(scale), *pBias = stream.data<float>(bias);
  const RowMoments moments{stream.data<float>(mean), stream.data<float>(rstd)};
  forStored(x.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *px = stream.data<T>(x);
    T *py = stream.data<T>(y);
    stream.launch(node, "layer_norm", [&] {
      layerNormForward<<<blocksFor(rows * 32, blockThreads), blockThreads, 0, native(stream)>>>(
          rows, columns, epsilon, px, pScale, pBias, py, moments);
    });
  });
}

void LayerNorm::backward(Stream &stream, const Tensor &dy, const Tensor &x, const Tensor &scale, const Tensor &mean,
                         const Tensor &rstd, const Tensor &dx) const {
  const float *pScale = stream.data<float>(scale);
  const RowMoments moments{stream.data<float>(mean), stream.data<float>(rstd)};
  forStored(x.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *pdy = stream.data<T>(dy), *px = stream.data<T>(x);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "layer_norm_backward", [&] {
      layerNormBackward<<<blocksFor(rows * 32, blockThreads), blockThreads, 0, native(stream)>>>(rows, columns, pdy, px,
                                                                                                 pScale, moments, pdx);
    });
  });
}

} // namespace sluice
