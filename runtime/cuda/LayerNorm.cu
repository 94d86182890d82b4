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

/// Neighbouring columns of a row, from `at` on. Each lane takes Count of them at a time: 16 bytes where rows allow it.
template <int Count, typename Body> __device__ void forColumns(int64_t columns, int lane, Body &&body) {
  for (int64_t at = lane * Count; at < columns; at += 32 * Count)
    body(at);
}

/// The few values of a lane are added in float, the rest in double.
template <typename T, int Count>
__global__ void layerNormForward(int64_t rows, int64_t columns, float epsilon, const T *x, const float *scale,
                                 const float *bias, T *y, RowMoments moments) {
  forRows(rows, [&](int64_t row, int lane) {
    const T *from = x + row * columns;
    float values[Count];
    double sum = 0;
    forColumns<Count>(columns, lane, [&](int64_t at) {
      loadVector(values, from + at);
      float part = 0;
      for (float value : values)
        part += value;
      sum += static_cast<double>(part);
    });
    const auto middle = static_cast<float>(warpSum(sum) / static_cast<double>(columns));
    double squares = 0;
    forColumns<Count>(columns, lane, [&](int64_t at) {
      loadVector(values, from + at);
      float part = 0;
      for (float value : values)
        part += (value - middle) * (value - middle);
      squares += static_cast<double>(part);
    });
    const double variance = warpSum(squares) / static_cast<double>(columns);
    const auto factor = static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)));
    if (lane == 0) {
      moments.mean[row] = middle;
      moments.rstd[row] = factor;
    }
    forColumns<Count>(columns, lane, [&](int64_t at) {
      float scales[Count], biases[Count];
      loadVector(values, from + at), loadVector(scales, scale + at), loadVector(biases, bias + at);
      for (int i = 0; i < Count; ++i)
        values[i] = (values[i] - middle) * factor * scales[i] + biases[i];
      storeVector(y + row * columns + at, values);
    });
  });
}

template <typename T, int Count>
__global__ void layerNormBackward(int64_t rows, int64_t columns, const T *dy, const T *x, const float *scale,
                                  RowMoments moments, T *dx) {
  forRows(rows, [&](int64_t row, int lane) {
    const int64_t begin = row * columns;
    const float middle = moments.mean[row], factor = moments.rstd[row];
    float scaled[Count], normal[Count];
    // What both passes begin with.
    const auto load = [&](int64_t at) {
      float scales[Count];
      loadVector(scaled, dy + begin + at), loadVector(normal, x + begin + at), loadVector(scales, scale + at);
      for (int i = 0; i < Count; ++i)
        scaled[i] *= scales[i], normal[i] = (normal[i] - middle) * factor;
    };
    double sum = 0, product = 0;
    forColumns<Count>(columns, lane, [&](int64_t at) {
      load(at);
      float part = 0, products = 0;
      for (int i = 0; i < Count; ++i)
        part += scaled[i], products += scaled[i] * normal[i];
      sum += static_cast<double>(part), product += static_cast<double>(products);
    });
    const auto shift = static_cast<float>(warpSum(sum) / static_cast<double>(columns));
    const auto slope = static_cast<float>(warpSum(product) / static_cast<double>(columns));
    forColumns<Count>(columns, lane, [&](int64_t at) {
      load(at);
      for (int i = 0; i < Count; ++i)
        scaled[i] = factor * (scaled[i] - shift - normal[i] * slope);
      storeVector(dx + begin + at, scaled);
    });
  });
}

/// Whether every row begins at a multiple of 16 bytes.
template <typename T> bool hasWholeVectors(int64_t columns, std::initializer_list<const void *> addresses) {
  bool whole = columns * static_cast<int64_t>(sizeof(T)) % 16 == 0;
  for (const void *address : addresses)
    whole &= detail::aligned(address);
  return whole;
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
      const auto kernel = hasWholeVectors<T>(columns, {px, py, pScale, pBias}) ? layerNormForward<T, 16 / sizeof(T)>
                                                                               : layerNormForward<T, 1>;
      kernel<<<blocksFor(rows * 32, blockThreads), blockThreads, 0, native(stream)>>>(rows, columns, epsilon, px,
                                                                                      pScale, pBias, py, moments);
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
      const auto kernel = hasWholeVectors<T>(columns, {pdy, px, pdx, pScale}) ? layerNormBackward<T, 16 / sizeof(T)>
                                                                              : layerNormBackward<T, 1>;
      kernel<<<blocksFor(rows * 32, blockThreads), blockThreads, 0, native(stream)>>>(rows, columns, pdy, px, pScale,
                                                                                      moments, pdx);
    });
  });
}

} // namespace sluice
