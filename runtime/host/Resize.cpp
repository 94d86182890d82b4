// SPDX-License-Identifier: Apache-2.0
// Resize along height and width. Per axis a table lists the taps of each output position, and its transpose the outputs
// that read each input position: forward and backward are then the same gather with the two tables exchanged.
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/ResizeTaps.h"

#include <algorithm>
#include <string>
#include <vector>

namespace sluice {

namespace {

struct Tap {
  int64_t position;
  float weight;
};
using Taps = std::vector<std::vector<Tap>>; ///< per position of the side that is written

Taps forwardTaps(const ResizeAxis &axis) {
  Taps taps(static_cast<size_t>(axis.out));
  for (int64_t o = 0; o < axis.out; ++o) {
    const ResizeTap tap = resizeTap(axis, o);
    taps[static_cast<size_t>(o)] = {{tap.low, 1 - tap.weight}};
    if (tap.weight > 0)
      taps[static_cast<size_t>(o)].push_back({tap.low + 1, tap.weight});
  }
  return taps;
}

Taps transposed(const Taps &taps, int64_t in) {
  Taps result(static_cast<size_t>(in));
  for (size_t o = 0; o < taps.size(); ++o)
    for (const Tap &tap : taps[o])
      result[static_cast<size_t>(tap.position)].push_back({static_cast<int64_t>(o), tap.weight});
  return result;
}

} // namespace

struct Resize::Impl {
  Shape x, y;
  Taps rows, columns, rowsBack, columnsBack;

  template <typename T>
  static void gather(const T *from, T *to, const Shape &source, const Shape &target, const Taps &rows,
                     const Taps &columns) {
    constexpr int64_t tile = 512; // channels whose sums stay in the first-level cache
    const int64_t channels = source[1];
    parallelFor(target[0] * target[2], [&](int64_t line) {
      const int64_t n = line / target[2], row = line % target[2];
      float sums[tile];
      for (int64_t column = 0; column < target[3]; ++column)
        for (int64_t first = 0; first < channels; first += tile) {
          const int64_t width = std::min(tile, channels - first);
          std::fill_n(sums, width, 0.0f);
          for (const Tap &vertical : rows[static_cast<size_t>(row)])
            for (const Tap &horizontal : columns[static_cast<size_t>(column)]) {
              const float weight = vertical.weight * horizontal.weight;
              const T *__restrict tap =
                  from + ((n * source[2] + vertical.position) * source[3] + horizontal.position) * channels + first;
              for (int64_t c = 0; c < width; ++c)
                sums[c] += weight * widened(tap[c]);
            }
          T *pixel = to + (line * target[3] + column) * channels + first;
          for (int64_t c = 0; c < width; ++c)
            store(pixel + c, sums[c]);
        }
    });
  }
};

Resize::Resize(Node node, Shape x, Shape y, float scaleH, float scaleW, ResizeMode mode, ResizeCoordinates coordinates,
               NearestRounding rounding)
    : Kernel(node) {
  auto plan = std::make_shared<Impl>();
  plan->x = x, plan->y = y;
  plan->rows = forwardTaps(resizeAxis(node, x, y, 2, scaleH, mode, coordinates, rounding));
  plan->columns = forwardTaps(resizeAxis(node, x, y, 3, scaleW, mode, coordinates, rounding));
  plan->rowsBack = transposed(plan->rows, x[2]);
  plan->columnsBack = transposed(plan->columns, x[3]);
  impl = plan;
}

void Resize::forward(Stream &stream, const Tensor &x, const Tensor &y) const {
  forStored(node, x.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(x);
    T *py = stream.data<T>(y);
    stream.launch(node, "resize",
                  [plan = impl.get(), px, py] { Impl::gather(px, py, plan->x, plan->y, plan->rows, plan->columns); });
  });
}

void Resize::backward(Stream &stream, const Tensor &dy, const Tensor &dx) const {
  forStored(node, dy.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pdy = stream.data<T>(dy);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "resize_backward", [plan = impl.get(), pdy, pdx] {
      Impl::gather(pdy, pdx, plan->y, plan->x, plan->rowsBack, plan->columnsBack);
    });
  });
}

} // namespace sluice
