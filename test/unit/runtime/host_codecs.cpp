// SPDX-License-Identifier: Apache-2.0
// What only the host has of codecs: zero values give back every bit in a slot and in a pool, zfp writes libzfp's
// stream, sizes are the promised ones, and a damaged slot is noticed.
#include "test/unit/runtime/Harness.h"
#include "test/unit/runtime/ZfpReference.h"

#include "runtime/host/Codec.h"

#include <cmath>
#include <limits>

namespace sluice {
namespace {

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();

constexpr int64_t part = zvcPart / 4; ///< elements

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

/// In a slot of its own, or densely in as many bytes as it takes, if those are no more than `room`.
std::vector<char> packedIn(const Floats &x, int64_t &used, int64_t room = 0) {
  const auto count = static_cast<int64_t>(x.size());
  std::vector<char> slot(static_cast<size_t>(room ? room : packedBytes(Codec{Codec::Zvc}, device(0, {count}))));
  used =
      room ? packZeroValuesDensely(x.data(), count, slot.data(), room) : packZeroValues(x.data(), count, slot.data());
  return slot;
}

TEST(ZeroValues, EveryBitComesBack) {
  for (int64_t count : {int64_t(1), int64_t(31), int64_t(32), int64_t(33), int64_t(150), part - 1, part, part + 1,
                        3 * part + 17, 17 * part + 130})
    for (double density : {0.0, 0.05, 0.5, 0.97, 1.0}) {
      const Floats x = oddValues(count, density, 7);
      int64_t used = 0, dense = 0;
      const std::vector<char> slot = packedIn(x, used);
      EXPECT_LE(used, static_cast<int64_t>(slot.size()));
      EXPECT_LE(used, static_cast<int64_t>(4 * count * (density + 0.1) + count / 8 + 8 * zvcParts(4 * count) + 128));
      Floats back(x.size(), 1.0f);
      unpackZeroValues(slot.data(), slot.size(), count, back.data(), "x");
      EXPECT_TRUE(sameBits(x, back)) << count << " values, " << density;
      const std::vector<char> whole = packedIn(x, dense, used);
      EXPECT_EQ(dense, used);
      back.assign(x.size(), 1.0f);
      unpackZeroValues(whole.data(), whole.size(), count, back.data(), "x", true);
      EXPECT_TRUE(sameBits(x, back)) << count << " values densely, " << density;
      packedIn(x, dense, std::max<int64_t>(1, used - 1)); // says what it takes, and writes no further than its room
      EXPECT_EQ(dense, used);
    }
}

TEST(ZeroValues, ADamagedSlotIsNoticed) {
  const int64_t count = part + 200;
  const Floats x = oddValues(count, 0.5, 9);
  for (bool densely : {false, true}) {
    int64_t used = 0;
    packedIn(x, used);
    const std::vector<char> whole = packedIn(x, used, densely ? used : 0);
    Floats back(x.size());
    const auto refuses = [&](const void *slot, size_t bytes) {
      EXPECT_THROW(unpackZeroValues(slot, bytes, count, back.data(), "x", densely), std::runtime_error);
    };
    for (size_t at : {size_t(0), size_t(7), size_t(8), size_t(12), size_t(16), size_t(64), size_t(65)}) {
      std::vector<char> slot = whole;
      slot[at] = static_cast<char>(slot[at] ^ 0x55); // the table, or the first mask
      refuses(slot.data(), slot.size());
    }
    const auto *table = reinterpret_cast<const int64_t *>(whole.data());
    for (int64_t bytes : {int64_t(0), int64_t(8), table[2] / 2, table[2] - 1}) // the end is missing
      refuses(whole.data(), static_cast<size_t>(bytes));
  }
}

TEST(Zfp, WritesTheStreamOfLibzfp) {
  for (const Tensor &x : {device(0, {2, 64, 56, 56}, Layout::NHWC), device(0, {3, 5, 7, 9}, Layout::NHWC),
                          device(0, {1, 3, 33, 31}, Layout::NHWC), device(0, {17, 1000}), device(0, {7}),
                          device(0, {1, 1, 4099, 1}, Layout::NHWC)})
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
      EXPECT_EQ(memcmp(packed.data(), whole.data(), whole.size()), 0)
          << grid.rows << " x " << grid.columns << " at " << rate;
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

TEST(ZeroValues, AreRefusedWhereTheirSlotIsTooSmallOrSpilled) {
  Session session(size_t(1) << 20, size_t(1) << 20, 2);
  const Tensor x = device(0, {part + 1000});
  const Codec codec{Codec::Zvc};
  EXPECT_THROW(copyToHost(session.toHost, x, host(0, {8}, Layout::RowMajor, DataType::U8), "x", codec),
               std::invalid_argument);
  EXPECT_THROW(copyToHost(session.toHost, x,
                          slotIn(Space::Spill, 0, {packedBytes(codec, x)}, Layout::RowMajor, DataType::U8), "x", codec),
               std::invalid_argument);
}

/// Two tensors of 32 KiB, half of the first zero and none of the second, through a pool and back.
class Pool : public testing::Test {
protected:
  static constexpr int64_t count = 8192;
  static constexpr size_t slotSize = 4 * count + 64, first = 16384 + 1024 + 64, second = slotSize;

  void run(size_t bytes, const char *file = nullptr) {
    Session session(4 * slotSize, 256 + bytes, 1, file, {bytes, 2 * 33024});
    for (int step = 0; step < 3; ++step)
      session.enqueue([&](Session &s) { oneStep(s, static_cast<unsigned>(step)); });
    stats = session.packedBytes();
    hostPeak = session.peak(Space::Host);
  }

  void oneStep(Session &session, unsigned seed) {
    std::vector<Floats> values = {Floats(count, 0.0f), oddValues(count, 1.0, seed)};
    for (size_t i = 0; i < count; i += 2)
      values[0][i] = static_cast<float>(i + seed + 1);
    for (float &v : values[1])
      v = v == 0 && !std::signbit(v) ? 1.0f : v;
    const Tensor slots[] = {slotIn(Space::Spill, 0, {int64_t(slotSize)}, Layout::RowMajor, DataType::U8),
                            slotIn(Space::Spill, 33024, {int64_t(slotSize)}, Layout::RowMajor, DataType::U8)};
    for (size_t i : {0, 1}) {
      session.write(device(0, {count}), values[i].data());
      copyToHost(session.toHost, device(0, {count}), slots[i], "x", Codec{Codec::Zvc});
    }
    for (size_t i : {1, 0}) {
      Floats back(count);
      session.toHost.synchronize();
      copyToDevice(session.toDevice, slots[i], device(slotSize + 192, {count}), "x", Codec{Codec::Zvc});
      session.read(device(slotSize + 192, {count}), back.data());
      EXPECT_TRUE(sameBits(back, values[i])) << i;
    }
  }

  Session::PackedBytes stats{};
  size_t hostPeak = 0;
};

TEST_F(Pool, HoldsAllThatFits) {
  // The first tensor is padded to a line, the second ends with the pool.
  run((first + 63) / 64 * 64 + second);
  EXPECT_EQ(stats.spilled, 0u);
  EXPECT_EQ(stats.packed, 3 * (first + second));
  EXPECT_EQ(stats.poolPeak, (first + 63) / 64 * 64 + second);
  EXPECT_EQ(hostPeak, 256 + stats.poolPeak);
}

TEST_F(Pool, SpillsWhatDoesNotFit) {
  const std::string file = testing::TempDir() + "sluice-pool-spill";
  run((first + 63) / 64 * 64 + second - 1, file.c_str());
  EXPECT_EQ(stats.spilled, 3 * second);
  EXPECT_EQ(stats.poolPeak, (first + 63) / 64 * 64);
  run(1, file.c_str());
  EXPECT_EQ(stats.spilled, 3 * (first + second));
  EXPECT_EQ(stats.poolPeak, 0u);
}

TEST_F(Pool, StopsWhereNothingTakesTheRest) {
  try {
    run(second - 1);
    FAIL() << "the second tensor came back from nowhere";
  } catch (const MemoryNotAvailable &error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("pool of " + std::to_string(second - 1) + " bytes"), std::string::npos) << what;
    EXPECT_NE(what.find("needs " + std::to_string((first + 63) / 64 * 64 + (second + 63) / 64 * 64) + " bytes"),
              std::string::npos)
        << what;
  }
}

} // namespace
} // namespace sluice
