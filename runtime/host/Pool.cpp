// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC. Loops run over windows outside and a tile of channels inside, so that they vectorize. Backward
// passes gather: each input pixel adds up the windows that hold it, in a fixed order, and no two threads write the same
// place.
#include "runtime/host/Parallel.h"
#include "runtime/kernels/Windows.h"

#include <algorithm>
#include <limits>
#include <string>

namespace sluice {

namespace {

constexpr int64_t tile = 64; ///< channels handled together: their state stays in registers or the first-level cache

/// Calls body(n, row, column, offset of the pixel) for all pixels of an NHWC image, rows in parallel.
template <typename Body> void forPixels(const Shape &shape, Body &&body) {
  parallelFor(shape[0] * shape[2], [&](int64_t line) {
    const int64_t n = line / shape[2], row = line % shape[2];
    for (int64_t column = 0; column < shape[3]; ++column)
      body(n, row, column, (line * shape[3] + column) * shape[1]);
  });
}

template <typename Index>
void maxForward(const float *px, float *py, Index *indices, const Shape &x, const Shape &y, const Window &w) {
  forPixels(y, [&](int64_t n, int64_t oy, int64_t ox, int64_t offset) {
    for (int64_t c = 0; c < y[1]; c += tile) {
      const int64_t width = std::min(tile, y[1] - c);
      float best[tile];
      int32_t where[tile];
      bool first = true;
      std::fill_n(best, width, -std::numeric_limits<float>::infinity());
      std::fill_n(where, width, 0);
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const int64_t iy = tapPosition(w, 0, oy, ky), ix = tapPosition(w, 1, ox, kx);
          if (iy < 0 || iy >= x[2] || ix < 0 || ix >= x[3])
            continue;
          const float *from = px + ((n * x[2] + iy) * x[3] + ix) * x[1] + c;
          const auto position = static_cast<int32_t>(ky * w.kernel[1] + kx);
          for (int64_t i = 0; i < width; ++i) {
            const bool wins = first | (from[i] > best[i]) | (from[i] != from[i]);
            best[i] = wins ? from[i] : best[i];
            where[i] = wins ? position : where[i];
          }
          first = false;
        }
      std::copy_n(best, width, py + offset + c);
      if (indices)
        for (int64_t i = 0; i < width; ++i)
          indices[offset + c + i] = static_cast<Index>(where[i]);
    }
  });
}

template <typename Index>
void maxBackward(const float *pdy, const Index *indices, float *pdx, const Shape &x, const Shape &y, const Window &w) {
  forPixels(x, [&](int64_t n, int64_t iy, int64_t ix, int64_t offset) {
    std::fill_n(pdx + offset, x[1], 0.0f);
    const Windows vertical = windowsAt(w, 0, iy, y[2]), horizontal = windowsAt(w, 1, ix, y[3]);
    for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
      for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
        const int64_t ky = tapOf(w, 0, iy, oy), kx = tapOf(w, 1, ix, ox);
        if (ky < 0 || kx < 0)
          continue;
        const int64_t from = ((n * y[2] + oy) * y[3] + ox) * y[1];
        const float *__restrict gradient = pdy + from;
        const Index *__restrict winner = indices + from;
        float *__restrict to = pdx + offset;
        const auto position = static_cast<Index>(ky * w.kernel[1] + kx);
        for (int64_t i = 0; i < x[1]; ++i)
          to[i] += winner[i] == position ? gradient[i] : 0.0f;
      }
  });
}

/// One average pixel, a tile of channels: each row of the window is summed in float, rows in double.
void averagePixel(const float *px, float *to, const Shape &x, const Window &w, int64_t n, int64_t oy, int64_t ox,
                  int64_t c, float weight) {
  const int64_t width = std::min(tile, x[1] - c);
  double total[tile] = {};
  for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
    const int64_t iy = tapPosition(w, 0, oy, ky);
    if (iy < 0 || iy >= x[2])
      continue;
    float sum[tile] = {};
    for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
      const int64_t ix = tapPosition(w, 1, ox, kx);
      if (ix < 0 || ix >= x[3])
        continue;
      const float *from = px + ((n * x[2] + iy) * x[3] + ix) * x[1] + c;
      for (int64_t i = 0; i < width; ++i)
        sum[i] += from[i];
    }
    for (int64_t i = 0; i < width; ++i)
      total[i] += static_cast<double>(sum[i]);
  }
  for (int64_t i = 0; i < width; ++i)
    to[i] = static_cast<float>(total[i] * static_cast<double>(weight));
}

} // namespace

MaxPool::MaxPool(const char *node, Shape x, Shape y, Window window) : Kernel(node), x(x), y(y), window(window) {
  checkPool(node, x, y, window);
}

void MaxPool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &indices,
                      const Tensor &) const {
  const float *px = stream.data<float>(input);
  float *py = stream.data<float>(output);
  void *where = stream.address(indices);
  const bool bytes = indices.type == DataType::U8;
  stream.launch(node, "max_pool", [this, px, py, where, bytes] {
    if (bytes)
      maxForward(px, py, static_cast<uint8_t *>(where), x, y, window);
    else
      maxForward(px, py, static_cast<int32_t *>(where), x, y, window);
  });
}

void MaxPool::backward(Stream &stream, const Tensor &dy, const Tensor &indices, const Tensor &dx,
                       const Tensor &) const {
  const float *pdy = stream.data<float>(dy);
  float *pdx = stream.data<float>(dx);
  const void *where = stream.address(indices);
  const bool bytes = indices.type == DataType::U8;
  stream.launch(node, "max_pool_backward", [this, pdy, pdx, where, bytes] {
    if (bytes)
      maxBackward(pdy, static_cast<const uint8_t *>(where), pdx, x, y, window);
    else
      maxBackward(pdy, static_cast<const int32_t *>(where), pdx, x, y, window);
  });
}

AveragePool::AveragePool(const char *node, Shape x, Shape y, Window window, bool countIncludePad)
    : Kernel(node), x(x), y(y), window(window), countIncludePad(countIncludePad) {
  checkPool(node, x, y, window);
}

void AveragePool::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &) const {
  const float *px = stream.data<float>(input);
  float *py = stream.data<float>(output);
  stream.launch(node, "average_pool", [this, px, py] {
    const int64_t tiles = (x[1] + tile - 1) / tile;
    parallelFor(y[0] * y[2] * tiles, [&](int64_t task) {
      const int64_t c = task % tiles * tile, line = task / tiles, n = line / y[2], oy = line % y[2];
      for (int64_t ox = 0; ox < y[3]; ++ox)
        averagePixel(px, py + (line * y[3] + ox) * y[1] + c, x, window, n, oy, ox, c,
                     averageWeight(x, window, countIncludePad, oy, ox));
    });
  });
}

void AveragePool::backward(Stream &stream, const Tensor &dy, const Tensor &dx, const Tensor &) const {
  const float *pdy = stream.data<float>(dy);
  float *pdx = stream.data<float>(dx);
  stream.launch(node, "average_pool_backward", [this, pdy, pdx] {
    forPixels(x, [&](int64_t n, int64_t iy, int64_t ix, int64_t offset) {
      float *__restrict to = pdx + offset;
      std::fill_n(to, x[1], 0.0f);
      const Windows vertical = windowsAt(window, 0, iy, y[2]), horizontal = windowsAt(window, 1, ix, y[3]);
      for (int64_t oy = vertical.first; oy <= vertical.last; ++oy) {
        for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
          if (tapOf(window, 0, iy, oy) < 0 || tapOf(window, 1, ix, ox) < 0)
            continue;
          const float *__restrict from = pdy + ((n * y[2] + oy) * y[3] + ox) * y[1];
          const float weight = averageWeight(x, window, countIncludePad, oy, ox);
          for (int64_t i = 0; i < x[1]; ++i)
            to[i] += from[i] * weight;
        }
      }
    });
  });
}

} // namespace sluice
