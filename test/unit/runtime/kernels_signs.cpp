// SPDX-License-Identifier: Apache-2.0
// A mask in front of a packed form, on both targets: what comes back lies above 0 exactly where it did, whatever the
// codec makes of it; what a ReLU made 0 comes back as 0, and everything else as the codec alone gives it back.
#include "runtime/kernels/CodecRules.h"
#include "test/unit/runtime/PackedForm.h"

#include <limits>

namespace sluice {
namespace {

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float smallestNormal = std::numeric_limits<float>::min();
constexpr float smallestFloat = std::numeric_limits<float>::denorm_min();

Codec masked(Codec codec) {
  codec.mask = true;
  return codec;
}

PackedForm through(const Codec &codec, const Shape &shape, const Floats &x) {
  return through(codec, shape, Layout::NHWC, x);
}

const Codec codecs[] = {{Codec::Zfp, 4}, {Codec::Zfp, 8}, {Codec::Zfp, 16},
                        {Codec::Fp16},   {Codec::Int8},   {Codec::Bf16}};
const Shape shapes[] = {{1, 1, 1, 1}, {1, 1, 1, 7}, {2, 16, 8, 8}, {3, 5, 7, 9}, {1, 64, 1, 65}, {1, 3, 183, 61}};

/// Magnitudes far apart beside each other, of which codecs with absolute errors lose the small ones.
Floats values(const Shape &shape, bool rectified) {
  const Numbers random = randomNumbers(shape.elements(), 17);
  const float scales[] = {1, 1e-3f, 3, 1e-9f, 40, 1e-30f, 1e-41f, 0};
  Floats x;
  for (size_t i = 0; i < random.size(); ++i) {
    const float value = static_cast<float>(random[i]) * scales[i * 7 / 5 % 8];
    x.push_back(rectified && !(value > 0) ? 0 : value);
  }
  return x;
}

TEST(SignsBesideCodecs, AreExact) {
  for (const Codec &codec : codecs)
    for (const Shape &shape : shapes)
      for (bool rectified : {false, true}) {
        const Floats x = values(shape, rectified), back = through(masked(codec), shape, x).back;
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(back[i] > 0, x[i] > 0) << encodeName(codec) << " at " << i << ": " << x[i] << " became " << back[i];
          if (rectified && x[i] == 0) {
            ASSERT_EQ(back[i], 0) << encodeName(codec) << " at " << i;
          }
        }
      }
}

// Rounding at a low rate does lose them.
TEST(SignsBesideCodecs, AreLostWithout) {
  const Shape shape{2, 16, 8, 8};
  const Floats x = values(shape, true), back = through({Codec::Zfp, 4}, shape, x).back;
  int lost = 0;
  for (size_t i = 0; i < x.size(); ++i)
    lost += (back[i] > 0) != (x[i] > 0);
  EXPECT_GT(lost, 0);
}

TEST(SignsBesideCodecs, ChangeNothingElse) {
  for (const Codec &codec : codecs)
    for (const Shape &shape : shapes) {
      const Floats x = values(shape, false);
      const PackedForm alone = through(codec, shape, x), with = through(masked(codec), shape, x);
      const int64_t mask = signBytes(shape.elements());
      ASSERT_EQ(with.bytes.size(), alone.bytes.size() + static_cast<size_t>(mask));
      EXPECT_TRUE(std::equal(alone.bytes.begin(), alone.bytes.end(), with.bytes.begin() + mask)) << encodeName(codec);
      for (size_t i = 0; i < x.size(); ++i)
        if ((alone.back[i] > 0) == (x[i] > 0) && x[i] != 0) {
          ASSERT_EQ(with.back[i], alone.back[i]) << encodeName(codec) << " at " << i << ": " << x[i];
        }
    }
}

TEST(SignsBesideCodecs, CostABitAValueAndAByteABlock) {
  const Tensor x = device(0, {2, 16, 8, 8}, Layout::NHWC), odd = device(0, {1, 1, 1, 67}, Layout::NHWC);
  const Codec rate4{Codec::Zfp, 4}, half{Codec::Fp16};
  EXPECT_EQ(packedBytes(masked(rate4), x), 320 + 2048 / 2); // 288 bytes, filled up
  EXPECT_EQ(packedBytes(masked(half), odd), 64 + 2 * 67);
}

// A word of bits a block of 64, !(x <= 0), the lowest first; then a byte a block, 1 where a value is below 0.
TEST(SignsBesideCodecs, LieInFrontOfThePackedForm) {
  Floats x(130, 0.0f);
  x[0] = x[5] = 2, x[63] = smallestFloat, x[64] = -0.0f, x[66] = infinity, x[100] = -1, x[129] = notANumber;
  const PackedForm packed = through(masked({Codec::Fp16}), {1, 1, 1, 130}, x);
  ASSERT_EQ(packed.bytes.size(), size_t(64 + 2 * 130));
  uint64_t words[3];
  memcpy(words, packed.bytes.data(), sizeof words);
  EXPECT_EQ(words[0], 1u | 1u << 5 | uint64_t(1) << 63);
  EXPECT_EQ(words[1], 4u);
  EXPECT_EQ(words[2], 2u);
  EXPECT_EQ(std::vector<char>(packed.bytes.begin() + 24, packed.bytes.begin() + 27), (std::vector<char>{0, 1, 0}));
}

TEST(SignsBesideCodecs, OddValuesComeBackAsDocumented) {
  Floats x(64, 0.0f), mixed(64, 1.0f);
  x[1] = -0.0f, x[2] = smallestFloat, x[3] = 1e-10f, x[4] = infinity, x[5] = 65504;
  const Floats back = through(masked({Codec::Fp16}), {1, 1, 1, 64}, x).back;
  EXPECT_FALSE(std::signbit(back[1])); // -0.0 comes back as +0.0
  EXPECT_EQ(back[1], 0);
  EXPECT_EQ(back[2], smallestNormal); // lost by half precision
  EXPECT_EQ(back[3], smallestNormal);
  EXPECT_EQ(back[4], infinity);
  EXPECT_EQ(back[5], 65504);
  mixed[1] = -0.0f, mixed[2] = -smallestFloat, mixed[3] = notANumber, mixed[4] = -infinity, mixed[5] = -3;
  const Floats again = through(masked({Codec::Fp16}), {1, 1, 1, 64}, mixed).back;
  EXPECT_EQ(again[1], 0);
  EXPECT_LE(again[2], 0);
  EXPECT_TRUE(std::isnan(again[3]));
  EXPECT_EQ(again[4], -infinity);
  EXPECT_EQ(again[5], -3);
}

TEST(SignsBesideCodecs, RefuseWhatTheCodecRefuses) {
  for (float odd : {infinity, notANumber})
    for (Codec::Kind kind : {Codec::Zfp, Codec::Int8}) {
      Floats x(64, 1.0f);
      x[9] = odd;
      EXPECT_THROW(through(masked({kind}), {1, 1, 1, 64}, x), ValueNotStorable);
    }
  EXPECT_THROW(through(masked({Codec::Fp16}), {1, 1, 1, 64}, Floats(64, 1e6f)), ValueNotStorable);
  EXPECT_THROW(Packing("x", masked({Codec::Zvc}), device(0, {64})), std::invalid_argument);
}

} // namespace
} // namespace sluice
