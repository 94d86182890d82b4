// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC volumes; images have one slice: a row of threads walks the channels of a pixel, 16 bytes of them a
// thread. Backward passes gather: each input pixel adds up the windows that hold it, in a fixed order.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/Windows.h"

#include <limits>

namespace sluice {

namespace {

/// The windows along each axis that may hold a pixel of x.
struct Holders {
  Windows deep, vertical, horizontal;
  __device__ Holders(const Shape &y, const Window &w, const Pixel &at)
      : deep(windowsAt(w, 0, at.z, y[2])), vertical(windowsAt(w, 1, at.y, y[3])),
        horizontal(windowsAt(w, 2, at.x, y[4])) {}
  /// The tap of the pixel in the window of result `o`, -1: none.
  __device__ static int64_t tap(const Window &w, const Pixel &at, const Pixel &o) {
    const int64_t kz = tapOf(w, 0, at.z, o.z), ky = tapOf(w, 1, at.y, o.y), kx = tapOf(w, 2, at.x, o.x);
    return kz < 0 || ky < 0 || kx < 0 ? -1 : (kz * w.kernel[1] + ky) * w.kernel[2] + kx;
  }
};

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
  SLUICE_PIXEL_LOOP(index, pixelsOf(y)) {
    const Pixel at = pixelAt(y, index);
    for (int64_t c = threadIdx.x * Count; c < y[1]; c += blockDim.x * Count) {
      float best[Count], value[Count];
      int32_t where[Count] = {};
      for (int i = 0; i < Count; ++i)
        best[i] = -std::numeric_limits<float>::infinity();
      bool first = true;
      for (int64_t kz = 0; kz < w.kernel[0]; ++kz)
        for (int64_t ky = 0; ky < w.kernel[1]; ++ky)
          for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
            const Pixel source = tapPixel(w, at, kz, ky, kx);
            if (!isInside(x, source))
              continue;
            loadVector(value, px + offsetOf(x, source) + c);
            const auto position = static_cast<int32_t>((kz * w.kernel[1] + ky) * w.kernel[2] + kx);
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
  SLUICE_PIXEL_LOOP(index, pixelsOf(x)) {
    const Pixel at = pixelAt(x, index);
    const Holders holders(y, w, at);
    for (int64_t c = threadIdx.x * Count; c < x[1]; c += blockDim.x * Count) {
      float sum[Count] = {}, value[Count];
      int32_t where[Count];
      for (int64_t oz = holders.deep.first; oz <= holders.deep.last; ++oz)
        for (int64_t oy = holders.vertical.first; oy <= holders.vertical.last; ++oy)
          for (int64_t ox = holders.horizontal.first; ox <= holders.horizontal.last; ++ox) {
            const Pixel o{at.n, oz, oy, ox};
            const int64_t tap = Holders::tap(w, at, o);
            if (tap < 0)
              continue;
            const int64_t from = offsetOf(y, o) + c;
            loadIndices(where, indices + from);
            loadVector(value, pdy + from);
            for (int i = 0; i < Count; ++i)
              sum[i] += where[i] == static_cast<int32_t>(tap) ? value[i] : 0.0f;
          }
      storeVector(pdx + index * x[1] + c, sum);
    }
  }
}

/// Each row of the window is summed in float, rows in double.
template <typename T, int Count>
__global__ void averageForward(Shape x, Shape y, Window w, bool countIncludePad, const T *px, T *py) {
  SLUICE_PIXEL_LOOP(index, pixelsOf(y)) {
    const Pixel at = pixelAt(y, index);
    const float weight = averageWeight(x, w, countIncludePad, at);
    for (int64_t c = threadIdx.x * Count; c < y[1]; c += blockDim.x * Count) {
      double total[Count] = {};
      float value[Count];
      for (int64_t line = 0; line < w.kernel[0] * w.kernel[1]; ++line) {
        Pixel source = tapPixel(w, at, line / w.kernel[1], line % w.kernel[1], 0);
        if (source.z < 0 || source.z >= x[2] || source.y < 0 || source.y >= x[3])
          continue;
        float sum[Count] = {};
        for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
          source.x = tapPosition(w, 2, at.x, kx);
          if (source.x < 0 || source.x >= x[4])
            continue;
          loadVector(value, px + offsetOf(x, source) + c);
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
  SLUICE_PIXEL_LOOP(index, pixelsOf(x)) {
    const Pixel at = pixelAt(x, index);
    const Holders holders(y, w, at);
    for (int64_t c = threadIdx.x * Count; c < x[1]; c += blockDim.x * Count) {
      float sum[Count] = {}, value[Count];
      for (int64_t oz = holders.deep.first; oz <= holders.deep.last; ++oz)
        for (int64_t oy = holders.vertical.first; oy <= holders.vertical.last; ++oy)
          for (int64_t ox = holders.horizontal.first; ox <= holders.horizontal.last; ++ox) {
            const Pixel o{at.n, oz, oy, ox};
            if (Holders::tap(w, at, o) < 0)
              continue;
            const float weight = averageWeight(x, w, countIncludePad, o);
            loadVector(value, pdy + offsetOf(y, o) + c);
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

PixelGrid gridOf(const Shape &shape, int count) { return {pixelsOf(shape), shape[1] / count}; }

} // namespace

MaxPool::MaxPool(Node node, Shape x, Shape y, Window window)
    : Kernel(node), x(asVolume(x)), y(asVolume(y)), window(asVolume(window, x.rank)) {
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

AveragePool::AveragePool(Node node, Shape x, Shape y, Window window, bool countIncludePad)
    : Kernel(node), x(asVolume(x)), y(asVolume(y)), window(asVolume(window, x.rank)), countIncludePad(countIncludePad) {
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
