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

/// Of one axis of a geometry over volumes: those that have taps. What no phase has is 0.
std::vector<ConvPhase> convPhases(const ConvGeometry &g, int axis);

/// One phase of each axis of volumes, with the part of the depth (tap of all axes, then channel) that belongs to it.
struct ConvGather {
  ConvPhase deep, vertical, horizontal;
  Shape source, target; ///< volumes
  int64_t channels;     ///< of the source, in one group

  int64_t taps() const {
    return static_cast<int64_t>(deep.taps.size() * vertical.taps.size() * horizontal.taps.size());
  }
  int64_t depth() const { return taps() * channels; }
  int64_t lines() const { return source[0] * deep.count * vertical.count; }
  int64_t pixels() const { return lines() * horizontal.count; }
  bool everyPixel() const { return deep.step == 1 && vertical.step == 1 && horizontal.step == 1; }
  /// The window position of a tap, counted row by row, in weights of this shape.
  int64_t position(int64_t tap, const Shape &w) const {
    const auto [z, y, x] = tapsAt(tap);
    return (z.k * w[3] + y.k) * w[4] + x.k;
  }
  /// Rows of depth are pixels of the source as they lie.
  bool isPlain() const;

  /// The taps of one line lie side by side in the source.
  bool joinsTaps() const;

  /// Counted within the phases.
  Pixel pixel(int64_t index) const {
    const int64_t line = index / horizontal.count, slice = line / vertical.count;
    return {slice / deep.count, slice % deep.count, line % vertical.count, index % horizontal.count};
  }
  int64_t targetOffset(const Pixel &p) const {
    return offsetOf(target, {p.n, deep.first + p.z * deep.step, vertical.first + p.y * vertical.step,
                             horizontal.first + p.x * horizontal.step});
  }
  /// The source pixel under a tap, which may lie in the padding.
  Pixel sourcePixel(const Pixel &p, int64_t tap) const {
    const auto [z, y, x] = tapsAt(tap);
    return {p.n, z.base + p.z * deep.advance, y.base + p.y * vertical.advance, x.base + p.x * horizontal.advance};
  }
  /// Its offset, -1 in the padding.
  int64_t sourceOffset(const Pixel &p, int64_t tap) const {
    const Pixel at = sourcePixel(p, tap);
    return isInside(source, at) ? offsetOf(source, at) : -1;
  }
  /// Copies depths [begin, end) of `rows` pixels from `first` on to rows of `rowStep` floats; `from` points at the
  /// group's first channel.
  void copy(const float *from, int64_t first, int64_t rows, int64_t begin, int64_t end, float *to,
            int64_t rowStep) const;

private:
  /// A tap's parts along each axis.
  struct Taps {
    ConvPhase::Tap z, y, x;
  };
  Taps tapsAt(int64_t tap) const {
    const size_t across = horizontal.taps.size(), high = vertical.taps.size(), line = static_cast<size_t>(tap) / across;
    return {deep.taps[line / high], vertical.taps[line % high], horizontal.taps[static_cast<size_t>(tap) % across]};
  }
};

/// All triples of phases, of a geometry over volumes. Of the weight gradient: those of the forward
/// pass. Channels are taken as `groups` groups, of one or several of the geometry's own.
std::vector<ConvGather> convGathers(const ConvGeometry &g, int64_t groups);

} // namespace sluice
