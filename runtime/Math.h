// SPDX-License-Identifier: Apache-2.0
// Transcendental functions for fused regions, accurate to 2 units in the last place unless said otherwise; on a GPU
// exponential, logistic and hyperbolicTangent take its own instructions, and up to 6 units. Plain
// arithmetic and selections: a loop over them vectorizes, which one over libm's does not, and an element has the same
// bits wherever in a row it lies. Coefficients as in Cephes (S. Moshier, single precision). Compiled without
// contraction of a*b+c: what is one instruction, and rounded once, is said, so that a vector and what is left of a row
// agree.
#pragma once

#include "runtime/Random.h"

#include <cstdint>
#include <cstring>

namespace sluice {

SLUICE_KERNEL float floatOfBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
SLUICE_KERNEL uint32_t bitsOfFloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// a b + c, rounded once where the processor can.
SLUICE_KERNEL float multiplyAdd(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return fmaf(a, b, c);
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

SLUICE_KERNEL float magnitude(float x) { return floatOfBits(bitsOfFloat(x) & 0x7fffffffu); }
/// `size`, which is not negative, with the sign of x.
SLUICE_KERNEL float withSignOf(float x, float size) {
  return floatOfBits(bitsOfFloat(size) | (bitsOfFloat(x) & 0x80000000u));
}

namespace detail {

/// a / b for b from 1 to infinity, 0 for b above 2^126: a GPU takes several times as long for the last digit.
SLUICE_KERNEL float quickQuotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
  return a * reciprocal;
#else
  return a / b;
#endif
}

#if defined(__CUDA_ARCH__)
constexpr float leastExponent = -150; ///< what is below it counts as it
/// 2^x within two units in the last place, 0 where it would be denormal.
__device__ inline float powerOfTwo(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
/// e^x for x from -150 to 88.7, 0 where it would be denormal, by the instruction for powers of two (two units in the
/// last place); what the product with log2(e) rounds away comes back to the first order.
__device__ inline float exponentialWithin(float x) {
  const float power = x * 1.44269502f;
  const float rest = fmaf(x, 1.92596299e-8f, fmaf(x, 1.44269502f, -power));
  const float value = powerOfTwo(power);
  return fmaf(value, rest * 0.693147181f, value);
}
#else
constexpr float leastExponent = -87.3f;
/// e^x for x from -87.3 to 88.7; 0 below -86.9 instead of numbers that processors are slow with.
SLUICE_KERNEL float exponentialWithin(float x) {
  const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float shifted = multiplyAdd(x, 1.44269504088896341f, magic);
  const float n = shifted - magic;
  const float r = multiplyAdd(n, 2.12194440e-4f, multiplyAdd(n, -0.693359375f, x));
  float p = 1.9875691500e-4f;
  p = multiplyAdd(p, r, 1.3981999507e-3f);
  p = multiplyAdd(p, r, 8.3334519073e-3f);
  p = multiplyAdd(p, r, 4.1665795894e-2f);
  p = multiplyAdd(p, r, 1.6666665459e-1f);
  p = multiplyAdd(p, r, 5.0000001201e-1f);
  p = multiplyAdd(p, r * r, r) + 1.0f;
  // 2 * 2^(n-1): n goes up to 128, which no float's exponent is. n = -126 gives 0.
  return (p + p) * floatOfBits((bitsOfFloat(shifted) - bitsOfFloat(magic) + 126u) << 23);
}
#endif

} // namespace detail

/// e^x; infinity above 88.7, 0 below -86.9.
SLUICE_KERNEL float exponential(float x) {
  const float value = detail::exponentialWithin(x < detail::leastExponent ? detail::leastExponent : x); // NaN stays
  return x > 88.7228394f ? floatOfBits(0x7f800000u) : value;
}

/// 1 / (1 + e^-x)
SLUICE_KERNEL float logistic(float x) { return detail::quickQuotient(1.0f, 1.0f + exponential(0.0f - x)); }

/// Natural logarithm; -infinity of 0, NaN of what is less.
SLUICE_KERNEL float logarithm(float x) {
  const bool denormal = x < 1.17549435e-38f;
  const uint32_t bits = bitsOfFloat(denormal ? x * 8388608.0f : x); // 2^23
  const float mantissa = floatOfBits((bits & 0x007fffffu) | 0x3f000000u);
  const bool low = mantissa < 0.70710678f;
  const int32_t exponent = static_cast<int32_t>(bits >> 23) - 126 - (denormal ? 23 : 0) - (low ? 1 : 0);
  const float r = (low ? mantissa + mantissa : mantissa) - 1.0f, z = r * r, n = static_cast<float>(exponent);
  float p = 7.0376836292e-2f;
  p = multiplyAdd(p, r, -1.1514610310e-1f);
  p = multiplyAdd(p, r, 1.1676998740e-1f);
  p = multiplyAdd(p, r, -1.2420140846e-1f);
  p = multiplyAdd(p, r, 1.4249322787e-1f);
  p = multiplyAdd(p, r, -1.6668057665e-1f);
  p = multiplyAdd(p, r, 2.0000714765e-1f);
  p = multiplyAdd(p, r, -2.4999993993e-1f);
  p = multiplyAdd(p, r, 3.3333331174e-1f);
  const float value = n * 0.693359375f + (r + (p * r * z + n * -2.12194440e-4f - 0.5f * z));
  const float infinite = floatOfBits(0x7f800000u);
  return x > 0 ? (x < infinite ? value : x) : x == 0 ? -infinite : floatOfBits(0x7fc00000u);
}

/// Hyperbolic tangent.
SLUICE_KERNEL float hyperbolicTangent(float x) {
  const float size = magnitude(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = multiplyAdd(p, z, 2.06390887954e-2f);
  p = multiplyAdd(p, z, -5.37397155531e-2f);
  p = multiplyAdd(p, z, 1.33314422036e-1f);
  p = multiplyAdd(p, z, -3.33332819422e-1f);
  const float small = multiplyAdd(p * z, x, x);
  const float limited = size > 40.0f ? 40.0f : size; // NaN stays
  const float large = 1.0f - detail::quickQuotient(2.0f, detail::exponentialWithin(2.0f * limited) + 1.0f);
  return size < 0.625f ? small : withSignOf(x, large);
}

namespace detail {

/// An angle less the nearest multiple of pi/2, and which one that is of four. Subtracted in double, in two parts
/// (fdlibm): to the last digit up to 2^29, wrong but no more than pi/4 where double has no digits left.
struct Quadrant {
  float angle;
  uint32_t number;
};
SLUICE_KERNEL Quadrant quadrantOf(float x) {
  const double magic = 6755399441055744.0; // 1.5 * 2^52: adding it rounds to an integer in the low bits
  const double wide = x, shifted = wide * 0.63661977236758134308 + magic, n = shifted - magic;
  const float rest = static_cast<float>(wide - n * 1.57079632673412561417e+00 - n * 6.07710050650619224932e-11);
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const float most = 0.7854f;
  return {rest < -most ? -most : rest > most ? most : rest, static_cast<uint32_t>(bits & 3)};
}

/// Sine of an angle that lies `turn` quadrants further. NaN of what is infinite.
SLUICE_KERNEL float sineOf(Quadrant at, uint32_t turn) {
  const float r = at.angle, z = r * r;
  const float odd = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
  float even = (2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f;
  even = even * z * z - 0.5f * z + 1.0f;
  const uint32_t quadrant = (at.number + turn) & 3;
  const float value = (quadrant & 1) != 0 ? even : odd;
  return quadrant > 1 ? -value : value;
}

} // namespace detail

SLUICE_KERNEL float sine(float x) { return detail::sineOf(detail::quadrantOf(x), 0); }
SLUICE_KERNEL float cosine(float x) { return detail::sineOf(detail::quadrantOf(x), 1); }

/// The angle from -pi/2 to pi/2 that has this tangent.
SLUICE_KERNEL float arcTangent(float x) {
  const float size = x < 0 ? -x : x;
  const bool steep = size > 2.41421356f, middle = size > 0.41421356f;
  const float base = steep ? 1.57079633f : middle ? 0.78539816f : 0.0f;
  const float r = steep ? -1.0f / size : middle ? (size - 1.0f) / (size + 1.0f) : size, z = r * r;
  const float p = ((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f;
  const float angle = base + (p * z * r + r);
  return x < 0 ? -angle : angle;
}

/// Error function, to 5 units in the last place (7 without multiplyAdd in one instruction): x P(x^2) / Q(x^2), a
/// minimax fit (relative error 2e-8) up to 3.92, from where on the result is 1.
SLUICE_KERNEL float errorFunction(float x) {
  const float size = magnitude(x), limited = size > 3.92f ? 3.92f : size, z = limited * limited; // NaN stays
  float p = 2.050089734e-6f;
  p = multiplyAdd(p, z, 2.848834265e-4f);
  p = multiplyAdd(p, z, 3.765635891e-3f);
  p = multiplyAdd(p, z, 5.27487807e-2f);
  p = multiplyAdd(p, z, 1.904068738e-1f);
  p = multiplyAdd(p, z, 1.128379107f);
  float q = 3.809175905e-5f;
  q = multiplyAdd(q, z, 1.162540633e-3f);
  q = multiplyAdd(q, z, 1.496925391e-2f);
  q = multiplyAdd(q, z, 1.141092852e-1f);
  q = multiplyAdd(q, z, 5.02076447e-1f);
  q = multiplyAdd(q, z, 1.0f);
  const float value = limited * p / q;
  return withSignOf(x, value > 1.0f ? 1.0f : value);
}

} // namespace sluice
