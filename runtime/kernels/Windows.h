// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of sliding windows, for pooling and convolution on both targets, all over volumes: an image is one
// of depth 1. `axis` counts spatial dimensions; window o of an axis holds the taps o * stride - pad + k * dilation for
// k in [0, kernel).
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Random.h"

#include <algorithm>

namespace sluice {

/// An image [N,C,H,W] as a volume [N,C,1,H,W]; a volume as it is. Weights alike.
constexpr Shape asVolume(const Shape &shape) {
  return shape.rank == 4 ? Shape{shape[0], shape[1], 1, shape[2], shape[3]} : shape;
}
/// The window of tensors of this rank as one over volumes.
constexpr Window asVolume(const Window &w, int rank) {
  if (rank != 4)
    return w;
  return {{1, w.kernel[0], w.kernel[1]},
          {1, w.strides[0], w.strides[1]},
          {0, w.pads[0], w.pads[1], 0, w.pads[2], w.pads[3]},
          {1, w.dilations[0], w.dilations[1]}};
}

/// Pixels of a volume, over the batch.
SLUICE_KERNEL int64_t pixelsOf(const Shape &shape) { return shape[0] * shape[2] * shape[3] * shape[4]; }

/// a / b for a >= 0 and b > 0, of which nearly all have 32 bits: GPUs have no instruction for division, and a routine
/// of 64 bits takes several times as long.
SLUICE_KERNEL int64_t quotient(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b)) : a / b;
}

/// A pixel of a volume: sample, slice, row, column.
struct Pixel {
  int64_t n, z, y, x;
};
SLUICE_KERNEL Pixel pixelAt(const Shape &shape, int64_t index) {
  const int64_t line = quotient(index, shape[4]), slice = quotient(line, shape[3]), n = quotient(slice, shape[2]);
  return {n, slice - n * shape[2], line - slice * shape[3], index - line * shape[4]};
}
/// Where its channels begin, channels last.
SLUICE_KERNEL int64_t offsetOf(const Shape &shape, const Pixel &p) {
  return (((p.n * shape[2] + p.z) * shape[3] + p.y) * shape[4] + p.x) * shape[1];
}
SLUICE_KERNEL bool isInside(const Shape &shape, const Pixel &p) {
  return p.z >= 0 && p.z < shape[2] && p.y >= 0 && p.y < shape[3] && p.x >= 0 && p.x < shape[4];
}

/// Input position of tap `k` of window `o` along one axis; may lie in the padding.
SLUICE_KERNEL int64_t tapPosition(const Window &w, int axis, int64_t o, int64_t k) {
  return o * w.strides[axis] - w.pads[axis] + k * w.dilations[axis];
}

/// The windows [first, last] along one axis that may hold `position`; window o holds it when tapOf(o) is not -1.
struct Windows {
  int64_t first, last;
};
SLUICE_KERNEL Windows windowsAt(const Window &w, int axis, int64_t position, int64_t windows) {
  const int64_t shifted = position + w.pads[axis], reach = w.dilations[axis] * (w.kernel[axis] - 1);
  const int64_t first = shifted <= reach ? 0 : quotient(shifted - reach + w.strides[axis] - 1, w.strides[axis]);
  return {first, std::min(windows - 1, quotient(shifted, w.strides[axis]))};
}

/// Which tap of window `o`, one of windowsAt(position), lies at `position`; -1: none.
SLUICE_KERNEL int64_t tapOf(const Window &w, int axis, int64_t position, int64_t o) {
  const int64_t distance = position + w.pads[axis] - o * w.strides[axis];
  const int64_t tap = w.dilations[axis] == 1 ? distance : quotient(distance, w.dilations[axis]);
  return tap * w.dilations[axis] == distance ? tap : -1;
}

/// Taps of window `o` along one axis that lie in [low, high).
SLUICE_KERNEL int64_t tapsInside(const Window &w, int axis, int64_t o, int64_t low, int64_t high) {
  const int64_t start = o * w.strides[axis] - w.pads[axis], step = w.dilations[axis];
  const int64_t first = start >= low ? 0 : (low - start + step - 1) / step;
  const int64_t last = start >= high ? -1 : std::min(w.kernel[axis] - 1, (high - 1 - start) / step);
  return std::max<int64_t>(0, last - first + 1);
}

/// The pixel of x under tap (kz, ky, kx) of the window whose result is pixel `o`; may lie in the padding.
SLUICE_KERNEL Pixel tapPixel(const Window &w, const Pixel &o, int64_t kz, int64_t ky, int64_t kx) {
  return {o.n, tapPosition(w, 0, o.z, kz), tapPosition(w, 1, o.y, ky), tapPosition(w, 2, o.x, kx)};
}

/// 1 / number of positions that the window whose result is pixel `o` averages over.
SLUICE_KERNEL float averageWeight(const Shape &x, const Window &w, bool countIncludePad, const Pixel &o) {
  const int64_t position[3] = {o.z, o.y, o.x};
  int64_t count = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t low = countIncludePad ? -w.pads[axis] : 0,
                  high = x[2 + axis] + (countIncludePad ? w.pads[3 + axis] : 0);
    count *= tapsInside(w, axis, position[axis], low, high);
  }
  return 1.0f / static_cast<float>(std::max<int64_t>(1, count));
}

/// Throws std::invalid_argument naming `node` when input, output and window, of images or volumes, do not make a
/// pooling.
void checkPool(const char *node, const Shape &x, const Shape &y, const Window &window);

/// Throws std::invalid_argument naming `node` when the shapes, of images or volumes, do not make a convolution.
void checkConvolution(const char *node, const Shape &x, const Shape &w, const Shape &y, const Window &window,
                      int64_t groups);

} // namespace sluice
