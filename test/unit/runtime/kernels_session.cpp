// SPDX-License-Identifier: Apache-2.0
// What a session promises on either target, as far as tests can see it without looking inside: copies, events, poison,
// gradients shown, and steps that repeat although they were captured.
#include "runtime/Codec.h"
#include "runtime/Update.h"
#include "test/unit/runtime/Harness.h"

#include <cstdlib>
#include <numeric>

namespace sluice {
namespace {

TEST(Session, CopiesBetweenArenas) {
  Session session(1 << 16, 1 << 16, 1);
  std::vector<float> values(1000), back(1000);
  std::iota(values.begin(), values.end(), 1.0f);
  const Tensor a = device(0, {1000}), h = host(4096, {1000}), b = device(8192, {1000});
  session.write(a, values.data());
  session.enableRecording(true);
  copyToHost(session.toHost, a, h, "a");
  session.toHost.record({0});
  session.toDevice.wait({0});
  copyToDevice(session.toDevice, h, b, "a");
  session.read(b, back.data());
  EXPECT_EQ(values, back);
  const std::vector<OpRecord> records = session.takeRecords();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].bytes, 4000u);
  EXPECT_EQ(records[0].node.role, OpRole::Offload);
  EXPECT_EQ(records[1].node.role, OpRole::Prefetch);
  EXPECT_LE(records[0].end, records[1].start);
  EXPECT_THROW(copyToHost(session.toHost, a, host(0, {999}), "a"), std::invalid_argument);
  EXPECT_THROW(session.compute.address(device(1 << 16, {1})), std::out_of_range);
  EXPECT_THROW(session.compute.wait({1}), std::invalid_argument);
}

/// Two zeros of every four.
struct Clip {
  static constexpr int inputs = 1, outputs = 2, sums = 0;
  SLUICE_KERNEL Values<2> operator()(float x) const { return {{x > 1.5f ? x : 0.0f, x}}; }
};

/// What kernels do by nature, unless the program runs them for its plan.
TEST(Session, RecordsSayWhatOpsAreThereFor) {
  Harness h;
  const Numbers values(64, 1.0);
  const Tensor x = h.tensor({64}, Layout::RowMajor, values), y = h.tensor({64}, Layout::RowMajor, values);
  const Codec half{Codec::Fp16};
  const Tensor bits = device(x.offset, {64}, Layout::RowMajor, DataType::Bit),
               packed = device(x.offset, {packedBytes(half, y)}, Layout::RowMajor, DataType::U8);
  h.session.enableRecording(true);
  Mask("mask", 64, false).encode(h.session.compute, y, bits);
  const Packing packing("packing", half, y);
  packing.encode(h.session.compute, y, packed);
  packing.decode(h.session.compute, packed, y);
  accumulateGradient(h.session.compute, y, x, "sum");
  const Clip clip;
  Fused<Clip>({"again", OpRole::Rerun}, {64}, Layout::RowMajor, {x}, {y, y}, {}, clip)
      .run(h.session.compute, {x}, {y, y}, {}, none);
  h.session.synchronize();
  const std::vector<OpRecord> records = h.session.takeRecords();
  const OpRole roles[] = {OpRole::Encode, OpRole::Encode, OpRole::Decode, OpRole::Update, OpRole::Rerun};
  ASSERT_EQ(records.size(), std::size(roles));
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].node.role, roles[i]) << records[i].node.name;
    EXPECT_EQ(records[i].node.codec.kind, i == 1 || i == 2 ? Codec::Fp16 : Codec::None);
  }
}

TEST(Session, CountsZerosOfWhatRegionsWrite) {
  Harness h;
  Numbers values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i % 4);
  values[4] = -0.0; // whose bit pattern is not zero
  const Tensor x = h.tensor({64}, Layout::RowMajor, values), y = h.tensor({64}, Layout::RowMajor),
               z = h.tensor({64}, Layout::RowMajor);
  const Fused<Clip> clip("clip", {64}, Layout::RowMajor, {x}, {y, z}, {});
  for (bool zeros : {false, true}) {
    h.session.enableRecording(true, zeros);
    clip.run(h.session.compute, {x}, {y, z}, {}, none);
    h.session.synchronize();
    const std::vector<OpRecord> records = h.session.takeRecords();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].zeros, zeros ? std::vector<double>({0.5, 15.0 / 64}) : std::vector<double>());
  }
}

TEST(Session, CopiesEveryByteAndNoOther) {
  constexpr int64_t largest = (1 << 20) + 131, margin = 256;
  Session session(2 * (largest + 2 * margin), largest + 2 * margin, 2);
  const auto whole = [](size_t offset) {
    return device(offset, {largest + 2 * margin}, Layout::RowMajor, DataType::U8);
  };
  std::vector<unsigned char> values(largest + 2 * margin), back(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<unsigned char>(i % 251 + 1);
  session.write(whole(0), values.data());
  // Below, at and above the length from which the host stores past the caches; from and to odd addresses.
  for (int64_t bytes : {int64_t{1}, int64_t{4096}, largest - 132, largest - 131, largest})
    for (int64_t shift : {0, 1, 48}) {
      session.write(whole(values.size()), std::vector<unsigned char>(values.size(), 0).data());
      const Shape shape = {bytes};
      copyToHost(session.toHost, device(margin + 2 * shift, shape, Layout::RowMajor, DataType::U8),
                 host(margin - shift, shape, Layout::RowMajor, DataType::U8), "a");
      session.toHost.record({0});
      session.toDevice.wait({0});
      copyToDevice(session.toDevice, host(margin - shift, shape, Layout::RowMajor, DataType::U8),
                   device(values.size() + margin + shift, shape, Layout::RowMajor, DataType::U8), "a");
      session.read(whole(values.size()), back.data());
      const auto begin = back.begin() + margin + shift;
      EXPECT_TRUE(std::equal(begin, begin + bytes, values.begin() + margin + 2 * shift)) << bytes << ' ' << shift;
      EXPECT_EQ(std::count(back.begin(), back.end(), 0), static_cast<int64_t>(back.size()) - bytes)
          << bytes << ' ' << shift;
    }
}

TEST(Session, ShowsGradients) {
  Session session(64, 0, 0);
  const float values[4] = {1, 2, 3, 4};
  session.write(device(0, {4}), values);
  float sum = 0;
  session.onGradient = [&](const char *name, const Tensor &gradient, int64_t first, const void *data) {
    EXPECT_STREQ(name, "w");
    EXPECT_EQ(first, 6);
    for (int64_t i = 0; i < gradient.shape.elements(); ++i)
      sum += static_cast<const float *>(data)[i];
  };
  session.captureGradient("w", device(0, {4}), 6);
  session.synchronize();
  EXPECT_EQ(sum, 10);
}

TEST(Session, TooLargeAnArena) { EXPECT_THROW(Session(size_t(1) << 50, 0, 0), MemoryNotAvailable); }

TEST(Session, ReleasedBytesAreNaNInPoisonMode) {
  setenv("SLUICE_POISON", "1", 1);
  {
    Session session(256, 0, 0);
    const float one = 1;
    float back = 0;
    session.write(device(128, {1}), &one);
    session.release(device(128, {1}));
    session.read(device(128, {1}), &back);
    EXPECT_TRUE(std::isnan(back));
    session.read(device(0, {1}), &back);
    EXPECT_TRUE(std::isnan(back));
  }
  unsetenv("SLUICE_POISON");
}

/// w -= lr * gradient by way of host memory, from slots that alternate: replayed steps see each step's rate and slot
/// (without --no-graph).
TEST(Session, RepeatedStepsSeeTheirOwnState) {
  for (bool graphs : {true, false}) {
    Session session(1 << 12, 1 << 12, 3);
    session.enableGraphs(graphs);
    const Tensor w = device(0, {4}), back = device(512, {4}), away = host(0, {4});
    const Tensor slots[2] = {device(1024, {4}), device(1536, {4})};
    const std::vector<float> zero(4), one(4, 1.0f), two(4, 2.0f);
    session.write(w, zero.data());
    session.write(slots[0], one.data());
    session.write(slots[1], two.data());
    const std::function<void(Session &)> step = [&](Session &s) {
      s.compute.record({0});
      s.toHost.wait({0});
      copyToHost(s.toHost, s.batch(slots), away, "g");
      s.toHost.record({1});
      s.toDevice.wait({1});
      copyToDevice(s.toDevice, away, back, "g");
      s.toDevice.record({2});
      s.compute.wait({2});
      updateSgd(s.compute, {}, w, back, none, none, "w");
    };
    float want = 0;
    for (int i = 1; i <= 7; ++i) {
      session.batchParity = i % 2;
      session.state.step = i;
      session.state.learningRate = static_cast<float>(i);
      session.enqueue(step);
      want -= static_cast<float>(i * (1 + i % 2));
      std::vector<float> got(4);
      session.read(w, got.data());
      EXPECT_EQ(got, std::vector<float>(4, want)) << "step " << i << (graphs ? " with" : " without") << " graphs";
    }
  }
}

} // namespace
} // namespace sluice
