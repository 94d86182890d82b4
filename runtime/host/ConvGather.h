// SPDX-License-Identifier: Apache-2.0
// Which pixels of the source a convolution adds up for each pixel of its target. Forward, y is the target and x the
// source; the data gradient has them exchanged: with strides its target pixels fall into phases, each of which sees
// some of the window's taps, and no product with a zero between two strides is ever formed.
#pragma once

#include "runtime/kernels/DirectConv.h"

#include <vector>

namespace sluice {

/// Target positions first + j * step, j < count, along one axis; tap t of theirs lies at source position
/// taps[t].base + j * advance, which may be outside.
struct ConvPhase {
  struct Tap {
    int64_t k, base;
  };
  int64_t first = 0, step = 1, count = 0, advance = 1;
  std::vector<Tap> taps;
};

std::vector<ConvPhase> convPhases(const ConvGeometry &g, int axis);

/// One phase of each axis, with the part of the depth (tap of both axes, then channel) that belongs to it.
struct ConvGather {
  ConvPhase vertical, horizontal;
  int64_t batch, sourceHeight, sourceWidth, sourceChannels, targetHeight, targetWidth, targetChannels;
  int64_t channels; ///< of the source, in one group

  int64_t taps() const { return static_cast<int64_t>(vertical.taps.size() * horizontal.taps.size()); }
  int64_t depth() const { return taps() * channels; }
  int64_t pixels() const { return batch * vertical.count * horizontal.count; }
  bool everyPixel() const { return vertical.step == 1 && horizontal.step == 1; }
  /// Rows of depth are pixels of the source as they lie.
  bool isPlain() const;

  /// The taps of one line lie side by side in the source.
  bool joinsTaps() const;

  struct Pixel {
    int64_t n, y, x; ///< counted within the phase
  };
  Pixel pixel(int64_t index) const {
    const int64_t line = index / horizontal.count;
    return {line / vertical.count, line % vertical.count, index % horizontal.count};
  }
  int64_t targetOffset(const Pixel &p) const {
    return ((p.n * targetHeight + vertical.first + p.y * vertical.step) * targetWidth + horizontal.first +
            p.x * horizontal.step) *
           targetChannels;
  }
  /// Offset of the source pixel under a tap, -1 in the padding.
  int64_t sourceOffset(const Pixel &p, int64_t tap) const {
    const auto across = static_cast<int64_t>(horizontal.taps.size());
    const int64_t sy = vertical.taps[static_cast<size_t>(tap / across)].base + p.y * vertical.advance;
    const int64_t sx = horizontal.taps[static_cast<size_t>(tap % across)].base + p.x * horizontal.advance;
    if (sy < 0 || sy >= sourceHeight || sx < 0 || sx >= sourceWidth)
      return -1;
    return ((p.n * sourceHeight + sy) * sourceWidth + sx) * sourceChannels;
  }
  /// Copies depths [begin, end) of `rows` pixels from `first` on to rows of `rowStep` floats; `source` points at the
  /// group's first channel.
  void copy(const float *source, int64_t first, int64_t rows, int64_t begin, int64_t end, float *to,
            int64_t rowStep) const;
};

/// All pairs of phases that have pixels. Of the weight gradient: those of the forward pass.
/// Channels are taken as `groups` groups, of one or several of the geometry's own.
std::vector<ConvGather> convGathers(const ConvGeometry &g, int64_t groups);

} // namespace sluice
