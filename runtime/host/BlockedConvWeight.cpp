// SPDX-License-Identifier: Apache-2.0
// Weight gradient, see BlockedConv.h: for a block of columns (tap, input channel) all pixels are gathered, some at a
// time, and multiplied with the output's gradient, which lies as it is wanted. Scratch: [the gradient in the order
// (output, tap, input), where that is not dw's own | one block for each thread].
#include "runtime/host/BlockedConv.h"
#include "runtime/host/BlockedConvBlocks.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Tile.h"

#include <algorithm>
#include <cassert>

namespace sluice {

using namespace blocked;

namespace {

/// dbias = sum of dy over pixels, in double, a few channels a task.
void sumPixels(const float *dy, int64_t pixels, int64_t channels, float *sums) {
  constexpr int64_t together = 16;
  parallelFor((channels + together - 1) / together, [&](int64_t part) {
    const int64_t first = part * together, count = std::min(together, channels - first);
    double total[together] = {};
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t i = 0; i < count; ++i)
        total[i] += static_cast<double>(dy[p * channels + first + i]);
    for (int64_t i = 0; i < count; ++i)
      sums[first + i] = static_cast<float>(total[i]);
  });
}

/// [outputs][taps][inputs of merged groups] becomes [outputs][inputs of one's own group][taps], for outputs from
/// `first` on.
void reorderTaps(const ConvGeometry &g, const float *from, int64_t merged, int64_t first, int64_t count, float *to) {
  const int64_t taps = g.w[2] * g.w[3] * g.w[4], inputs = g.w[1], outsEach = g.w[0] / g.groups;
  parallelFor(count, [&](int64_t o) {
    const float *source = from + o * taps * inputs * merged + (first + o) / outsEach % merged * inputs;
    float *target = to + (first + o) * taps * inputs;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t i = 0; i < inputs; ++i)
        target[i * taps + tap] = source[tap * inputs * merged + i];
  });
}

} // namespace

void BlockedConv::backwardWeight(const float *dy, const float *x, float *dw, float *dbias, char *scratch) const {
  assert(tile::form() == tile::compiled);
  auto *ordered = reinterpret_cast<float *>(scratch);
  float *work = ordered + rounded(packed());
  if (dbias)
    sumPixels(dy, g.y.elements() / g.y[1], g.y[1], dbias);
  if (depthwise())
    return depthwiseWeights(dy, x, dw, ordered);
  eachPart([&](const Part &part) {
    const int64_t channel = part.group * results + part.first;
    weightPart(part, dy, x, packed() ? ordered : dw + channel * gathers[0].depth(), work);
    if (packed())
      reorderTaps(g, ordered, merged, channel, part.count, dw);
  });
}

/// [channels of the part][depth]. Few columns: the rows are cut too, so that all threads have something to do; no bit
/// depends on it.
void BlockedConv::weightPart(const Part &part, const float *dy, const float *x, float *result, float *work) const {
  const ConvGather &gather = gathers[0];
  const int64_t depth = gather.depth(), pixels = gather.pixels(), columnsEach = columnsAtOnce(depth);
  const int64_t width = tile::panelColumns(depth), columnTasks = (depth + columnsEach - 1) / columnsEach;
  const int64_t wanted = std::max<int64_t>(1, 2 * threads() / columnTasks);
  const int64_t rowsEach =
      std::max<int64_t>(tile::rows, (part.count / wanted + tile::rows - 1) / tile::rows * tile::rows);
  const int64_t rowTasks = (part.count + rowsEach - 1) / rowsEach, all = rowTasks * columnTasks;
  auto make = [&](int64_t row, int64_t column, float *gatheredRows) {
    const int64_t height = std::min(rowsEach, part.count - row), columns = std::min(columnsEach, depth - column);
    const int64_t stride = (columns + width - 1) / width * width;
    if (stride > columns)
      std::fill_n(gatheredRows, rows * stride, 0.0f);
    for (int64_t p = 0; p < pixels; p += rows) {
      const int64_t count = std::min(rows, pixels - p);
      gather.copy(x + part.group * gather.channels, p, count, column, column + columns, gatheredRows, stride);
      const float *gradient = dy + p * g.y[1] + part.group * results + part.first + row;
      tile::Factors f{gradient, 1, g.y[1], gatheredRows, stride, count};
      for (int64_t first = 0; first < columns; first += width, f.b += width)
        tile::multiply(f, height, result + row * depth + column + first, depth, std::min(width, columns - first),
                       width > tile::lanes, p > 0);
    }
  };
  const int64_t tasks = std::min<int64_t>(threads(), all);
  parallelFor(tasks, [&](int64_t task) {
    for (int64_t i = task; i < all; i += tasks)
      make(i / columnTasks * rowsEach, i % columnTasks * columnsEach, work + task * rounded(gathered()));
  });
}

/// Each of a fixed number of chunks of pixels has partial sums [tap][channel] of its own, added in order.
void BlockedConv::depthwiseWeights(const float *dy, const float *x, float *dw, float *partial) const {
  const ConvGather &gather = gathers[0];
  const int64_t channels = g.x[1], taps = gather.taps(), size = taps * channels, pixels = gather.pixels();
  parallelFor(depthwiseChunks, [&](int64_t chunk) {
    float *sums = partial + chunk * size;
    std::fill_n(sums, size, 0.0f);
    for (int64_t i = pixels * chunk / depthwiseChunks; i < pixels * (chunk + 1) / depthwiseChunks; ++i) {
      const Pixel p = gather.pixel(i);
      const float *gradient = dy + i * channels;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t offset = gather.sourceOffset(p, tap);
        if (offset < 0)
          continue;
        const float *from = x + offset;
        float *to = sums + tap * channels;
        for (int64_t c = 0; c < channels; ++c)
          to[c] += gradient[c] * from[c];
      }
    }
  });
  parallelFor(taps, [&](int64_t tap) {
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (int64_t chunk = 0; chunk < depthwiseChunks; ++chunk)
        sum += partial[chunk * size + tap * channels + c];
      dw[c * taps + tap] = sum;
    }
  });
}

} // namespace sluice
