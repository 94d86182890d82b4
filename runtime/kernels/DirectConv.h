// SPDX-License-Identifier: Apache-2.0
// Convolutions by their definition, one element at a time and without a workspace: what the cuda runtime falls back on
// for geometries that no engine of cuDNN takes within its workspace. Plain C++, so that tests run it on the host.
#pragma once

#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"
#include "runtime/kernels/Windows.h"

namespace sluice {

struct ConvGeometry {
  ConvPass pass;
  Shape x, w, y; ///< logical, of images or volumes; x, y in NHWC
  Window window;
  int64_t groups;
  DataType type =
      DataType::F32; ///< of x, w and y; a half: w is [O,H,W,I], else row-major OIHW. dw is F32 and row-major

  /// The same convolution over volumes.
  ConvGeometry asVolume() const {
    return {
        pass, sluice::asVolume(x), sluice::asVolume(w), sluice::asVolume(y), sluice::asVolume(window, x.rank), groups,
        type};
  }
  /// Of volumes, as all below.
  SLUICE_KERNEL int64_t weightAt(int64_t o, int64_t i, int64_t kz, int64_t ky, int64_t kx) const {
    const int64_t tap = (kz * w[3] + ky) * w[4] + kx, taps = w[2] * w[3] * w[4];
    return isHalf(type) ? (o * taps + tap) * w[1] + i : (o * w[1] + i) * taps + tap;
  }
};

/// Element o of pixel `at` of y.
template <typename T>
SLUICE_KERNEL float convForwardAt(const ConvGeometry &g, const T *x, const T *w, const Pixel &at, int64_t o) {
  const int64_t ins = g.w[1], first = o / (g.w[0] / g.groups) * ins;
  float sum = 0;
  for (int64_t kz = 0; kz < g.w[2]; ++kz)
    for (int64_t ky = 0; ky < g.w[3]; ++ky)
      for (int64_t kx = 0; kx < g.w[4]; ++kx) {
        const Pixel source = tapPixel(g.window, at, kz, ky, kx);
        if (!isInside(g.x, source))
          continue;
        const T *from = x + offsetOf(g.x, source) + first;
        for (int64_t i = 0; i < ins; ++i)
          sum += widened(from[i]) * widened(w[g.weightAt(o, i, kz, ky, kx)]);
      }
  return sum;
}

/// Element c of pixel `at` of dx: the windows that hold the pixel, in order.
template <typename T>
SLUICE_KERNEL float convBackwardDataAt(const ConvGeometry &g, const T *dy, const T *w, const Pixel &at, int64_t c) {
  const int64_t ins = g.w[1], outs = g.w[0] / g.groups, first = c / ins * outs, i = c % ins;
  const Windows deep = windowsAt(g.window, 0, at.z, g.y[2]), vertical = windowsAt(g.window, 1, at.y, g.y[3]),
                horizontal = windowsAt(g.window, 2, at.x, g.y[4]);
  float sum = 0;
  for (int64_t oz = deep.first; oz <= deep.last; ++oz)
    for (int64_t oy = vertical.first; oy <= vertical.last; ++oy)
      for (int64_t ox = horizontal.first; ox <= horizontal.last; ++ox) {
        const int64_t kz = tapOf(g.window, 0, at.z, oz), ky = tapOf(g.window, 1, at.y, oy),
                      kx = tapOf(g.window, 2, at.x, ox);
        if (kz < 0 || ky < 0 || kx < 0)
          continue;
        const T *from = dy + offsetOf(g.y, {at.n, oz, oy, ox}) + first;
        for (int64_t o = 0; o < outs; ++o)
          sum += widened(from[o]) * widened(w[g.weightAt(first + o, i, kz, ky, kx)]);
      }
  return sum;
}

/// What a pixel of y, counted over the batch, adds to element `element` of dw, row-major.
template <typename T>
SLUICE_KERNEL float convBackwardWeightTerm(const ConvGeometry &g, const T *dy, const T *x, int64_t pixel,
                                           int64_t element) {
  const int64_t kx = element % g.w[4], line = element / g.w[4], ky = line % g.w[3], slice = line / g.w[3];
  const int64_t kz = slice % g.w[2], i = slice / g.w[2] % g.w[1], o = slice / g.w[2] / g.w[1];
  const Pixel source = tapPixel(g.window, pixelAt(g.y, pixel), kz, ky, kx);
  if (!isInside(g.x, source))
    return 0;
  const int64_t c = o / (g.w[0] / g.groups) * g.w[1] + i;
  return widened(dy[pixel * g.y[1] + o]) * widened(x[offsetOf(g.x, source) + c]);
}

} // namespace sluice
