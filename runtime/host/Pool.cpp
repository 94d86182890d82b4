// SPDX-License-Identifier: Apache-2.0
// Pooling on NHWC volumes; images have one slice. Loops run over windows outside and a tile of channels inside, so that
// they vectorize. Backward passes gather: each input pixel adds up the windows that hold it, in a fixed order, and no
// two threads write the same place.
#include "runtime/host/Parallel.h"
#include "runtime/host/Vectors.h"
#include "runtime/kernels/Windows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace sluice {

namespace {

constexpr int64_t averageTile = 64; ///< channels that are averaged together: their sums stay in the first-level cache
constexpr int64_t sumTile = 512;    ///< the same of gradients of averages, which windows are looked up for once

/// Calls body(first pixel, its offset) for all lines of a volume, in parallel.
template <typename Body> void forLines(const Shape &shape, Body &&body) {
  parallelFor(shape[0] * shape[2] * shape[3],
              [&](int64_t line) { body(pixelAt(shape, line * shape[4]), line * shape[4] * shape[1]); });
}

/// A row of the taps of a window: the number of its first one, and the line that it lies on, by its first pixel.
struct TapLine {
  int64_t tap;
  Pixel pixel;
  int64_t offset;
};

/// Rows of the window of a result on a line of y that lie in x, in order.
std::vector<TapLine> linesOfWindow(const Shape &x, const Window &w, const Pixel &o) {
  std::vector<TapLine> lines;
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
      const Pixel at{o.n, tapPosition(w, 0, o.z, kz), tapPosition(w, 1, o.y, ky), 0};
      if (isInside(x, at))
        lines.push_back({(kz * w.kernel[1] + ky) * w.kernel[2], at, offsetOf(x, at)});
    }
  return lines;
}

/// Lines of y whose windows hold a pixel on a line of x, each with the row that does, in order.
std::vector<TapLine> linesOfWindows(const Shape &y, const Window &w, const Pixel &at) {
  std::vector<TapLine> lines;
  const Windows deep = windowsAt(w, 0, at.z, y[2]), vertical = windowsAt(w, 1, at.y, y[3]);
  for (int64_t oz = deep.first; oz <= deep.last; ++oz)
    for (int64_t oy = vertical.first; oy <= vertical.last; ++oy) {
      const int64_t kz = tapOf(w, 0, at.z, oz), ky = tapOf(w, 1, at.y, oy);
      const Pixel o{at.n, oz, oy, 0};
      if (kz >= 0 && ky >= 0)
        lines.push_back({(kz * w.kernel[1] + ky) * w.kernel[2], o, offsetOf(y, o)});
    }
  return lines;
}

/// Calls body(tap, the offset of its pixel) for all taps of the window at `ox` of a line, in order.
template <typename Body>
void forTaps(const Shape &x, const Window &w, const std::vector<TapLine> &lines, int64_t ox, Body &&body) {
  for (const TapLine &line : lines)
    for (int64_t kx = 0; kx < w.kernel[2]; ++kx)
      if (const int64_t at = tapPosition(w, 2, ox, kx); at >= 0 && at < x[4])
        body(line.tap + kx, line.offset + at * x[1]);
}

/// Calls body(tap, result, its offset in y) for all windows that hold the pixel at `x` of a line, in order.
template <typename Body>
void forWindows(const Shape &y, const Window &w, const std::vector<TapLine> &lines, int64_t x, Body &&body) {
  const Windows horizontal = windowsAt(w, 2, x, y[4]);
  for (const TapLine &line : lines)
    for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox)
      if (const int64_t kx = tapOf(w, 2, x, ox); kx >= 0)
        body(line.tap + kx, Pixel{line.pixel.n, line.pixel.z, line.pixel.y, ox}, line.offset + ox * y[1]);
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

/// Calls body(vectors, c) for the channels, from c on as many as so many vectors have: the last one again with some of
/// the one before where it would not be full. Fewer channels than a vector has are left to rest(c).
template <typename Body, typename Rest> void forVectors(int64_t channels, Body &&body, Rest &&rest) {
  int64_t c = 0;
  for (constexpr int64_t four = 4 * tile::lanes; c + four <= channels; c += four)
    body(std::integral_constant<int, 4>(), c);
  for (; c + tile::lanes <= channels; c += tile::lanes)
    body(std::integral_constant<int, 1>(), c);
  if (c < channels && channels >= tile::lanes)
    body(std::integral_constant<int, 1>(), channels - tile::lanes);
  else if (c < channels)
    rest(c);
}

/// Maxima and their taps of some channels of a window, which stay in registers.
template <int Vectors, typename T, typename Index, typename Taps>
void vectorMaxima(const T *px, T *py, Index *indices, Taps &&taps) {
  tile::Vector best[Vectors];
  Words where[Vectors] = {}, first = ~Words{};
  for (tile::Vector &of : best)
    of = -std::numeric_limits<float>::infinity() - tile::Vector{};
  taps([&](int64_t tap, int64_t source) {
    const Words position = static_cast<int32_t>(tap) - Words{};
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const tile::Vector value = loaded(px + source + v * tile::lanes);
      const Words wins = first | (value > best[v]) | (value != value);
      best[v] = wins ? value : best[v];
      where[v] = wins ? position : where[v];
    }
    first = Words{};
  });
  for (int v = 0; v < Vectors; ++v) {
    keep(best[v], py + v * tile::lanes);
    if (indices)
      keep(where[v], indices + v * tile::lanes);
  }
}

/// The same of one channel.
template <typename T, typename Index, typename Taps> void maximum(const T *px, T *py, Index *index, Taps &&taps) {
  float best = -std::numeric_limits<float>::infinity();
  int64_t where = 0;
  bool first = true;
  taps([&](int64_t tap, int64_t source) {
    const float value = widened(px[source]);
    if (first || value > best || value != value)
      best = value, where = tap;
    first = false;
  });
  store(py, best);
  if (index)
    *index = static_cast<Index>(where);
}

template <typename T, typename Index>
void maxForward(const T *px, T *py, Index *indices, const Shape &x, const Shape &y, const Window &w) {
  forLines(y, [&](const Pixel &line, int64_t begin) {
    const std::vector<TapLine> lines = linesOfWindow(x, w, line);
    for (int64_t ox = 0; ox < y[4]; ++ox) {
      const auto taps = [&](auto &&body) { forTaps(x, w, lines, ox, body); };
      T *to = py + begin + ox * y[1];
      Index *where = indices ? indices + begin + ox * y[1] : nullptr;
      forVectors(
          y[1],
          [&](auto vectors, int64_t c) {
            vectorMaxima<decltype(vectors)::value>(px + c, to + c, where ? where + c : where, taps);
          },
          [&](int64_t c) {
            for (; c < y[1]; ++c)
              maximum(px + c, to + c, where ? where + c : where, taps);
          });
    }
  });
}

/// The gradient of some channels of a pixel, which stays in registers.
template <int Vectors, typename T, typename Index, typename Windows>
void vectorGradient(const T *pdy, const Index *indices, T *pdx, Windows &&windows) {
  tile::Vector sums[Vectors] = {};
  windows([&](int64_t tap, const Pixel &, int64_t from) {
    const Words position = static_cast<int32_t>(tap) - Words{};
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Words won = loaded(indices + from + v * tile::lanes) == position;
      sums[v] += won ? loaded(pdy + from + v * tile::lanes) : tile::Vector{};
    }
  });
  for (int v = 0; v < Vectors; ++v)
    keep(sums[v], pdx + v * tile::lanes);
}

template <typename T, typename Index>
void maxBackward(const T *pdy, const Index *indices, T *pdx, const Shape &x, const Shape &y, const Window &w) {
  forLines(x, [&](const Pixel &line, int64_t begin) {
    const std::vector<TapLine> lines = linesOfWindows(y, w, line);
    for (int64_t at = 0; at < x[4]; ++at) {
      const auto windows = [&](auto &&body) { forWindows(y, w, lines, at, body); };
      T *to = pdx + begin + at * x[1];
      forVectors(
          x[1],
          [&](auto vectors, int64_t c) {
            vectorGradient<decltype(vectors)::value>(pdy + c, indices + c, to + c, windows);
          },
          [&](int64_t c) {
            for (; c < x[1]; ++c) {
              float sum = 0;
              windows([&](int64_t tap, const Pixel &, int64_t from) {
                sum += indices[from + c] == static_cast<Index>(tap) ? widened(pdy[from + c]) : 0.0f;
              });
              store(to + c, sum);
            }
          });
    }
  });
}

/// One average pixel, a tile of channels: each row of the window is summed in float, rows in double.
template <typename T>
void averagePixel(const T *px, T *to, const Shape &x, const Window &w, const Pixel &o, int64_t c, float weight) {
  const int64_t width = std::min(averageTile, x[1] - c);
  double total[averageTile] = {};
  for (int64_t line = 0; line < w.kernel[0] * w.kernel[1]; ++line) {
    Pixel at = tapPixel(w, o, line / w.kernel[1], line % w.kernel[1], 0);
    if (at.z < 0 || at.z >= x[2] || at.y < 0 || at.y >= x[3])
      continue;
    float sum[averageTile] = {};
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
      const int64_t tiles = (x[1] + averageTile - 1) / averageTile;
      parallelFor(y[0] * y[2] * y[3] * tiles, [&](int64_t task) {
        const int64_t c = task % tiles * averageTile, line = task / tiles;
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
      forLines(x, [&](const Pixel &line, int64_t begin) {
        const std::vector<TapLine> lines = linesOfWindows(y, window, line);
        for (int64_t at = 0; at < x[4]; ++at)
          sumChannels(pdx + begin + at * x[1], x[1], [&](int64_t c, int64_t width, float *__restrict sums) {
            forWindows(y, window, lines, at, [&](int64_t, const Pixel &o, int64_t offset) {
              const T *__restrict from = pdy + offset + c;
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
