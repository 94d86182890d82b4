// SPDX-License-Identifier: Apache-2.0
// int8 in blocks, on both targets: the bytes are those of a plain loop, errors stay within what a block's largest
// magnitude allows, zeros, signs and that magnitude come back, and what is not finite is refused.
#include "test/unit/runtime/PackedForm.h"

#include <limits>

namespace sluice {
namespace {

using Floats = std::vector<float>;
constexpr Codec int8{Codec::Int8};
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float largestFloat = std::numeric_limits<float>::max(), smallestFloat = 0x1p-149f;

PackedForm through(const Floats &x) { return through(int8, {static_cast<int64_t>(x.size())}, Layout::RowMajor, x); }

float largestOf(const Floats &x, size_t block) {
  float largest = 0;
  for (size_t i = 64 * block; i < std::min(x.size(), 64 * (block + 1)); ++i)
    largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

/// 64 integers a block, then the largest magnitudes.
std::vector<char> plainLoop(const Floats &x) {
  const size_t blocks = (x.size() + 63) / 64;
  std::vector<char> bytes(68 * blocks, 0);
  for (size_t block = 0; block < blocks; ++block) {
    const float largest = largestOf(x, block);
    memcpy(&bytes[64 * blocks + 4 * block], &largest, 4);
    for (size_t i = 64 * block; i < std::min(x.size(), 64 * (block + 1)); ++i) {
      const float ratio = x[i] == 0 ? 0 : x[i] / largest, scaled = ratio * 127;
      float nearest = std::nearbyint(scaled);
      if (nearest == 0 && x[i] != 0)
        nearest = std::copysign(1.0f, x[i]);
      bytes[i] = static_cast<char>(static_cast<int>(nearest));
    }
  }
  return bytes;
}

/// Blocks of very different magnitudes, with zeros and odd values between.
Floats values(int64_t count) {
  const Numbers random = randomNumbers(count, 11);
  const float odd[] = {0.0f, -0.0f, smallestFloat, -smallestFloat, 1e-30f, -1e-30f};
  const float scales[] = {1, 1e-20f, 3e37f, 1e-43f, 0, 1e4f};
  Floats x;
  for (size_t i = 0; i < random.size(); ++i)
    x.push_back(i % 9 == 4 ? odd[i / 9 % 6] : static_cast<float>(random[i]) * scales[i / 64 % 6]);
  return x;
}

TEST(Int8, PacksWhatAPlainLoopPacks) {
  for (int64_t count : {int64_t(1), int64_t(7), int64_t(63), int64_t(64), int64_t(65), int64_t(1000), int64_t(33791),
                        int64_t(131072)}) {
    const Floats x = values(count);
    const PackedForm packed = through(x);
    ASSERT_EQ(packed.bytes.size(), static_cast<size_t>((count + 63) / 64 * 68));
    EXPECT_EQ(packed.bytes, plainLoop(x)) << count;
  }
}

TEST(Int8, ErrorsAreBoundByTheBlock) {
  const Floats x = values(33791), back = through(x).back;
  for (size_t i = 0; i < x.size(); ++i) {
    const double largest = largestOf(x, i / 64), step = largest / 127;
    // What would round to 0 becomes a whole step. Float arithmetic adds a few units in the last place, denormals one.
    const double bound = (std::fabs(x[i]) >= step / 2 ? step / 2 : step) + 4 * 0x1p-24 * largest + smallestFloat;
    ASSERT_LE(std::fabs(double(back[i]) - double(x[i])), bound) << i << ": " << x[i] << " of " << largest;
    ASSERT_EQ(back[i] > 0, x[i] > 0) << i << ": " << x[i] << " became " << back[i];
    ASSERT_EQ(back[i] < 0, x[i] < 0) << i << ": " << x[i] << " became " << back[i];
    if (std::fabs(x[i]) == largest && x[i] != 0) {
      ASSERT_EQ(back[i], x[i]) << i;
    }
  }
}

TEST(Int8, RoundsToNearestEvenAndNeverToZero) {
  Floats x(64, 0.0f);
  x[0] = 127; // steps of 1
  x[1] = 0.5f, x[2] = 1.5f, x[3] = 2.5f, x[4] = -2.5f, x[5] = 3.4f, x[6] = -1e-6f, x[7] = -126.5f;
  const Floats back = through(x).back, want = {127, 1, 2, 2, -2, 3, -1, -126};
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(back[i], want[i], 1e-5) << i; // steps are ratios: q / 127 is rounded
}

TEST(Int8, TheLargestFloatsAndDenormalsComeBackFinite) {
  for (float magnitude : {largestFloat, 0x1p126f, 1e-40f, smallestFloat, 100 * smallestFloat}) {
    Floats x(64, magnitude);
    x[5] = -magnitude;
    x[6] = smallestFloat;
    const Floats back = through(x).back;
    EXPECT_EQ(back[0], magnitude);
    EXPECT_EQ(back[5], -magnitude);
    EXPECT_GT(back[6], 0) << magnitude;
  }
}

TEST(Int8, WhatIsNotFiniteIsRefusedByName) {
  for (float odd : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    Floats x(1000, 1.0f);
    x[999] = odd;
    try {
      through(x);
      FAIL() << odd << " passed";
    } catch (const ValueNotStorable &error) {
      EXPECT_STREQ(error.what(), "int8 cannot hold 'x': a value is infinite or NaN");
    }
    EXPECT_EQ(through({1.5f}).back, Floats{1.5f}); // nothing of it is left
  }
}

} // namespace
} // namespace sluice
