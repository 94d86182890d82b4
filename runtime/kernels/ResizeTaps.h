// SPDX-License-Identifier: Apache-2.0
// Which input positions an output position of a resized axis reads, and with which weights (ONNX Resize), for both
// targets. Positions grow with the output, so that the outputs which read an input position are neighbours.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Random.h"

#include <algorithm>
#include <cmath>

namespace sluice {

/// One axis. scale is output extent over input extent, or as the model gives it.
struct ResizeAxis {
  int64_t in, out;
  double scale;
  ResizeMode mode;
  ResizeCoordinates coordinates;
  NearestRounding rounding;
};

/// An output reads `low` with 1 - weight and, where weight > 0, low + 1 with weight.
struct ResizeTap {
  int64_t low;
  float weight;
};

/// position / scale. A scale that stands for the ratio of the extents is that ratio, not the float next to it: 2 of 4
/// outputs over 6 inputs is input 3, not the one before.
SLUICE_KERNEL double resizeDivided(const ResizeAxis &axis, double position) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  return static_cast<float>(axis.scale) == static_cast<float>(out / in) ? position * in / out : position / axis.scale;
}

SLUICE_KERNEL double resizeSource(const ResizeAxis &axis, int64_t o) {
  const auto position = static_cast<double>(o);
  switch (axis.coordinates) {
  case ResizeCoordinates::HalfPixel:
    return resizeDivided(axis, position + 0.5) - 0.5;
  case ResizeCoordinates::PytorchHalfPixel:
    return axis.out > 1 ? resizeDivided(axis, position + 0.5) - 0.5 : 0;
  case ResizeCoordinates::AlignCorners:
    return axis.out > 1 ? position * static_cast<double>(axis.in - 1) / static_cast<double>(axis.out - 1) : 0;
  case ResizeCoordinates::Asymmetric:
    return resizeDivided(axis, position);
  }
  return 0;
}

SLUICE_KERNEL double resizeRounded(double x, NearestRounding rounding) {
  switch (rounding) {
  case NearestRounding::RoundPreferFloor:
    return std::ceil(x - 0.5);
  case NearestRounding::RoundPreferCeil:
    return std::floor(x + 0.5);
  case NearestRounding::Floor:
    return std::floor(x);
  case NearestRounding::Ceil:
    return std::ceil(x);
  }
  return x;
}

SLUICE_KERNEL ResizeTap resizeTap(const ResizeAxis &axis, int64_t o) {
  const auto last = static_cast<double>(axis.in - 1);
  const double x = resizeSource(axis, o);
  if (axis.mode == ResizeMode::Nearest)
    return {static_cast<int64_t>(std::min(std::max(resizeRounded(x, axis.rounding), 0.0), last)), 0.0f};
  const double clamped = std::min(std::max(x, 0.0), last), low = std::floor(clamped);
  return {static_cast<int64_t>(low), static_cast<float>(clamped - low)};
}

/// The first output whose lower tap is at `position` or above; `out` when there is none.
SLUICE_KERNEL int64_t firstOutputAt(const ResizeAxis &axis, int64_t position) {
  int64_t low = 0, high = axis.out;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (resizeTap(axis, middle).low < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// With how much weight an output reads `position`; 0: not at all.
SLUICE_KERNEL float resizeWeight(const ResizeTap &tap, int64_t position) {
  return tap.low == position ? 1 - tap.weight : tap.low + 1 == position ? tap.weight : 0.0f;
}

/// The axis `dimension` (2 or 3) of a resize from x to y; `scale` 0: as the extents say. Throws std::invalid_argument
/// naming `node` when the shapes do not fit.
ResizeAxis resizeAxis(const char *node, const Shape &x, const Shape &y, int dimension, float scale, ResizeMode mode,
                      ResizeCoordinates coordinates, NearestRounding rounding);

} // namespace sluice
