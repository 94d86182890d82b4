// SPDX-License-Identifier: Apache-2.0
// One 4x4 block of fixed-rate zfp, bit for bit as libzfp 1.0 packs it: P. Lindstrom, Fixed-Rate Compressed
// Floating-Point Arrays, TVCG 2014, Section 3. A block is `rate` words of 16 bits, wherever it lies in the stream.
// Blocks below 2^-97, where libzfp's scale overflows, keep their values here.
#pragma once

#include "runtime/Codec.h"
#include "runtime/Math.h"

namespace sluice {

namespace zfp {

/// Order of rising frequency, by (x + y), of index x + 4 y.
SLUICE_KERNEL int frequency(int i) {
  constexpr uint64_t order = 0xfebd7ac396825410ull;
  return static_cast<int>(order >> (4 * i) & 15);
}

/// Bits from the lowest on, through a window of 16.
struct Writer {
  uint16_t *to;
  uint32_t window = 0;
  int filled = 0;

  SLUICE_KERNEL void bit(uint32_t value) {
    window |= value << filled;
    if (++filled == 16) {
      *to++ = static_cast<uint16_t>(window);
      window = 0, filled = 0;
    }
  }
};
struct Reader {
  const uint16_t *from;
  uint32_t window = 0;
  int left = 0;

  SLUICE_KERNEL uint32_t bit() {
    if (left == 0)
      window = *from++, left = 16;
    const uint32_t value = window & 1;
    window >>= 1, --left;
    return value;
  }
};

SLUICE_KERNEL void forwardLift(int32_t *p, int step) {
  int32_t x = p[0], y = p[step], z = p[2 * step], w = p[3 * step];
  x += w, x >>= 1, w -= x;
  z += y, z >>= 1, y -= z;
  x += z, x >>= 1, z -= x;
  w += y, w >>= 1, y -= w;
  w += y >> 1, y -= w >> 1;
  p[0] = x, p[step] = y, p[2 * step] = z, p[3 * step] = w;
}
/// Sums wrap: lossy coefficients may leave the range that the forward transform keeps.
SLUICE_KERNEL void inverseLift(uint32_t *p, int step) {
  auto half = [](uint32_t v) { return static_cast<uint32_t>(static_cast<int32_t>(v) >> 1); };
  uint32_t x = p[0], y = p[step], z = p[2 * step], w = p[3 * step];
  y += half(w), w -= half(y);
  y += w, w <<= 1, w -= y;
  z += x, x <<= 1, x -= z;
  y += z, z <<= 1, z -= y;
  w += x, x <<= 1, x -= w;
  p[0] = x, p[step] = y, p[2 * step] = z, p[3 * step] = w;
}

constexpr uint32_t negabinary = 0xaaaaaaaau;
constexpr int exponentBias = 127, values = 16;

/// The exponent that all values of a block share: all are below 2^it in magnitude. -127 for zeros.
SLUICE_KERNEL int sharedExponent(const float *block) {
  uint32_t largest = 0;
  for (int i = 0; i < values; ++i) {
    const uint32_t magnitude = bitsOfFloat(block[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest == 0)
    return -exponentBias;
  const int exponent = static_cast<int>(largest >> 23) - exponentBias + 1;
  return exponent < 1 - exponentBias ? 1 - exponentBias : exponent;
}

/// x 2^e, exactly where the result is representable; e within [-160, 160].
SLUICE_KERNEL float scaled(float x, int e) {
  const int first = e / 2, second = e - first;
  return x * floatOfBits(static_cast<uint32_t>(first + 127) << 23) *
         floatOfBits(static_cast<uint32_t>(second + 127) << 23);
}

SLUICE_KERNEL void zeros(Writer &out, int bits) {
  for (; bits; --bits)
    out.bit(0);
}

SLUICE_KERNEL uint32_t planeOf(const uint32_t *data, int plane) {
  uint32_t x = 0;
  for (int i = 0; i < values; ++i)
    x |= (data[i] >> plane & 1) << i;
  return x;
}

/// Bit planes from the highest on, each as the bits that were significant before and a run-length code of the rest.
SLUICE_KERNEL void packPlanes(const uint32_t *data, int bits, Writer &out) {
  int known = 0;
  for (int plane = 32; bits && plane-- > 0;) {
    uint32_t x = planeOf(data, plane);
    for (int i = 0; i < known && bits; ++i, --bits, x >>= 1)
      out.bit(x & 1);
    for (; bits && known < values; x >>= 1, ++known) {
      --bits;
      out.bit(x != 0);
      if (x == 0)
        break;
      for (; bits && known < values - 1; x >>= 1, ++known) {
        --bits;
        out.bit(x & 1);
        if (x & 1)
          break;
      }
    }
  }
  zeros(out, bits);
}

SLUICE_KERNEL void unpackPlanes(uint32_t *data, int bits, Reader &in) {
  for (int i = 0; i < values; ++i)
    data[i] = 0;
  int known = 0;
  for (int plane = 32; bits && plane-- > 0;) {
    uint32_t x = 0;
    for (int i = 0; i < known && bits; ++i, --bits)
      x |= in.bit() << i;
    for (; bits && known < values; ++known) {
      --bits;
      if (!in.bit())
        break;
      for (; bits && known < values - 1; ++known) {
        --bits;
        if (in.bit())
          break;
      }
      x |= uint32_t(1) << known;
    }
    for (int i = 0; i < values; ++i)
      data[i] |= (x >> i & 1) << plane;
  }
}

/// `block`: 16 finite values, row by row.
SLUICE_KERNEL void packBlock(const float *block, int rate, uint16_t *packed) {
  Writer out{packed};
  const int exponent = sharedExponent(block);
  if (exponent == -exponentBias)
    return zeros(out, values * rate);
  out.bit(1);
  for (int i = 0; i < 8; ++i)
    out.bit(static_cast<uint32_t>(exponent + exponentBias) >> i & 1);
  int32_t fixed[values];
  for (int i = 0; i < values; ++i)
    fixed[i] = static_cast<int32_t>(scaled(block[i], 30 - exponent));
  for (int y = 0; y < 4; ++y)
    forwardLift(fixed + 4 * y, 1);
  for (int x = 0; x < 4; ++x)
    forwardLift(fixed + x, 4);
  uint32_t data[values];
  for (int i = 0; i < values; ++i)
    data[i] = (static_cast<uint32_t>(fixed[frequency(i)]) + negabinary) ^ negabinary;
  packPlanes(data, values * rate - 9, out);
}

SLUICE_KERNEL void unpackBlock(const uint16_t *packed, int rate, float *block) {
  Reader in{packed};
  if (!in.bit()) {
    for (int i = 0; i < values; ++i)
      block[i] = 0;
    return;
  }
  int exponent = -exponentBias;
  for (int i = 0; i < 8; ++i)
    exponent += static_cast<int>(in.bit() << i);
  uint32_t data[values], fixed[values];
  unpackPlanes(data, values * rate - 9, in);
  for (int i = 0; i < values; ++i)
    fixed[frequency(i)] = (data[i] ^ negabinary) - negabinary;
  for (int x = 0; x < 4; ++x)
    inverseLift(fixed + x, 4);
  for (int y = 0; y < 4; ++y)
    inverseLift(fixed + 4 * y, 1);
  for (int i = 0; i < values; ++i)
    block[i] = scaled(static_cast<float>(static_cast<int32_t>(fixed[i])), exponent - 30);
}

/// Fills up a row or column of which `count` of four values exist, `step` apart: 0, 1 or 2 again, then the first.
SLUICE_KERNEL void padLine(float *p, int count, int step) {
  if (count < 1)
    p[0] = 0;
  if (count < 2)
    p[step] = p[0];
  if (count < 3)
    p[2 * step] = p[step];
  if (count < 4)
    p[3 * step] = p[0];
}

} // namespace zfp

} // namespace sluice
