// SPDX-License-Identifier: Apache-2.0
// Convolutions by their definition, one element at a time and without a workspace: what the cuda runtime falls back on
// for geometries that no engine of cuDNN takes within its workspace. Plain C++, so that tests run it on the host.
#pragma once

#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Windows.h"

namespace sluice {

struct ConvGeometry {
  ConvPass pass;
  Shape x, w, y; ///< logical; x, y in NHWC
  Window window;
  int64_t groups;
  DataType type = DataType::F32; ///< of x, w and y; BF16: w is [O,H,W,I], else row-major OIHW. dw is F32 and row-major

  SLUICE_KERNEL int64_t weightAt(int64_t o, int64_t i, int64_t ky, int64_t kx) const {
    return type == DataType::BF16 ? ((o * w[2] + ky) * w[3] + kx) * w[1] + i : ((o * w[1] + i) * w[2] + ky) * w[3] + kx;
  }
};

/// Element (n, oy, ox, o) of y.
template <typename T>
SLUICE_KERNEL float convForwardAt(const ConvGeometry &g, const T *x, const T *w, int64_t n, int64_t oy, int64_t ox,
                                  int64_t o) {
  const int64_t ins = g.w[1], first = o / (g.w[0] / g.groups) * ins;
  float sum = 0;
  for (int64_t ky = 0; ky < g.w[2]; ++ky)
    for (int64_t kx = 0; kx < g.w[3]; ++kx) {
      const int64_t iy = tapPosition(g.window, 0, oy, ky), ix = tapPosition(g.window, 1, ox, kx);
      if (iy < 0 || iy >= g.x[2] || ix < 0 || ix >= g.x[3])
        continue;
      const T *from = x + ((n * g.x[2] + iy) * g.x[3] + ix) * g.x[1] + first;
      for (int64_t i = 0; i < ins; ++i)
        sum += widened(from[i]) * widened(w[g.weightAt(o, i, ky, kx)]);
    }
  return sum;
}

/// Element (n, iy, ix, c) of dx: the windows that hold the pixel, in order.
template <typename T>
SLUICE_KERNEL float convBackwardDataAt(const ConvGeometry &g, const T *dy, const T *w, int64_t n, int64_t iy,
                                       int64_t ix, int64_t c) {
  const int64_t ins = g.w[1], outs = g.w[0] / g.groups, first = c / ins * outs, i = c % ins;
  const Windows vertical = windowsAt(g.window, 0, iy, g.y[2]), horizontal = windowsAt(g.window, 1, ix, g.y[3]);
  float sum = 0;
  for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
    for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
      const int64_t ky = tapOf(g.window, 0, iy, oy), kx = tapOf(g.window, 1, ix, ox);
      if (ky < 0 || kx < 0)
        continue;
      const T *from = dy + ((n * g.y[2] + oy) * g.y[3] + ox) * g.y[1] + first;
      for (int64_t o = 0; o < outs; ++o)
        sum += widened(from[o]) * widened(w[g.weightAt(first + o, i, ky, kx)]);
    }
  return sum;
}

/// What pixel `pixel` of y (batch, row and column as one index) adds to element (o, i, ky, kx) of dw.
template <typename T>
SLUICE_KERNEL float convBackwardWeightTerm(const ConvGeometry &g, const T *dy, const T *x, int64_t pixel, int64_t o,
                                           int64_t i, int64_t ky, int64_t kx) {
  const int64_t n = pixel / g.y[3] / g.y[2], oy = pixel / g.y[3] % g.y[2], ox = pixel % g.y[3];
  const int64_t iy = tapPosition(g.window, 0, oy, ky), ix = tapPosition(g.window, 1, ox, kx);
  if (iy < 0 || iy >= g.x[2] || ix < 0 || ix >= g.x[3])
    return 0;
  const int64_t c = o / (g.w[0] / g.groups) * g.w[1] + i;
  return widened(dy[pixel * g.y[1] + o]) * widened(x[((n * g.x[2] + iy) * g.x[3] + ix) * g.x[1] + c]);
}

} // namespace sluice
