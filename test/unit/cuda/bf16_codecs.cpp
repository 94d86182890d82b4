// SPDX-License-Identifier: Apache-2.0
// Zero values of halves: every bit comes back. int8 and zfp pack halves as the floats that they are, and what comes
// back is rounded; signs beside them are exact.
#include "runtime/kernels/CodecRules.h"
#include "test/unit/cuda/Halves.h"
#include "test/unit/runtime/PackedForm.h"
#include "test/unit/runtime/ZeroValues.h"

#include <limits>

namespace sluice {
namespace {

// -0.0, and what is an infinity, a NaN or a denormal in one of the types.
TEST(HALF(PackingCopies), LeaveZerosOutAndBringThemBack) {
  expectZeroValuesBack<uint16_t>(half, {0x8000, 0x7f80, 0x7fc1, 0xff81, 0x7c00, 0xfe01, 0x0001, 0xbfc0, 0x4040});
}

TEST(HALF(PackingCopies), HalvesAreNotHalvedAgain) {
  Session session(size_t(1) << 16, size_t(1) << 16, 1);
  const Tensor x = device(0, {64}, Layout::RowMajor, half);
  const Tensor slot = host(0, {128}, Layout::RowMajor, DataType::U8);
  EXPECT_THROW(copyToHost(session.toHost, x, slot, "x", Codec{Codec::Fp16}), std::invalid_argument);
  EXPECT_THROW(Packing("x", Codec{Codec::Fp16}, x), std::invalid_argument);
}

const Codec codecs[] = {{Codec::Zfp, 4}, {Codec::Zfp, 8}, {Codec::Zfp, 12}, {Codec::Int8}};
const Shape shapes[] = {{1, 1, 1, 1}, {1, 1, 1, 7}, {2, 16, 8, 8}, {3, 5, 7, 9}, {1, 64, 1, 65}};

/// Magnitudes far apart beside each other; the smallest are subnormal halves.
std::vector<float> values(const Shape &shape) {
  Numbers random = randomNumbers(shape.elements(), 17);
  const double scales[] = {1, 1e-3, 3, 1e-5, 40, 1e-6, 2e-7, 0};
  for (size_t i = 0; i < random.size(); ++i)
    random[i] *= scales[i * 7 / 5 % 8];
  random = halves(random);
  return {random.begin(), random.end()};
}

TEST(HALF(PackedHalves), ArePackedAsFloatsAndRounded) {
  for (const Codec &codec : codecs)
    for (const Shape &shape : shapes) {
      const std::vector<float> x = values(shape);
      const PackedForm wide = through(codec, shape, Layout::NHWC, x),
                       narrow = through(codec, shape, Layout::NHWC, x, half);
      EXPECT_EQ(narrow.bytes, wide.bytes) << encodeName(codec);
      const Numbers rounded = halves(Numbers(wide.back.begin(), wide.back.end()));
      EXPECT_EQ(narrow.back, std::vector<float>(rounded.begin(), rounded.end())) << encodeName(codec);
    }
}

TEST(HALF(PackedHalves), KeepSignsBesideCodecsAndWithInt8) {
  for (Codec codec : codecs) {
    codec.mask = codec.kind != Codec::Int8;
    for (const Shape &shape : shapes) {
      const std::vector<float> x = values(shape), back = through(codec, shape, Layout::NHWC, x, half).back;
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(back[i] > 0, x[i] > 0) << encodeName(codec) << " at " << i << ": " << x[i] << " became " << back[i];
    }
  }
}

TEST(HALF(PackedHalves), StayFiniteAndRefuseWhatIsNot) {
  const float largest = half == DataType::F16 ? 65504.0f : 0x1.fep125f;
  const Numbers signs = randomNumbers(4096, 5);
  std::vector<float> x;
  for (double sign : signs)
    x.push_back(sign < 0 ? -largest : largest);
  for (const Codec &codec : codecs)
    for (float back : through(codec, {64, 64}, Layout::RowMajor, x, half).back)
      ASSERT_LT(std::fabs(back), std::numeric_limits<float>::infinity()) << encodeName(codec);
  x[9] = std::numeric_limits<float>::infinity();
  for (const Codec &codec : codecs)
    EXPECT_THROW(through(codec, {64, 64}, Layout::RowMajor, x, half), ValueNotStorable) << encodeName(codec);
}

} // namespace
} // namespace sluice
