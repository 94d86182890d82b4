// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC volumes; images have one slice. Loops run over windows outside and a tile of channels inside, so that
// they vectorize. Backward passes gather: each input pixel adds up the windows that hold it, in a fixed order, and no
// two threads write the same place.
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/Windows.h"

#include <algorithm>
#include <limits>
#include <string>

namespace sluice {

namespace {

constexpr int64_t tile = 64;     ///< channels handled together: their state stays in registers or the first-level cache
constexpr int64_t sumTile = 512; ///< the same of gradients, which windows are looked up for once

/// Calls body(pixel, its offset) for all pixels of a volume, rows in parallel.
template <typename Body> void forPixels(const Shape &shape, Body &&body) {
  parallelFor(shape[0] * shape[2] * shape[3], [&](int64_t line) {
    Pixel at = pixelAt(shape, line * shape[4]);
    for (; at.x < shape[4]; ++at.x)
      body(at, (line * shape[4] + at.x) * shape[1]);
  });
}

/// Calls body(tap, pixel of x, its offset) for all taps of the window of a result that lie in x, in order.
template <typename Body> void forTaps(const Shape &x, const Window &w, const Pixel &o, Body &&body) {
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky)
      for (int64_t kx = 0; kx < w.kernel[2]; ++kx)
        if (const Pixel source = tapPixel(w, o, kz, ky, kx); isInside(x, source))
          body((kz * w.kernel[1] + ky) * w.kernel[2] + kx, offsetOf(x, source));
}

/// Calls body(tap, result, its offset in y) for all windows that hold a pixel of x, in order.
template <typename Body> void forWindows(const Shape &y, const Window &w, const Pixel &at, Body &&body) {
  const Windows deep = windowsAt(w, 0, at.z, y[2]), vertical = windowsAt(w, 1, at.y, y[3]),
                horizontal = windowsAt(w, 2, at.x, y[4]);
  for (int64_t oz = deep.first; oz <= deep.last; ++oz)
    for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
      for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
        const int64_t kz = tapOf(w, 0, at.z, oz), ky = tapOf(w, 1, at.y, oy), kx = tapOf(w, 2, at.x, ox);
        const Pixel o{at.n, oz, oy, ox};
        if (kz >= 0 && ky >= 0 && kx >= 0)
          body((kz * w.kernel[1] + ky) * w.kernel[2] + kx, o, offsetOf(y, o));
      }
}

template <typename T> void storeAll(const float *from, int64_t count, T *to) {
  for (int64_t i = 0; i < count; ++i)
    store(to + i, from[i]);
}

/// Calls sum(c, width, sums) for tiles [c, c + width) of the channels of a gradient at `to`, and stores what it makes
/// of sums, which are 0 before.
template <typename T, typename Sum> void sumChannels(T *to, int64_t channels, Sum &&sum) {
  for (int64_t c = 0; c < channels; c += sumTile) {
    const int64_t width = std::min(sumTile, channels - c);
    float sums[sumTile];
    std::fill_n(sums, width, 0.0f);
    sum(c, width, sums);
    storeAll(sums, width, to + c);
  }
}

template <typename T, typename Index>
void maxForward(const T *px, T *py, Index *indices, const Shape &x, const Shape &y, const Window &w) {
  forPixels(y, [&](const Pixel &o, int64_t offset) {
    for (int64_t c = 0; c < y[1]; c += tile) {
      const int64_t width = std::min(tile, y[1] - c);
      float best[tile];
      int32_t where[tile];
      bool first = true;
      std::fill_n(best, width, -std::numeric_limits<float>::infinity());
      std::fill_n(where, width, 0);
      forTaps(x, w, o, [&](int64_t tap, int64_t source) {
        const T *from = px + source + c;
        const auto position = static_cast<int32_t>(tap);
        for (int64_t i = 0; i < width; ++i) {
          const float value = widened(from[i]);
          const bool wins = first | (value > best[i]) | (value != value);
          best[i] = wins ? value : best[i];
          where[i] = wins ? position : where[i];
        }
        first = false;
      });
      storeAll(best, width, py + offset + c);
      if (indices)
        for (int64_t i = 0; i < width; ++i)
          indices[offset + c + i] = static_cast<Index>(where[i]);
    }
  });
}

template <typename T, typename Index>
void maxBackward(const T *pdy, const Index *indices, T *pdx, const Shape &x, const Shape &y, const Window &w) {
  forPixels(x, [&](const Pixel &at, int64_t offset) {
    sumChannels(pdx + offset, x[1], [&](int64_t c, int64_t width, float *__restrict sums) {
      forWindows(y, w, at, [&](int64_t tap, const Pixel &, int64_t from) {
        const T *__restrict gradient = pdy + from + c;
        const Index *__restrict winner = indices + from + c;
        const auto position = static_cast<Index>(tap);
        for (int64_t i = 0; i < width; ++i)
          sums[i] += winner[i] == position ? widened(gradient[i]) : 0.0f;
      });
    });
  });
}

/// One average pixel, a tile of channels: each row of the window is summed in float, rows in double.
template <typename T>
void averagePixel(const T *px, T *to, const Shape &x, const Window &w, const Pixel &o, int64_t c, float weight) {
  const int64_t width = std::min(tile, x[1] - c);
  double total[tile] = {};
  for (int64_t line = 0; line < w.kernel[0] * w.kernel[1]; ++line) {
    Pixel at = tapPixel(w, o, line / w.kernel[1], line % w.kernel[1], 0);
    if (at.z < 0 || at.z >= x[2] || at.y < 0 || at.y >= x[3])
      continue;
    float sum[tile] = {};
    for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
      at.x = tapPosition(w, 2, o.x, kx);
      if (at.x < 0 || at.x >= x[4])
        continue;
      const T *from = px + offsetOf(x, at) + c;
      for (int64_t i = 0; i < width; ++i)
        sum[i] += widened(from[i]);
    }
    for (int64_t i = 0; i < width; ++i)
      total[i] += static_cast<double>(sum[i]);
  }
  for (int64_t i = 0; i < width; ++i)
    store(to + i, static_cast<float>(total[i] * static_cast<double>(weight)));
}

} // namespace

MaxPool::MaxPool(Node node, Shape x, Shape y, Window window)
    : Kernel(node), x(asVolume(x)), y(asVolume(y)), window(asVolume(window, x.rank)) {
  checkPool(node, x, y, window);
}

void MaxPool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &indices,
                      const Tensor &) const {
  void *where = stream.address(indices);
  const bool bytes = indices.type == DataType::U8;
  forStored(node, input.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(input);
    T *py = stream.data<T>(output);
    stream.launch(node, "max_pool", [this, px, py, where, bytes] {
      if (bytes)
        maxForward(px, py, static_cast<uint8_t *>(where), x, y, window);
      else
        maxForward(px, py, static_cast<int32_t *>(where), x, y, window);
    });
  });
}

void MaxPool::backward(Stream &stream, const Tensor &dy, const Tensor &indices, const Tensor &dx,
                       const Tensor &) const {
  const void *where = stream.address(indices);
  const bool bytes = indices.type == DataType::U8;
  forStored(node, dx.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pdy = stream.data<T>(dy);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "max_pool_backward", [this, pdy, pdx, where, bytes] {
      if (bytes)
        maxBackward(pdy, static_cast<const uint8_t *>(where), pdx, x, y, window);
      else
        maxBackward(pdy, static_cast<const int32_t *>(where), pdx, x, y, window);
    });
  });
}

AveragePool::AveragePool(Node node, Shape x, Shape y, Window window, bool countIncludePad)
    : Kernel(node), x(asVolume(x)), y(asVolume(y)), window(asVolume(window, x.rank)), countIncludePad(countIncludePad) {
  checkPool(node, x, y, window);
}

void AveragePool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &) const {
  forStored(node, input.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(input);
    T *py = stream.data<T>(output);
    stream.launch(node, "average_pool", [this, px, py] {
      const int64_t tiles = (x[1] + tile - 1) / tile;
      parallelFor(y[0] * y[2] * y[3] * tiles, [&](int64_t task) {
        const int64_t c = task % tiles * tile, line = task / tiles;
        for (Pixel o = pixelAt(y, line * y[4]); o.x < y[4]; ++o.x)
          averagePixel(px, py + offsetOf(y, o) + c, x, window, o, c, averageWeight(x, window, countIncludePad, o));
      });
    });
  });
}

void AveragePool::backward(Stream &stream, const Tensor &dy, const Tensor &dx, const Tensor &) const {
  forStored(node, dx.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pdy = stream.data<T>(dy);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "average_pool_backward", [this, pdy, pdx] {
      forPixels(x, [&](const Pixel &at, int64_t offset) {
        sumChannels(pdx + offset, x[1], [&](int64_t c, int64_t width, float *__restrict sums) {
          forWindows(y, window, at, [&](int64_t, const Pixel &o, int64_t offsetOfResult) {
            const T *__restrict from = pdy + offsetOfResult + c;
            const float weight = averageWeight(x, window, countIncludePad, o);
            for (int64_t i = 0; i < width; ++i)
              sums[i] += widened(from[i]) * weight;
          });
        });
      });
    });
  });
}

} // namespace sluice
