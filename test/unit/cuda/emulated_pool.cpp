// SPDX-License-Identifier: Apache-2.0
// The pool of zvc on cuda: tensors of several steps come back from it bit for bit, captured or not, it says what it
// held, and a step that needs more than it has ends with both numbers.
#include "runtime/PoolIndex.h"
#include "test/unit/runtime/ZeroValues.h"

namespace sluice {
namespace {

using Words = std::vector<uint32_t>;
constexpr Codec zvc{Codec::Zvc};
/// Of two parts and a ragged one, and of less than one.
constexpr int64_t counts[] = {2 * zvcPart / 4 + 777, 1024};

size_t roundedUp(int64_t bytes, int64_t unit) { return static_cast<size_t>((bytes + unit - 1) / unit * unit); }
size_t slotOf(int64_t count) { return roundedUp(zvcTableBytes(4 * count) + 4 * count, 256); }

/// Two tensors, half of them zero, through a pool and back.
class Pool : public testing::Test {
protected:
  const size_t room[2] = {roundedUp(4 * counts[0], 256), roundedUp(4 * counts[1], 256)};
  const size_t spilled = slotOf(counts[0]) + slotOf(counts[1]);
  const size_t index = static_cast<size_t>(poolIndexBytes(static_cast<int64_t>(spilled)));
  const Words values[2] = {sparseWords<uint32_t>(counts[0], 0.5, {1, 7, 0x80000000}),
                           sparseWords<uint32_t>(counts[1], 0.5, {1, 7, 0x80000000})};

  void run(size_t bytes, int steps = 4) {
    Session session(2 * (room[0] + room[1]), 512 + bytes, 4, nullptr, {bytes, spilled});
    const Tensor x[2] = {device(0, {counts[0]}), device(room[0], {counts[1]})};
    const Tensor back[2] = {device(room[0] + room[1], {counts[0]}), device(2 * room[0] + room[1], {counts[1]})};
    const Tensor slots[2] = {
        slotIn(Space::Spill, 0, {packedBytes(zvc, x[0])}, Layout::RowMajor, DataType::U8),
        slotIn(Space::Spill, slotOf(counts[0]), {packedBytes(zvc, x[1])}, Layout::RowMajor, DataType::U8)};
    const std::function<void(Session &)> body = [&](Session &s) {
      s.compute.record({0});
      s.toHost.wait({0});
      for (int i : {0, 1})
        copyToHost(s.toHost, x[i], slots[i], "x", zvc);
      s.toHost.record({1});
      s.toDevice.wait({1});
      for (int i : {1, 0})
        copyToDevice(s.toDevice, slots[i], back[i], "x", zvc);
    };
    for (int i : {0, 1})
      session.write(x[i], values[i].data());
    for (int step = 0; step < steps; ++step) { // of which the last ones are captured
      for (int i : {0, 1})
        session.write(back[i], Words(values[i].size(), 5).data());
      session.enqueue(body);
      session.synchronize();
      for (int i : {0, 1}) {
        Words read(values[i].size());
        session.read(back[i], read.data());
        EXPECT_TRUE(read == values[i]) << "tensor " << i << " in step " << step;
      }
    }
    stats = session.packedBytes();
    hostPeak = session.peak(Space::Host);
  }

  /// Of a tensor's parts, each at a multiple of a line.
  size_t partsOf(int tensor) const {
    size_t all = 0;
    const int64_t most = zvcPart / 4;
    for (int64_t first = 0; first < counts[tensor]; first += most) {
      const int64_t count = std::min(most, counts[tensor] - first);
      const auto begin = values[tensor].begin() + first;
      const auto nonzero = std::count_if(begin, begin + count, [](uint32_t word) { return word != 0; });
      all += roundedUp(std::min(4 * count, zvcMaskBytes(count) + 4 * nonzero), 64);
    }
    return all;
  }

  Session::PackedBytes stats{};
  size_t hostPeak = 0;
};

TEST_F(Pool, HoldsWhatIsNotZero) {
  const size_t exact = index + partsOf(0) + partsOf(1);
  run(exact);
  EXPECT_EQ(stats.poolPeak, exact);
  EXPECT_EQ(stats.raw, 4 * static_cast<size_t>(4 * (counts[0] + counts[1])));
  EXPECT_LT(stats.packed, stats.raw * 6 / 10);
  EXPECT_EQ(hostPeak, 512 + exact);
}

TEST_F(Pool, EndsTheStepWhereItIsFull) {
  const size_t exact = index + partsOf(0) + partsOf(1);
  try {
    run(exact - 64, 1);
    FAIL() << "a part came back from nowhere";
  } catch (const MemoryNotAvailable &error) {
    EXPECT_EQ(std::string(error.what()), "the pool has room for " + std::to_string(exact - 64 - index) +
                                             " bytes of packed activations: 'x' does not fit, and this step needs " +
                                             std::to_string(exact - index) +
                                             " at least; compile with a larger codec=zvc:pool=BYTES");
  }
  run(exact); // nothing of it is left
  EXPECT_THROW(run(index - 1), MemoryNotAvailable);
}

TEST_F(Pool, TakesNoTensorThatSharesAnEntry) {
  Session session(8192, 8192, 1, nullptr, {4096, 8192});
  const Tensor x = device(0, {poolSmallest / 4 - 1});
  EXPECT_THROW(copyToHost(session.toHost, x,
                          slotIn(Space::Spill, 0, {packedBytes(zvc, x)}, Layout::RowMajor, DataType::U8), "x", zvc),
               std::invalid_argument);
  Session none(8192, 8192, 1);
  const Tensor y = device(0, {1024});
  EXPECT_THROW(copyToHost(none.toHost, y,
                          slotIn(Space::Spill, 0, {packedBytes(zvc, y)}, Layout::RowMajor, DataType::U8), "x", zvc),
               std::invalid_argument);
}

} // namespace
} // namespace sluice
