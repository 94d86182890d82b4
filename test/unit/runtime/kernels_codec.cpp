// SPDX-License-Identifier: Apache-2.0
// Codecs that both targets have: fp16 and bf16 give back all of their own values and refuse what they cannot hold, on
// the device and in copies; zfp errs by its rate; masks say what gradients ask and change no bit of a fused region.
#include "test/unit/runtime/Harness.h"
#include "test/unit/runtime/ZeroValues.h"

#include <limits>

namespace sluice {
namespace {

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr Codec fp16{Codec::Fp16}, bf16{Codec::Bf16};

bool sameBits(const Floats &a, const Floats &b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

Tensor halves(Harness &h, int64_t count) { return h.tensor({2 * count}, Layout::RowMajor, DataType::U8); }

/// What comes back of `x`.
Floats throughCodec(const Codec &codec, const Shape &shape, Layout layout, const Floats &x) {
  Harness h(size_t(4) << 20);
  const Tensor raw = h.tensor(shape, layout), again = h.tensor(shape, layout);
  const Tensor packed = h.tensor({packedBytes(codec, raw)}, Layout::RowMajor, DataType::U8);
  h.session.write(raw, x.data());
  const Packing packing("x", codec, raw);
  packing.encode(h.session.compute, raw, packed);
  packing.decode(h.session.compute, packed, again);
  Floats back(x.size());
  h.session.read(again, back.data());
  return back;
}

Floats throughHalf(const Floats &x, Codec codec = fp16) {
  return throughCodec(codec, {static_cast<int64_t>(x.size())}, Layout::RowMajor, x);
}

TEST(CodecNames, AreParsed) {
  EXPECT_EQ(parseCodec("")->kind, Codec::None);
  EXPECT_EQ(parseCodec("fp16")->kind, Codec::Fp16);
  EXPECT_EQ(parseCodec("zfp")->bits(), 8);
  EXPECT_EQ(parseCodec("zfp:12")->rate, 12);
  EXPECT_EQ(parseCodec("int8")->kind, Codec::Int8);
  EXPECT_EQ(parseCodec("bf16")->kind, Codec::Bf16);
  EXPECT_FALSE(parseCodec("zfp:12")->mask);
  EXPECT_TRUE(parseCodec("mask+zfp:12")->mask);
  EXPECT_EQ(parseCodec("mask+zfp:12")->rate, 12);
  EXPECT_EQ(parseCodec("mask+fp16")->kind, Codec::Fp16);
  for (const char *wrong : {"zip", "zfp:", "zfp:1", "zfp:32", "zfp:8x", "zfp8", "zfp:999999999999", "fp16:2", "int8:4",
                            "bf16:2", "int4", "mask+", "mask+zvc", "mask+mask", "mask+zfp:1", "mask+mask+zfp", "+zfp"})
    EXPECT_FALSE(parseCodec(wrong)) << wrong;
}

TEST(CodecNames, AreWrittenAsTheyAreRead) {
  for (const char *name : {"", "fp16", "zvc", "zvc:pool=4096", "zfp", "zfp:8", "mask+zfp", "mask+zfp:31", "mask+fp16",
                           "int8", "bf16", "mask", "argmax", "counter"}) {
    ASSERT_TRUE(parseForm(name)) << name;
    EXPECT_EQ(codecName(*parseForm(name)), name);
  }
  EXPECT_NE(*parseForm("zfp"), *parseForm("zfp:8")); // of the rate that the plan is given, and of this one
  EXPECT_NE(*parseForm("zfp"), *parseForm("mask+zfp"));
  for (const char *direct : {"mask", "argmax", "counter"})
    EXPECT_FALSE(parseCodec(direct)) << direct;
  for (const char *wrong : {"mask:2", "argmax+", "mask+counter", "zvc:pool=0"})
    EXPECT_FALSE(parseForm(wrong)) << wrong;
}

TEST(Half, EveryHalfComesBack) {
  std::vector<uint16_t> all(65536), again(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  Harness h(size_t(2) << 20);
  const Tensor x = h.tensor({65536}), packed = halves(h, 65536), repacked = halves(h, 65536);
  h.session.write(packed, all.data());
  const Packing packing("x", fp16, x);
  packing.decode(h.session.compute, packed, x);
  packing.encode(h.session.compute, x, repacked);
  h.session.read(repacked, again.data());
  for (size_t i = 0; i < all.size(); ++i) {
    const bool nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff);
    if (nan)
      EXPECT_TRUE((again[i] & 0x7c00) == 0x7c00 && (again[i] & 0x3ff)) << i;
    else
      EXPECT_EQ(again[i], i);
  }
}

TEST(Half, RoundsToNearestEven) {
  const Floats x = {1.0f + 0x1p-11f,
                    1.0f + 3 * 0x1p-11f,
                    1.0f + 0x1p-11f + 0x1p-20f,
                    65519.9f,
                    0x1p-25f,
                    0x1.8p-25f,
                    -0x1p-26f,
                    1e-40f,
                    -0.0f};
  const Floats want = {1.0f, 1.0f + 0x1p-9f, 1.0f + 0x1p-10f, 65504.0f, 0.0f, 0x1p-24f, -0.0f, 0.0f, -0.0f};
  EXPECT_TRUE(sameBits(throughHalf(x), want));
}

TEST(Half, InfinityAndNaNSurviveAndOverflowIsRefused) {
  const Floats back = throughHalf({infinity, -infinity, notANumber, 65504.0f});
  EXPECT_EQ(back[0], infinity);
  EXPECT_EQ(back[1], -infinity);
  EXPECT_TRUE(std::isnan(back[2]));
  EXPECT_EQ(back[3], 65504.0f);
  for (float large : {65520.0f, -65520.0f, 1e30f, -std::numeric_limits<float>::max()}) {
    Floats x(101, 1.0f);
    x[57] = large;
    try {
      throughHalf(x);
      FAIL() << large << " passed";
    } catch (const ValueNotStorable &error) {
      EXPECT_NE(std::string(error.what()).find("'x'"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(sameBits(throughHalf({1.5f}), {1.5f})); // nothing of it is left
  }
}

// Eight bits of a float, on both sides of ties, to the ends of its range; one NaN.
TEST(BFloat, RoundsToNearestEvenOverTheRangeOfFloats) {
  const Floats x = {1.0f + 0x1p-8f,
                    1.0f + 3 * 0x1p-8f,
                    1.0f + 0x1p-8f + 0x1p-20f,
                    1e6f,
                    -0x1p-149f,
                    0x1.8p-134f,
                    0x1p-134f,
                    -0.0f,
                    infinity,
                    -infinity,
                    0x1.fefffep127f};
  const Floats want = {1.0f, 1.0f + 0x1p-6f, 1.0f + 0x1p-7f, 999424.0f, -0.0f,      0x1p-133f,
                       0.0f, -0.0f,          infinity,       -infinity, 0x1.fep127f};
  EXPECT_TRUE(sameBits(throughHalf(x, bf16), want));
  EXPECT_TRUE(std::isnan(throughHalf({notANumber}, bf16)[0]));
  for (int64_t count : {int64_t(7), int64_t(1000), int64_t(33791)}) {
    Floats values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(i % 256) - 128);
    EXPECT_TRUE(sameBits(throughHalf(values, bf16), values)) << count;
  }
}

TEST(BFloat, WhatWouldBecomeInfiniteIsRefused) {
  for (float large : {0x1.ffp127f, -0x1.ffp127f, std::numeric_limits<float>::max()}) {
    Floats x(101, 1.0f);
    x[57] = large;
    try {
      throughHalf(x, bf16);
      FAIL() << large << " passed";
    } catch (const ValueNotStorable &error) {
      EXPECT_EQ(std::string(error.what()).rfind("bf16 cannot hold the value ", 0), size_t(0)) << error.what();
    }
  }
}

Floats throughZfp(const Shape &shape, Layout layout, int rate, const Floats &x) {
  return throughCodec({Codec::Zfp, rate}, shape, layout, x);
}

// Shapes whose last blocks are whole, and cut in either direction.
TEST(Zfp, ErrorsFollowTheRate) {
  for (const Shape &shape : {Shape{2, 16, 8, 8}, Shape{3, 5, 7, 9}, Shape{1, 3, 33, 31}, Shape{1, 1, 1, 7}})
    for (int rate : {3, 8, 11, 16, 31}) {
      const Numbers x = randomNumbers(shape.elements(), 3);
      const Floats back = throughZfp(shape, Layout::NHWC, rate, Floats(x.begin(), x.end()));
      EXPECT_LE(relativeError(Numbers(back.begin(), back.end()), x), rate == 3    ? 0.9
                                                                     : rate == 8  ? 0.05
                                                                     : rate == 11 ? 0.02
                                                                     : rate == 16 ? 1e-3
                                                                                  : 1e-6)
          << shape[1] << " channels at " << rate;
    }
}

TEST(Zfp, ZerosAndDenormalsPassAndWhatCouldBecomeInfiniteIsRefused) {
  const Shape shape{64, 64};
  EXPECT_TRUE(sameBits(throughZfp(shape, Layout::RowMajor, 8, Floats(4096)), Floats(4096)));
  for (float v : throughZfp(shape, Layout::RowMajor, 8, Floats(4096, 1e-41f)))
    EXPECT_LE(std::fabs(v), 1e-40f);
  const float largest = 0x1.fffffep125f;
  for (float large : {largest, -largest})
    for (float v : throughZfp(shape, Layout::RowMajor, 16, Floats(4096, large)))
      EXPECT_NEAR(static_cast<double>(v / large), 1, 1e-3);
  const Numbers signs = randomNumbers(4096, 5);
  Floats mixed;
  for (double sign : signs)
    mixed.push_back(sign < 0 ? -largest : largest);
  for (int rate : {2, 8})
    for (float v : throughZfp(shape, Layout::RowMajor, rate, mixed))
      EXPECT_LT(std::fabs(v), infinity) << "at " << rate;
  for (float odd : {infinity, -infinity, notANumber, 0x1p126f, -0x1p127f}) {
    Floats x(4096, 1.0f);
    x[77] = odd;
    EXPECT_THROW(throughZfp(shape, Layout::RowMajor, 8, x), ValueNotStorable);
  }
}

TEST(PackingCopies, ComeBackFromHostSlots) {
  for (int64_t count : {int64_t(1), int64_t(7), int64_t(1000), int64_t(33791)}) {
    Session session(size_t(1) << 20, size_t(1) << 20, 2);
    const Tensor x = device(0, {count}), back = device(size_t(1) << 19, {count});
    const Tensor slot = host(256, {packedBytes(fp16, x)}, Layout::RowMajor, DataType::U8);
    Floats values(static_cast<size_t>(count)), read(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i % 2048) - 1000;
    session.write(x, values.data());
    copyToHost(session.toHost, x, slot, "x", fp16);
    session.toHost.record({0});
    session.toDevice.wait({0});
    copyToDevice(session.toDevice, slot, back, "x", fp16);
    session.read(back, read.data());
    EXPECT_TRUE(sameBits(read, values)) << count;
    EXPECT_THROW(copyToHost(session.toHost, x, host(0, {count}, Layout::RowMajor, DataType::U8), "x", fp16),
                 std::invalid_argument);
  }
}

// In copies every codec makes what it makes in device memory, and gives back the same bits.
TEST(PackingCopies, MakeTheFormsOfDeviceMemory) {
  for (const char *name :
       {"fp16", "int8", "zfp:4", "zfp:6", "zfp:31", "mask+zfp:4", "mask+int8", "mask+fp16", "bf16", "mask+bf16"})
    for (const Shape &shape : {Shape{2, 16, 8, 8}, Shape{3, 5, 7, 9}, Shape{1, 64, 33, 31}, Shape{1, 1, 1, 7}}) {
      const Codec codec = *parseCodec(name);
      Floats x, back(static_cast<size_t>(shape.elements()));
      for (double v : randomNumbers(shape.elements(), 11))
        x.push_back(static_cast<float>(x.size() % 3 ? std::max(0.0, v) : v));
      Session session(size_t(2) << 20, size_t(1) << 20, 2);
      const Tensor raw = device(0, shape, Layout::NHWC), again = device(size_t(1) << 20, shape, Layout::NHWC);
      const Tensor slot = host(256, {packedBytes(codec, raw)}, Layout::RowMajor, DataType::U8);
      session.write(raw, x.data());
      copyToHost(session.toHost, raw, slot, "x", codec);
      session.toHost.record({0});
      session.toDevice.wait({0});
      copyToDevice(session.toDevice, slot, again, "x", codec);
      session.read(again, back.data());
      EXPECT_TRUE(sameBits(back, throughCodec(codec, shape, Layout::NHWC, x))) << name << " of " << shape[1];
      for (size_t i = 0; codec.mask && i < x.size(); ++i)
        ASSERT_EQ(back[i] > 0, x[i] > 0) << name << " at " << i;
    }
}

// -0.0, an infinity, NaNs of either kind, a denormal.
TEST(PackingCopies, LeaveZerosOutAndBringThemBack) {
  expectZeroValuesBack<uint32_t>(DataType::F32,
                                 {0x80000000, 0x7f800000, 0x7fc01234, 0xff800001, 1, 0xbfc00000, 0x40400000});
}

TEST(PackingCopies, ARefusedValueEndsTheSession) {
  Session session(size_t(1) << 16, size_t(1) << 16, 1);
  const Tensor x = device(0, {64}), slot = host(0, {128}, Layout::RowMajor, DataType::U8);
  const Floats values(64, 1e6f);
  session.write(x, values.data());
  copyToHost(session.toHost, x, slot, "conv1", Codec{Codec::Fp16});
  EXPECT_THROW(session.synchronize(), ValueNotStorable);
}

TEST(PackingCopies, ARefusedValueCanBeForgotten) {
  Session session(size_t(1) << 16, size_t(1) << 16, 1);
  const Tensor x = device(0, {64}), slot = host(0, {128}, Layout::RowMajor, DataType::U8);
  Floats values(64, 1e6f), back(64);
  session.write(x, values.data());
  copyToHost(session.toHost, x, slot, "conv1", Codec{Codec::Fp16});
  EXPECT_THROW(session.synchronize(), ValueNotStorable);
  session.forgetFailure();
  values.assign(64, 1.5f);
  session.write(x, values.data());
  copyToHost(session.toHost, x, slot, "conv1", Codec{Codec::Fp16});
  EXPECT_NO_THROW(session.synchronize());
  copyToDevice(session.toDevice, slot, x, "conv1", Codec{Codec::Fp16});
  session.read(x, back.data());
  EXPECT_TRUE(sameBits(back, values));
}

/// The words of a mask of these values.
std::vector<uint64_t> maskOf(const Floats &values, bool positive) {
  Harness h;
  const auto count = static_cast<int64_t>(values.size());
  const Tensor raw = h.tensor({count}), bits = h.tensor({count}, Layout::RowMajor, DataType::Bit);
  EXPECT_EQ(bits.bytes(), static_cast<size_t>((count + 63) / 64 * 8));
  h.session.write(raw, values.data());
  const Mask mask("relu", count, positive);
  mask.encode(h.session.compute, raw, bits);
  std::vector<uint64_t> words(bits.bytes() / 8);
  h.session.read(bits, words.data());
  return words;
}

TEST(Masks, SayWhatTheGradientAsks) {
  const Floats x = {1, -1, 0, -0.0f, notANumber, infinity, -infinity, 1e-45f, -1e-45f};
  const bool relu[] = {true, false, false, false, true, true, false, true, false}; // !(x <= 0)
  for (bool positive : {false, true})
    for (int64_t count : {int64_t(9), int64_t(64 * 9 + 5)}) {
      Floats values;
      for (int64_t i = 0; i < count; ++i)
        values.push_back(x[static_cast<size_t>(i % 9)]);
      const std::vector<uint64_t> words = maskOf(values, positive);
      ASSERT_EQ(words.size(), static_cast<size_t>((count + 63) / 64));
      for (int64_t i = 0; i < count; ++i) {
        const bool nan = i % 9 == 4;
        EXPECT_EQ(words[static_cast<size_t>(i / 64)] >> (i % 64) & 1, relu[i % 9] && !(nan && positive)) << i;
      }
    }
}

struct ReluBackward {
  static constexpr int inputs = 3, outputs = 1, sums = 1;
  static constexpr bool steps[] = {true, true, true};
  SLUICE_KERNEL Values<2> operator()(float dy, float y, float scale) const {
    const float v = y <= 0.0f ? 0.0f : dy;
    return {{v * scale, v}};
  }
};
struct MaskedReluBackward : ReluBackward {
  static constexpr DataType types[] = {DataType::F32, DataType::Bit, DataType::F32, DataType::F32};
};

TEST(Masks, InARegionChangeNoBit) {
  for (const Shape &shape :
       {Shape{2, 64, 9, 7}, Shape{3, 3, 17, 5}, Shape{1, 1100, 3, 3}, Shape{2, 100, 5, 5}, Shape{2, 40, 4, 1}}) {
    Harness h;
    const Tensor dy = h.image(shape), y = h.image(shape), out = h.image(shape), maskedOut = h.image(shape);
    const Tensor scale = h.tensor({shape[1]}), sum = h.tensor({shape[1]}), maskedSum = h.tensor({shape[1]});
    const Tensor bits = h.tensor(shape, Layout::NHWC, DataType::Bit);
    h.write(dy, randomNumbers(shape.elements(), 1));
    Numbers values = randomNumbers(shape.elements(), 2);
    for (double &v : values)
      v = v < 0 ? 0 : v;
    h.write(y, values);
    h.write(scale, randomNumbers(shape[1], 3));
    const Fused<ReluBackward> raw("raw", shape, Layout::NHWC, {dy, y, channel(scale)}, {out}, {sum});
    const Fused<MaskedReluBackward> masked("masked", shape, Layout::NHWC, {dy, bits, channel(scale)}, {maskedOut},
                                           {maskedSum});
    const Tensor a = h.workspace(raw), b = h.workspace(masked);
    const Mask mask("mask", shape.elements(), false);
    mask.encode(h.session.compute, y, bits);
    raw.run(h.session.compute, {dy, y, channel(scale)}, {out}, {sum}, a);
    masked.run(h.session.compute, {dy, bits, channel(scale)}, {maskedOut}, {maskedSum}, b);
    EXPECT_EQ(h.read(out), h.read(maskedOut));
    EXPECT_EQ(h.read(sum), h.read(maskedSum));
  }
}

TEST(Masks, StandOnlyWhereTheRegionExpectsThem) {
  Harness h;
  const Shape shape{2, 8, 4, 4};
  const Tensor dy = h.image(shape), bits = h.tensor(shape, Layout::NHWC, DataType::Bit), scale = h.tensor({8});
  EXPECT_THROW((Fused<ReluBackward>("n", shape, Layout::NHWC, {dy, bits, channel(scale)}, {dy}, {scale})),
               std::invalid_argument);
  EXPECT_THROW((Fused<MaskedReluBackward>("n", shape, Layout::NHWC, {dy, dy, channel(scale)}, {dy}, {scale})),
               std::invalid_argument);
}

} // namespace
} // namespace sluice
