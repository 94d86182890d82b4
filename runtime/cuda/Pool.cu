// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC: a row of threads walks the channels of a pixel. Backward passes gather: each input pixel adds up the
// windows that hold it, in a fixed order.
#include "runtime/common/Windows.h"
#include "runtime/cuda/Launch.h"

#include <limits>

namespace sluice {

namespace {

/// Batch, row and column of an NHWC pixel.
struct Pixel {
  int64_t n, row, column;
  __device__ Pixel(const Shape &shape, int64_t index)
      : n(index / shape[3] / shape[2]), row(index / shape[3] % shape[2]), column(index % shape[3]) {}
};

__device__ inline int64_t offsetOf(const Shape &shape, int64_t n, int64_t row, int64_t column) {
  return ((n * shape[2] + row) * shape[3] + column) * shape[1];
}

template <typename Index>
__global__ void maxForward(Shape x, Shape y, Window w, const float *px, float *py, Index *indices) {
  SLUICE_PIXEL_LOOP(index, y[0] * y[2] * y[3]) {
    const Pixel at(y, index);
    for (int64_t c = threadIdx.x; c < y[1]; c += blockDim.x) {
      float best = -std::numeric_limits<float>::infinity();
      int32_t where = 0;
      bool first = true;
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const int64_t iy = tapPosition(w, 0, at.row, ky), ix = tapPosition(w, 1, at.column, kx);
          if (iy < 0 || iy >= x[2] || ix < 0 || ix >= x[3])
            continue;
          const float value = px[offsetOf(x, at.n, iy, ix) + c];
          if (first || value > best || value != value) {
            best = value;
            where = static_cast<int32_t>(ky * w.kernel[1] + kx);
          }
          first = false;
        }
      py[index * y[1] + c] = best;
      if (indices)
        indices[index * y[1] + c] = static_cast<Index>(where);
    }
  }
}

template <typename Index>
__global__ void maxBackward(Shape x, Shape y, Window w, const float *pdy, const Index *indices, float *pdx) {
  SLUICE_PIXEL_LOOP(index, x[0] * x[2] * x[3]) {
    const Pixel at(x, index);
    const Windows vertical = windowsAt(w, 0, at.row, y[2]), horizontal = windowsAt(w, 1, at.column, y[3]);
    for (int64_t c = threadIdx.x; c < x[1]; c += blockDim.x) {
      float sum = 0;
      for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
        for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
          const int64_t ky = tapOf(w, 0, at.row, oy), kx = tapOf(w, 1, at.column, ox);
          if (ky < 0 || kx < 0)
            continue;
          const int64_t from = offsetOf(y, at.n, oy, ox) + c;
          sum += indices[from] == static_cast<Index>(ky * w.kernel[1] + kx) ? pdy[from] : 0.0f;
        }
      pdx[index * x[1] + c] = sum;
    }
  }
}

/// Each row of the window is summed in float, rows in double.
__global__ void averageForward(Shape x, Shape y, Window w, bool countIncludePad, const float *px, float *py) {
  SLUICE_PIXEL_LOOP(index, y[0] * y[2] * y[3]) {
    const Pixel at(y, index);
    const float weight = averageWeight(x, w, countIncludePad, at.row, at.column);
    for (int64_t c = threadIdx.x; c < y[1]; c += blockDim.x) {
      double total = 0;
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
        const int64_t iy = tapPosition(w, 0, at.row, ky);
        if (iy < 0 || iy >= x[2])
          continue;
        float sum = 0;
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx)
          if (const int64_t ix = tapPosition(w, 1, at.column, kx); ix >= 0 && ix < x[3])
            sum += px[offsetOf(x, at.n, iy, ix) + c];
        total += static_cast<double>(sum);
      }
      py[index * y[1] + c] = static_cast<float>(total * static_cast<double>(weight));
    }
  }
}

__global__ void averageBackward(Shape x, Shape y, Window w, bool countIncludePad, const float *pdy, float *pdx) {
  SLUICE_PIXEL_LOOP(index, x[0] * x[2] * x[3]) {
    const Pixel at(x, index);
    const Windows vertical = windowsAt(w, 0, at.row, y[2]), horizontal = windowsAt(w, 1, at.column, y[3]);
    for (int64_t c = threadIdx.x; c < x[1]; c += blockDim.x) {
      float sum = 0;
      for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
        for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox)
          if (tapOf(w, 0, at.row, oy) >= 0 && tapOf(w, 1, at.column, ox) >= 0)
            sum += pdy[offsetOf(y, at.n, oy, ox) + c] * averageWeight(x, w, countIncludePad, oy, ox);
      pdx[index * x[1] + c] = sum;
    }
  }
}

PixelGrid gridOf(const Shape &shape) { return {shape[0] * shape[2] * shape[3], shape[1]}; }

} // namespace

MaxPool::MaxPool(const char *node, Shape x, Shape y, Window window) : Kernel(node), x(x), y(y), window(window) {
  checkPool(node, x, y, window);
}

void MaxPool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &indices,
                      const Tensor &) const {
  const float *px = stream.data<float>(input);
  float *py = stream.data<float>(output);
  void *where = stream.address(indices);
  const PixelGrid shape = gridOf(y);
  stream.launch(node, "max_pool", [&] {
    if (indices.type == DataType::U8)
      maxForward<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, px, py, static_cast<uint8_t *>(where));
    else
      maxForward<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, px, py, static_cast<int32_t *>(where));
  });
}

void MaxPool::backward(Stream &stream, const Tensor &dy, const Tensor &indices, const Tensor &dx,
                       const Tensor &) const {
  const float *pdy = stream.data<float>(dy);
  float *pdx = stream.data<float>(dx);
  const void *where = stream.address(indices);
  const PixelGrid shape = gridOf(x);
  stream.launch(node, "max_pool_backward", [&] {
    if (indices.type == DataType::U8)
      maxBackward<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, pdy,
                                                                  static_cast<const uint8_t *>(where), pdx);
    else
      maxBackward<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, pdy,
                                                                  static_cast<const int32_t *>(where), pdx);
  });
}

AveragePool::AveragePool(const char *node, Shape x, Shape y, Window window, bool countIncludePad)
    : Kernel(node), x(x), y(y), window(window), countIncludePad(countIncludePad) {
  checkPool(node, x, y, window);
}

void AveragePool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &) const {
  const float *px = stream.data<float>(input);
  float *py = stream.data<float>(output);
  const PixelGrid shape = gridOf(y);
  stream.launch(node, "average_pool", [&] {
    averageForward<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, countIncludePad, px, py);
  });
}

void AveragePool::backward(Stream &stream, const Tensor &dy, const Tensor &dx, const Tensor &) const {
  const float *pdy = stream.data<float>(dy);
  float *pdx = stream.data<float>(dx);
  const PixelGrid shape = gridOf(x);
  stream.launch(node, "average_pool_backward", [&] {
    averageBackward<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, countIncludePad, pdy, pdx);
  });
}

} // namespace sluice
