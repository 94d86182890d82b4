// SPDX-License-Identifier: Apache-2.0
// The codecs that only the host has: zero values give back every bit whatever they are, zfp writes libzfp's stream, sizes
// are the promised ones, and a damaged slot is noticed.
#include "Harness.h"
#include "ZfpReference.h"

#include "runtime/host/Codec.h"

#include <limits>

namespace sluice {
namespace {

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();

bool sameBits(const Floats &a, const Floats &b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

/// `density` of the values are not zero, and some of those are as odd as floats get.
Floats oddValues(int64_t count, double density, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<float> normal;
  const float odd[] = {-0.0f, infinity, -infinity, notANumber, 1e-40f, -1e-45f, std::numeric_limits<float>::max()};
  Floats x(static_cast<size_t>(count));
  for (float &v : x)
    if (uniform(generator) < density)
      v = uniform(generator) < 0.1 ? odd[generator() % 7] : normal(generator);
  return x;
}

TEST(ZeroValues, EveryBitComesBack) {
  for (int64_t count : {int64_t(1), int64_t(31), int64_t(32), int64_t(33), zvcPart - 1, zvcPart, zvcPart + 1, 3 * zvcPart + 17})
    for (double density : {0.0, 0.05, 0.5, 0.97, 1.0}) {
      const Floats x = oddValues(count, density, 7);
      std::vector<char> slot(static_cast<size_t>(packedBytes(Codec{Codec::Zvc}, device(0, {count}))));
      const int64_t used = packZeroValues(x.data(), count, slot.data());
      EXPECT_LE(used, static_cast<int64_t>(slot.size()));
      EXPECT_LE(used, static_cast<int64_t>(4 * count * (density + 0.1) + count / 8 + 8 * zvcParts(count) + 64));
      Floats back(x.size(), 1.0f);
      unpackZeroValues(slot.data(), count, back.data(), "x");
      EXPECT_TRUE(sameBits(x, back)) << count << " values, " << density;
    }
}

TEST(ZeroValues, ADamagedSlotIsNoticed) {
  const int64_t count = zvcPart + 100;
  const Floats x = oddValues(count, 0.5, 9);
  std::vector<char> whole(static_cast<size_t>(packedBytes(Codec{Codec::Zvc}, device(0, {count}))));
  packZeroValues(x.data(), count, whole.data());
  Floats back(x.size());
  for (size_t at : {size_t(0), size_t(7), size_t(8), size_t(12), size_t(16), size_t(24), size_t(25)}) {
    std::vector<char> slot = whole;
    slot[at] = static_cast<char>(slot[at] ^ 0x55); // offsets, or the first mask
    EXPECT_THROW(unpackZeroValues(slot.data(), count, back.data(), "x"), std::runtime_error) << at;
  }
}

TEST(Zfp, WritesTheStreamOfLibzfp) {
  for (const Tensor &x : {device(0, {2, 64, 56, 56}, Layout::NHWC), device(0, {3, 5, 7, 9}, Layout::NHWC), device(0, {1, 3, 33, 31}, Layout::NHWC),
                          device(0, {17, 1000}), device(0, {7}), device(0, {1, 1, 4099, 1}, Layout::NHWC)})
    for (int rate : {3, 8, 16}) {
      const ZfpGrid grid = zfpGrid(x);
      ASSERT_EQ(grid.rows * grid.columns, x.shape.elements());
      Floats values;
      for (double v : randomNumbers(x.shape.elements(), 3))
        values.push_back(static_cast<float>(v));
      std::vector<char> packed(static_cast<size_t>(packedBytes(Codec{Codec::Zfp, rate}, x)));
      packZfp(values.data(), grid, rate, packed.data(), "x");
      // libzfp ends with a word of its own size, we with 64 bits.
      const std::vector<char> whole = zfpReference(values, grid, rate);
      ASSERT_LE(whole.size(), packed.size());
      EXPECT_LT(packed.size(), whole.size() + 8);
      EXPECT_EQ(memcmp(packed.data(), whole.data(), whole.size()), 0) << grid.rows << " x " << grid.columns << " at " << rate;
      Floats back(values.size());
      unpackZfp(packed.data(), grid, rate, back.data());
      double difference = 0, norm = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        difference += (back[i] - values[i]) * (back[i] - values[i]);
        norm += values[i] * values[i];
      }
      EXPECT_LE(std::sqrt(difference / norm), rate == 3 ? 0.9 : rate == 8 ? 0.05 : 1e-3);
    }
}

TEST(Zfp, SizesAreTheRate) {
  const Tensor image = device(0, {16, 64, 56, 56}, Layout::NHWC);
  EXPECT_EQ(packedBytes(Codec{Codec::Zfp}, image), image.shape.elements());
  EXPECT_EQ(packedBytes(Codec{Codec::Zfp, 4}, image), image.shape.elements() / 2);
  // Three channels: rows are taken as one line, so that blocks are not padded from 3 to 4.
  const Tensor rgb = device(0, {4, 3, 64, 64}, Layout::NHWC);
  EXPECT_EQ(packedBytes(Codec{Codec::Zfp}, rgb), rgb.shape.elements());
}

TEST(ZeroValues, ComeBackFromHostSlots) {
  const int64_t count = zvcPart + 1000;
  Session session(size_t(1) << 20, size_t(1) << 20, 2);
  const Tensor x = device(0, {count}), back = device(size_t(1) << 19, {count});
  const Codec codec{Codec::Zvc};
  const Tensor slot = host(0, {packedBytes(codec, x)}, Layout::RowMajor, DataType::U8);
  const Floats values = oddValues(count, 0.3, 4);
  Floats read(values.size());
  session.write(x, values.data());
  copyToHost(session.toHost, x, slot, "x", codec);
  session.toHost.record({0});
  session.toDevice.wait({0});
  copyToDevice(session.toDevice, slot, back, "x", codec);
  session.read(back, read.data());
  EXPECT_TRUE(sameBits(read, values));
  EXPECT_EQ(session.packedBytes().raw, x.bytes());
  EXPECT_LT(session.packedBytes().packed, x.bytes() / 2);
  EXPECT_THROW(copyToHost(session.toHost, x, host(0, {8}, Layout::RowMajor, DataType::U8), "x", codec), std::invalid_argument);
}

} // namespace
} // namespace sluice
