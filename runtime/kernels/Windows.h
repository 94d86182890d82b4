// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of sliding windows, for pooling and convolution on both targets. `axis` 0 is height, 1 width; window
// o of an axis holds the taps o * stride - pad + k * dilation for k in [0, kernel).
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Random.h"

#include <algorithm>

namespace sluice {

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
  const int64_t first = shifted <= reach ? 0 : (shifted - reach + w.strides[axis] - 1) / w.strides[axis];
  return {first, std::min(windows - 1, shifted / w.strides[axis])};
}

/// Which tap of window `o`, one of windowsAt(position), lies at `position`; -1: none.
SLUICE_KERNEL int64_t tapOf(const Window &w, int axis, int64_t position, int64_t o) {
  const int64_t distance = position + w.pads[axis] - o * w.strides[axis];
  return distance % w.dilations[axis] ? -1 : distance / w.dilations[axis];
}

/// Taps of window `o` along one axis that lie in [low, high).
SLUICE_KERNEL int64_t tapsInside(const Window &w, int axis, int64_t o, int64_t low, int64_t high) {
  const int64_t start = o * w.strides[axis] - w.pads[axis], step = w.dilations[axis];
  const int64_t first = start >= low ? 0 : (low - start + step - 1) / step;
  const int64_t last = start >= high ? -1 : std::min(w.kernel[axis] - 1, (high - 1 - start) / step);
  return std::max<int64_t>(0, last - first + 1);
}

/// 1 / number of positions that window (oy, ox) averages over.
SLUICE_KERNEL float averageWeight(const Shape &x, const Window &w, bool countIncludePad, int64_t oy, int64_t ox) {
  int64_t count = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t low = countIncludePad ? -w.pads[axis] : 0,
                  high = x[2 + axis] + (countIncludePad ? w.pads[2 + axis] : 0);
    count *= tapsInside(w, axis, axis ? ox : oy, low, high);
  }
  return 1.0f / static_cast<float>(std::max<int64_t>(1, count));
}

/// Throws std::invalid_argument naming `node` when input, output and window do not make a pooling.
void checkPool(const char *node, const Shape &x, const Shape &y, const Window &window);

/// Throws std::invalid_argument naming `node` when the shapes do not make a convolution.
void checkConvolution(const char *node, const Shape &x, const Shape &w, const Shape &y, const Window &window,
                      int64_t groups);

} // namespace sluice
