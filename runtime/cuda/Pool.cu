// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC: a row of threads walks the channels of a pixel, 16 bytes of them a thread. Backward passes gather:
// each input pixel adds up the windows that hold it, in a fixed order.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/Windows.h"

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

/// Window positions of neighbouring channels, loaded and stored together where they are bytes.
template <typename Index, int Count> __device__ inline void loadIndices(int32_t (&to)[Count], const Index *from) {
  if constexpr (sizeof(Index) == 1 && Count == 8) {
    const uint64_t together = *reinterpret_cast<const uint64_t *>(from);
    for (int i = 0; i < Count; ++i)
      to[i] = static_cast<int32_t>(together >> (8 * i) & 0xff);
  } else {
    for (int i = 0; i < Count; ++i)
      to[i] = static_cast<int32_t>(from[i]);
  }
}
template <typename Index, int Count> __device__ inline void storeIndices(Index *to, const int32_t (&from)[Count]) {
  if constexpr (sizeof(Index) == 1 && Count == 8) {
    uint64_t together = 0;
    for (int i = 0; i < Count; ++i)
      together |= static_cast<uint64_t>(from[i] & 0xff) << (8 * i);
    *reinterpret_cast<uint64_t *>(to) = together;
  } else {
    for (int i = 0; i < Count; ++i)
      to[i] = static_cast<Index>(from[i]);
  }
}

template <typename T, typename Index, int Count>
__global__ void maxForward(Shape x, Shape y, Window w, const T *px, T *py, Index *indices) {
  SLUICE_PIXEL_LOOP(index, y[0] * y[2] * y[3]) {
    const Pixel at(y, index);
    for (int64_t c = threadIdx.x * Count; c < y[1]; c += blockDim.x * Count) {
      float best[Count], value[Count];
      int32_t where[Count] = {};
      for (int i = 0; i < Count; ++i)
        best[i] = -std::numeric_limits<float>::infinity();
      bool first = true;
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const int64_t iy = tapPosition(w, 0, at.row, ky), ix = tapPosition(w, 1, at.column, kx);
          if (iy < 0 || iy >= x[2] || ix < 0 || ix >= x[3])
            continue;
          loadVector(value, px + offsetOf(x, at.n, iy, ix) + c);
          const auto position = static_cast<int32_t>(ky * w.kernel[1] + kx);
          for (int i = 0; i < Count; ++i)
            if (first || value[i] > best[i] || value[i] != value[i])
              best[i] = value[i], where[i] = position;
          first = false;
        }
      storeVector(py + index * y[1] + c, best);
      if (indices)
        storeIndices(indices + index * y[1] + c, where);
    }
  }
}

template <typename T, typename Index, int Count>
__global__ void maxBackward(Shape x, Shape y, Window w, const T *pdy, const Index *indices, T *pdx) {
  SLUICE_PIXEL_LOOP(index, x[0] * x[2] * x[3]) {
    const Pixel at(x, index);
    const Windows vertical = windowsAt(w, 0, at.row, y[2]), horizontal = windowsAt(w, 1, at.column, y[3]);
    for (int64_t c = threadIdx.x * Count; c < x[1]; c += blockDim.x * Count) {
      float sum[Count] = {}, value[Count];
      int32_t where[Count];
      for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
        for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
          const int64_t ky = tapOf(w, 0, at.row, oy), kx = tapOf(w, 1, at.column, ox);
          if (ky < 0 || kx < 0)
            continue;
          const int64_t from = offsetOf(y, at.n, oy, ox) + c;
          const auto position = static_cast<int32_t>(ky * w.kernel[1] + kx);
          loadIndices(where, indices + from);
          loadVector(value, pdy + from);
          for (int i = 0; i < Count; ++i)
            sum[i] += where[i] == position ? value[i] : 0.0f;
        }
      storeVector(pdx + index * x[1] + c, sum);
    }
  }
}

/// Each row of the window is summed in float, rows in double.
template <typename T, int Count>
__global__ void averageForward(Shape x, Shape y, Window w, bool countIncludePad, const T *px, T *py) {
  SLUICE_PIXEL_LOOP(index, y[0] * y[2] * y[3]) {
    const Pixel at(y, index);
    const float weight = averageWeight(x, w, countIncludePad, at.row, at.column);
    for (int64_t c = threadIdx.x * Count; c < y[1]; c += blockDim.x * Count) {
      double total[Count] = {};
      float value[Count];
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
        const int64_t iy = tapPosition(w, 0, at.row, ky);
        if (iy < 0 || iy >= x[2])
          continue;
        float sum[Count] = {};
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx)
          if (const int64_t ix = tapPosition(w, 1, at.column, kx); ix >= 0 && ix < x[3]) {
            loadVector(value, px + offsetOf(x, at.n, iy, ix) + c);
            for (int i = 0; i < Count; ++i)
              sum[i] += value[i];
          }
        for (int i = 0; i < Count; ++i)
          total[i] += static_cast<double>(sum[i]);
      }
      for (int i = 0; i < Count; ++i)
        value[i] = static_cast<float>(total[i] * static_cast<double>(weight));
      storeVector(py + index * y[1] + c, value);
    }
  }
}

template <typename T, int Count>
__global__ void averageBackward(Shape x, Shape y, Window w, bool countIncludePad, const T *pdy, T *pdx) {
  SLUICE_PIXEL_LOOP(index, x[0] * x[2] * x[3]) {
    const Pixel at(x, index);
    const Windows vertical = windowsAt(w, 0, at.row, y[2]), horizontal = windowsAt(w, 1, at.column, y[3]);
    for (int64_t c = threadIdx.x * Count; c < x[1]; c += blockDim.x * Count) {
      float sum[Count] = {}, value[Count];
      for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
        for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox)
          if (tapOf(w, 0, at.row, oy) >= 0 && tapOf(w, 1, at.column, ox) >= 0) {
            const float weight = averageWeight(x, w, countIncludePad, oy, ox);
            loadVector(value, pdy + offsetOf(y, at.n, oy, ox) + c);
            for (int i = 0; i < Count; ++i)
              sum[i] += value[i] * weight;
          }
      storeVector(pdx + index * x[1] + c, sum);
    }
  }
}

/// Calls work(stored type, count of neighbouring channels that a thread takes): 16 bytes, or one where channels do not
/// divide into them.
template <typename Work> void forVectors(DataType type, int64_t channels, Work &&work) {
  forStored(type, [&](auto *stored) {
    constexpr int count = 16 / sizeof(*stored);
    if (channels % count == 0)
      work(stored, std::integral_constant<int, count>());
    else
      work(stored, std::integral_constant<int, 1>());
  });
}

/// Calls work(indices) with the type in which they are stored.
template <typename Work> void forIndices(DataType type, void *indices, Work &&work) {
  if (type == DataType::U8)
    work(static_cast<uint8_t *>(indices));
  else
    work(static_cast<int32_t *>(indices));
}

PixelGrid gridOf(const Shape &shape, int count) { return {shape[0] * shape[2] * shape[3], shape[1] / count}; }

} // namespace

MaxPool::MaxPool(const char *node, Shape x, Shape y, Window window) : Kernel(node), x(x), y(y), window(window) {
  checkPool(node, x, y, window);
}

void MaxPool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &indices,
                      const Tensor &) const {
  const void *from = stream.address(input);
  void *to = stream.address(output), *where = stream.address(indices);
  stream.launch(node, "max_pool", [&] {
    forVectors(input.type, y[1], [&](auto *stored, auto vector) {
      using T = std::remove_pointer_t<decltype(stored)>;
      constexpr int count = decltype(vector)::value;
      const T *px = static_cast<const T *>(from);
      T *py = static_cast<T *>(to);
      const PixelGrid shape = gridOf(y, count);
      forIndices(indices.type, where, [&](auto *positions) {
        const auto kernel = maxForward<T, std::remove_pointer_t<decltype(positions)>, count>;
        kernel<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, px, py, positions);
      });
    });
  });
}

void MaxPool::backward(Stream &stream, const Tensor &dy, const Tensor &indices, const Tensor &dx,
                       const Tensor &) const {
  const void *from = stream.address(dy);
  void *to = stream.address(dx), *where = stream.address(indices);
  stream.launch(node, "max_pool_backward", [&] {
    forVectors(dy.type, x[1], [&](auto *stored, auto vector) {
      using T = std::remove_pointer_t<decltype(stored)>;
      constexpr int count = decltype(vector)::value;
      const T *pdy = static_cast<const T *>(from);
      T *pdx = static_cast<T *>(to);
      const PixelGrid shape = gridOf(x, count);
      forIndices(indices.type, where, [&](auto *positions) {
        const auto kernel = maxBackward<T, std::remove_pointer_t<decltype(positions)>, count>;
        kernel<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, pdy, positions, pdx);
      });
    });
  });
}

AveragePool::AveragePool(const char *node, Shape x, Shape y, Window window, bool countIncludePad)
    : Kernel(node), x(x), y(y), window(window), countIncludePad(countIncludePad) {
  checkPool(node, x, y, window);
}

void AveragePool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &) const {
  const void *from = stream.address(input);
  void *to = stream.address(output);
  stream.launch(node, "average_pool", [&] {
    forVectors(input.type, y[1], [&](auto *stored, auto vector) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *px = static_cast<const T *>(from);
      T *py = static_cast<T *>(to);
      const PixelGrid shape = gridOf(y, decltype(vector)::value);
      const auto kernel = averageForward<T, decltype(vector)::value>;
      kernel<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, countIncludePad, px, py);
    });
  });
}

void AveragePool::backward(Stream &stream, const Tensor &dy, const Tensor &dx, const Tensor &) const {
  const void *from = stream.address(dy);
  void *to = stream.address(dx);
  stream.launch(node, "average_pool_backward", [&] {
    forVectors(dy.type, x[1], [&](auto *stored, auto vector) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *pdy = static_cast<const T *>(from);
      T *pdx = static_cast<T *>(to);
      const PixelGrid shape = gridOf(x, decltype(vector)::value);
      const auto kernel = averageBackward<T, decltype(vector)::value>;
      kernel<<<shape.grid, shape.block, 0, native(stream)>>>(x, y, window, countIncludePad, pdy, pdx);
    });
  });
}

} // namespace sluice
