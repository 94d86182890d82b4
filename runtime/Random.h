// SPDX-License-Identifier: Apache-2.0
// Random numbers as pure functions of (seed, name, step, index): no state to save, so a recomputed dropout draws the
// same mask, a resumed run the same batches, and both targets the same initial weights. Only exactly rounded operations
// are used (of libm, sqrt, nearbyint and ldexp alone), so that the bits depend neither on the machine nor on the math
// library; files that include this are compiled without contraction of a*b+c.
//
//   uint64_t key = randomKey(seed, nameKey("/drop1/Dropout"), step);   // once a kernel
//   bool kept = uniform(key, i) >= ratio;                              // once an element
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifndef SLUICE_KERNEL
#if defined(__CUDACC__)
#define SLUICE_KERNEL __host__ __device__ inline
#else
#define SLUICE_KERNEL inline
#endif
#endif

namespace sluice {

/// 64-bit finalizer: every output bit depends on every input bit (the constants of SplitMix64).
SLUICE_KERNEL uint64_t mixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// What a name contributes to a key (FNV-1a).
SLUICE_KERNEL uint64_t nameKey(const char *name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *name; ++name)
    hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3ull;
  return hash;
}

/// One independent sequence for each (seed, name, step).
SLUICE_KERNEL uint64_t randomKey(uint64_t seed, uint64_t name, uint64_t step) {
  uint64_t key = mixBits(seed + 0x9e3779b97f4a7c15ull);
  key = mixBits(key ^ name);
  return mixBits(key + (step + 1) * 0x9e3779b97f4a7c15ull);
}

/// The index-th number of a sequence. The key enters twice: sequences are not shifted copies of each other.
SLUICE_KERNEL uint64_t randomBits64(uint64_t key, uint64_t index) {
  uint64_t x = mixBits(key + (index + 1) * 0x9e3779b97f4a7c15ull);
  return mixBits(x ^ (key << 32 | key >> 32));
}
SLUICE_KERNEL uint32_t randomBits(uint64_t key, uint64_t index) {
  return static_cast<uint32_t>(randomBits64(key, index) >> 32);
}

/// Uniform in [0, 1), a multiple of 2^-24.
SLUICE_KERNEL float uniform(uint64_t key, uint64_t index) {
  return static_cast<float>(randomBits(key, index) >> 8) * 0x1p-24f;
}

/// Natural logarithm of a normal positive number, accurate to 1e-15 relative: 2 artanh((m-1)/(m+1)) + e ln 2 with m in
/// [0.70, 1.42).
SLUICE_KERNEL double portableLog(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
  for (int k = 19; k >= 1; k -= 2)
    sum = sum * s2 + 1.0 / k;
  return 2 * s * sum + exponent * 0.69314718055994530942;
}

/// e^x, accurate to 1e-15 relative; 0 below -700, as at 700 above: by its series within ln 2 / 2 of 0.
SLUICE_KERNEL double portableExp(double x) {
  if (x < -700)
    return 0;
  const double twos = std::nearbyint((x > 700 ? 700 : x) * 1.44269504088896340736);
  const double rest = (x > 700 ? 700 : x) - twos * 0.69314718055994530942;
  double sum = 1;
  for (int k = 16; k > 0; --k)
    sum = 1 + rest / k * sum;
  return std::ldexp(sum, static_cast<int>(twos));
}

/// Standard normal: the inverse of the normal distribution at a uniform number (Wichura 1988, algorithm AS 241, PPND7:
/// 7 digits).
SLUICE_KERNEL float normal(uint64_t key, uint64_t index) {
  double p = (static_cast<double>(randomBits64(key, index) >> 12) + 0.5) * 0x1p-52;
  double q = p - 0.5;
  if (q <= 0.425 && q >= -0.425) {
    double r = 0.180625 - q * q;
    return static_cast<float>(q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
                              (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0));
  }
  double r = std::sqrt(-portableLog(q < 0 ? p : 1 - p)), value;
  if (r <= 5) {
    r -= 1.6;
    value = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
            ((0.12021132975 * r + 0.73700164250) * r + 1.0);
  } else {
    r -= 5;
    value = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
            ((0.012258202635 * r + 0.24197894225) * r + 1.0);
  }
  return static_cast<float>(q < 0 ? -value : value);
}

} // namespace sluice
