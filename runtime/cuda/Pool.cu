// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC volumes; images have one slice: a row of threads walks the channels of a pixel, 16 bytes of them a
// thread. Backward passes gather: each input pixel adds up the windows that hold it, in a fixed order.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/Windows.h"

#include <limits>

namespace sluice {

namespace {

/// Lines of an image: a block takes pixels of one line at a time, and computes once what they share.
struct LineGrid {
  dim3 block, grid;
  LineGrid(const Shape &shape, int64_t threadsAcross)
      : block(PixelGrid(1, threadsAcross).block),
        grid(blocksFor(pixelsOf(shape) / shape[4], 1), std::min(blocksFor(shape[4], 4 * block.y), 65535u)) {}
};
#define SLUICE_LINE_LOOP(at, count)                                                                                    \
  for (int64_t at = blockIdx.y * static_cast<int64_t>(blockDim.y) + threadIdx.y; at < (count);                         \
       at += static_cast<int64_t>(gridDim.y) * blockDim.y)
struct Line {
  int64_t n, z, y;
  __device__ Line(const Shape &shape, int64_t index) {
    const int64_t slice = quotient(index, shape[3]);
    y = index - slice * shape[3], n = quotient(slice, shape[2]), z = slice - n * shape[2];
  }
};

/// The windows along each axis that may hold a pixel of x.
struct Holders {
  Windows deep, vertical, horizontal;
  __device__ Holders(const Shape &y, const Window &w, const Pixel &at)
      : deep(windowsAt(w, 0, at.z, y[2])), vertical(windowsAt(w, 1, at.y, y[3])),
        horizontal(windowsAt(w, 2, at.x, y[4])) {}
  /// Whether the window of result `o` has a tap on the pixel.
  __device__ static bool has(const Window &w, const Pixel &at, const Pixel &o) {
    return tapOf(w, 0, at.z, o.z) >= 0 && tapOf(w, 1, at.y, o.y) >= 0 && tapOf(w, 2, at.x, o.x) >= 0;
  }
};

/// Window positions of neighbouring channels, loaded and stored together where they are bytes.
template <typename Index, int Count> __device__ inline void loadIndices(int32_t (&to)[Count], const Index *from) {
  if constexpr (sizeof(Index) == 1 && Count == 8) {
    const uint2 together = *reinterpret_cast<const uint2 *>(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      to[i] = static_cast<int32_t>(together.x >> (8 * i) & 0xff);
      to[4 + i] = static_cast<int32_t>(together.y >> (8 * i) & 0xff);
    }
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

/// The largest values of neighbouring channels so far, and at which taps they lie.
template <int Count> struct Largest {
  float best[Count];
  int32_t where[Count] = {};
  bool first = true;

  template <typename T> __device__ void take(const T *from, int32_t tap) {
    float value[Count];
    loadVector(value, from);
#pragma unroll
    for (int i = 0; i < Count; ++i)
      if (first || value[i] > best[i] || value[i] != value[i])
        best[i] = value[i], where[i] = tap;
    first = false;
  }
};

template <typename T, typename Index, int Count>
__global__ void maxForward(Shape x, Shape y, Window w, const T *px, T *py, Index *indices) {
  for (int64_t l = blockIdx.x; l < y[0] * y[2] * y[3]; l += gridDim.x) {
    const Line line(y, l);
    const int64_t top = tapPosition(w, 1, line.y, 0), front = tapPosition(w, 0, line.z, 0);
    SLUICE_LINE_LOOP(at, y[4]) {
      const int64_t left = tapPosition(w, 2, at, 0), to = (l * y[4] + at) * y[1];
      for (int64_t c = threadIdx.x * Count; c < y[1]; c += blockDim.x * Count) {
        Largest<Count> largest;
        for (int i = 0; i < Count; ++i)
          largest.best[i] = -std::numeric_limits<float>::infinity();
        int32_t tap = 0;
        for (int kz = 0; kz < w.kernel[0]; ++kz)
          for (int ky = 0; ky < w.kernel[1]; ++ky) {
            const int64_t sz = front + kz * w.dilations[0], sy = top + ky * w.dilations[1];
            const bool inside = sz >= 0 && sz < x[2] && sy >= 0 && sy < x[3];
            const int64_t from = ((line.n * x[2] + sz) * x[3] + sy) * x[4] * x[1] + c;
            for (int kx = 0; kx < w.kernel[2]; ++kx, ++tap)
              if (const int64_t sx = left + kx * w.dilations[2]; inside && sx >= 0 && sx < x[4])
                largest.take(px + from + sx * x[1], tap);
          }
        storeVector(py + to + c, largest.best);
        if (indices)
          storeIndices(indices + to + c, largest.where);
      }
    }
  }
}

/// The windows along an axis that hold a position, and the taps that do; in 32 bits, which extents have.
struct Taps {
  int first, last, distance, stride, dilation; ///< distance: of the position from where window 0 begins
  __device__ Taps(const Window &w, int axis, int64_t position, int64_t windows)
      : distance(static_cast<int>(position + w.pads[axis])), stride(static_cast<int>(w.strides[axis])),
        dilation(static_cast<int>(w.dilations[axis])) {
    const Windows all = windowsAt(w, axis, position, windows);
    first = static_cast<int>(all.first), last = static_cast<int>(all.last);
  }
  /// Of window `o`, one of them; -1: none.
  __device__ int of(int o) const {
    const int from = distance - o * stride;
    if (dilation == 1)
      return from;
    const int tap = from / dilation;
    return tap * dilation == from ? tap : -1;
  }
};

template <typename T, typename Index, int Count>
__global__ void maxBackward(Shape x, Shape y, Window w, const T *pdy, const Index *indices, T *pdx) {
  const auto across = static_cast<int>(w.kernel[2]), down = static_cast<int>(w.kernel[1]);
  for (int64_t l = blockIdx.x; l < x[0] * x[2] * x[3]; l += gridDim.x) {
    const Line line(x, l);
    const Taps deep(w, 0, line.z, y[2]), vertical(w, 1, line.y, y[3]);
    SLUICE_LINE_LOOP(at, x[4]) {
      const Taps horizontal(w, 2, at, y[4]);
      for (int64_t c = threadIdx.x * Count; c < x[1]; c += blockDim.x * Count) {
        float sum[Count] = {}, value[Count];
        int32_t where[Count];
        for (int oz = deep.first; oz <= deep.last; ++oz)
          for (int oy = vertical.first; oy <= vertical.last; ++oy) {
            const int kz = deep.of(oz), ky = vertical.of(oy);
            if (kz < 0 || ky < 0)
              continue;
            int64_t from = (((line.n * y[2] + oz) * y[3] + oy) * y[4] + horizontal.first) * y[1] + c;
            for (int ox = horizontal.first; ox <= horizontal.last; ++ox, from += y[1]) {
              const int kx = horizontal.of(ox), tap = (kz * down + ky) * across + kx;
              if (kx < 0)
                continue;
              loadIndices(where, indices + from);
              loadVector(value, pdy + from);
#pragma unroll
              for (int i = 0; i < Count; ++i)
                sum[i] += where[i] == tap ? value[i] : 0.0f;
            }
          }
        storeVector(pdx + (l * x[4] + at) * x[1] + c, sum);
      }
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
            if (!Holders::has(w, at, o))
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
      const LineGrid shape(y, y[1] / count);
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
      const LineGrid shape(x, x[1] / count);
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
