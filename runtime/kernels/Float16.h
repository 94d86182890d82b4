// SPDX-License-Identifier: Apache-2.0
// IEEE's half precision, one value at a time.
#pragma once

#include "runtime/Math.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace sluice {

/// Rounds to the nearest half, ties to even; a NaN becomes quiet and keeps the upper part of its payload.
SLUICE_KERNEL uint16_t halfOfFloat(float x) {
  const uint32_t bits = bitsOfFloat(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) // 65520 and above
    return static_cast<uint16_t>(sign | 0x7c00);
  const auto exponent = static_cast<int>(magnitude >> 23);
  if (exponent < 102) // below half of the smallest subnormal
    return static_cast<uint16_t>(sign);
  const int shift = exponent < 113 ? 126 - exponent : 13;
  uint32_t value = exponent < 113 ? (magnitude & 0x7fffff) | 0x800000 : magnitude - (uint32_t(112) << 23);
  const uint32_t rest = value & ((uint32_t(1) << shift) - 1), half = uint32_t(1) << (shift - 1);
  value >>= shift;
  value += rest > half || (rest == half && (value & 1));
  return static_cast<uint16_t>(sign | value);
}

SLUICE_KERNEL float floatOfHalf(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t quiet = exponent == 31 && fraction ? 0x400000 : 0;
  return floatOfBits(quiet | sign |
                     (exponent == 31 ? 0x7f800000u | fraction << 13 : (exponent + 112) << 23 | fraction << 13));
}

struct Float16 {
  uint16_t bits;
};

/// As halfOfFloat() and floatOfHalf(), by a GPU's instructions where there are some, which have one NaN.
SLUICE_KERNEL Float16 float16Of(float x) {
#if defined(__CUDA_ARCH__)
  return {__half_as_ushort(__float2half_rn(x))};
#else
  return {halfOfFloat(x)};
#endif
}
SLUICE_KERNEL float widened(Float16 x) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(x.bits));
#else
  return floatOfHalf(x.bits);
#endif
}

} // namespace sluice
