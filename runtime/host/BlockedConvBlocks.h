// SPDX-License-Identifier: Apache-2.0
// How our own convolutions are cut into blocks that stay in the caches of a core.
#pragma once

#include "runtime/host/ConvGather.h"
#include "runtime/host/TileForm.h"

#include <algorithm>

namespace sluice::blocked {

constexpr int64_t mostRows = 48, depthAtOnce = 256;   ///< gathered pixels of a product: 48 KiB
constexpr int64_t mostPixels = 128, mostColumns = 96; ///< of a weight gradient: 48 KiB
constexpr int64_t channelsAtOnce = 64, depthwiseChunks = 16;

/// Parts of scratch begin at cache lines.
constexpr int64_t rounded(int64_t floats) { return (floats + 15) / 16 * 16; }

/// Columns of a weight gradient that one task gathers, whole panels.
inline int64_t columnsAtOnce(int64_t depth) {
  const int64_t width = tile::panelColumns(depth);
  return std::min(mostColumns / width * width, tile::panels(depth) * width);
}

/// Rows of `floats` each that a thread gathers at once: fewer for a small source, beside which blocks would count. Not
/// by threads, on which no bit may depend.
inline int64_t rowsWithin(int64_t sourceElements, int64_t floats, int64_t grain, int64_t most) {
  const int64_t room = std::max<int64_t>(2048, sourceElements / 8) / std::max<int64_t>(1, floats);
  return std::clamp(room / grain * grain, grain, most);
}

/// Pixels of a gather that are written with one distance from each to the next: any neighbours, or, with strides, of
/// one line.
struct Rows {
  int64_t first, count;
};
inline int64_t blocksOfLine(const ConvGather &gather, int64_t rows) {
  return (gather.horizontal.count + rows - 1) / rows;
}
inline int64_t blocks(const ConvGather &gather, int64_t rows) {
  if (gather.everyPixel())
    return (gather.pixels() + rows - 1) / rows;
  return gather.lines() * blocksOfLine(gather, rows);
}
inline Rows rowsOf(const ConvGather &gather, int64_t rows, int64_t block) {
  if (gather.everyPixel())
    return {block * rows, std::min(rows, gather.pixels() - block * rows)};
  const int64_t line = block / blocksOfLine(gather, rows), begin = block % blocksOfLine(gather, rows) * rows;
  return {line * gather.horizontal.count + begin, std::min(rows, gather.horizontal.count - begin)};
}

} // namespace sluice::blocked
