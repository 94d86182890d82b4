// SPDX-License-Identifier: Apache-2.0
// When a value cannot be rebuilt well enough: channels of a BatchNorm that are saved, and differences that have
// lost too many digits to stand for the addend that they give back. Both runtimes decide by these.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#if defined(__CUDACC__)
#define SLUICE_RULE __host__ __device__
#else
#define SLUICE_RULE
#endif

namespace sluice {

/// (x - mean) * rstd has unit variance and comes back with an error of 1 + |bias / scale| roundings, of which there are
/// at most `roundings`, as long as slope * scale is not among the format's subnormal numbers: the slope is 1e-3 at
/// least.
struct InversionLimits {
  double roundings, smallestScale;

  SLUICE_RULE explicit InversionLimits(bool half)
      : roundings(half ? 1e-2 * (1 << 11) : 1e-5 * (1 << 24)), smallestScale(half ? 3e-3 : 1e-35) {}
};

SLUICE_RULE inline bool isGuarded(float scale, float bias, const InversionLimits &limits) {
  const double size = fabs(static_cast<double>(scale)), error = 1 + fabs(static_cast<double>(bias)) / size;
  return !(error <= limits.roundings && size >= limits.smallestScale); // so is NaN
}

/// Of the largest magnitudes of x and of y, from which it was rebuilt by subtraction. Both are given without NaN.
SLUICE_RULE inline bool cancelled(float x, float y) { return x < y / 1024 && y <= 3.402823466e+38f; }

inline std::string tooManyGuarded(const char *node, int64_t wanted, int64_t channels, int64_t slots) {
  return std::string("node '") + node + "': " + std::to_string(wanted) + " of " + std::to_string(channels) +
         " channels have a scale too small to be inverted, and the plan has room for " + std::to_string(slots) +
         "; compile without --allow-lossy=invert";
}

inline std::string digitsLost(const char *node, float x, float y) {
  char text[160];
  std::snprintf(text, sizeof text,
                "': what is rebuilt from the sum is at most %.3g, the sum %.3g: fewer than 14 bits are left of it", x,
                y);
  return std::string("node '") + node + text + "; compile without --allow-lossy=invert";
}

} // namespace sluice
