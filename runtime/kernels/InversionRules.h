// SPDX-License-Identifier: Apache-2.0
// When a value cannot be rebuilt well enough: channels of a BatchNorm that are saved, and differences that have
// lost too many digits to stand for the addend that they give back. Both runtimes decide by these.
#pragma once

#include "runtime/Tensor.h"

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
/// least. `from` is the format that what x is rebuilt from was rounded to: F32, F16 or BF16. The error is at most 1e-5
/// in the first, 1e-2 in the second, 2e-2 in the third, which has 8 bits.
struct InversionLimits {
  double roundings, smallestScale;

  SLUICE_RULE explicit InversionLimits(DataType from)
      : roundings(from == DataType::F16    ? 1e-2 * (1 << 11)
                  : from == DataType::BF16 ? 2e-2 * (1 << 8)
                                           : 1e-5 * (1 << 24)),
        smallestScale(from == DataType::F16 ? 3e-3 : 1e-35) {}
};

SLUICE_RULE inline bool isGuarded(float scale, float bias, const InversionLimits &limits) {
  const double size = fabs(static_cast<double>(scale)), error = 1 + fabs(static_cast<double>(bias)) / size;
  return !(error <= limits.roundings && size >= limits.smallestScale); // so is NaN
}

/// Bits of a sum's format, and those of them that have to be left of an addend that is rebuilt from it.
SLUICE_RULE inline int significantBits(DataType sum) {
  return sum == DataType::F16 ? 11 : sum == DataType::BF16 ? 8 : 24;
}
SLUICE_RULE inline int bitsKept(DataType sum) { return significantBits(sum) < 24 ? 6 : 14; }

/// Of the largest magnitudes of x and of y, from which it was rebuilt by subtraction. Both are given without NaN.
SLUICE_RULE inline bool cancelled(float x, float y, DataType sum) {
  return x < y / static_cast<float>(1 << (significantBits(sum) - bitsKept(sum))) && y <= 3.402823466e+38f;
}

inline std::string tooManyGuarded(const char *node, int64_t wanted, int64_t channels, int64_t slots) {
  return std::string("node '") + node + "': " + std::to_string(wanted) + " of " + std::to_string(channels) +
         " channels have a scale too small to be inverted, and the plan has room for " + std::to_string(slots) +
         "; compile without --allow-lossy=invert";
}

inline std::string digitsLost(const char *node, float x, float y, DataType sum) {
  char text[160];
  std::snprintf(text, sizeof text,
                "': what is rebuilt from the sum is at most %.3g, the sum %.3g: fewer than %d bits are left of it", x,
                y, bitsKept(sum));
  return std::string("node '") + node + text + "; compile without --allow-lossy=invert";
}

} // namespace sluice
