// SPDX-License-Identifier: Apache-2.0
// BatchNorm over the batches of several ranks: the statistics and the sums of one large batch, the same bits in all of
// them. Ranks are threads here.
#include "test/unit/runtime/ThreadRanks.h"

namespace sluice {
namespace {

/// What each of several ranks has after `run`, which gets a harness and the rank.
std::vector<Numbers> ofRanks(int ranks, const std::function<Numbers(Harness &, int)> &run) {
  Mail mail;
  std::vector<Numbers> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Harness h;
      ThreadRanks others(rank, ranks, mail);
      h.session.ranks = &others;
      h.session.state.rank = rank, h.session.state.ranks = ranks;
      results[static_cast<size_t>(rank)] = run(h, rank);
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

// Of 6 ranks in threes those of even numbers meet, and those of odd ones: each has the statistics of its three batches.
TEST(SynchronizedNorm, StatisticsAreThoseOfOneLargeBatch) {
  constexpr int64_t ranks = 6, together = 3, channels = 5, samples = 7;
  constexpr float epsilon = 1e-3f;
  const auto batchOf = [&](int64_t rank) {
    Numbers x = randomNumbers(samples * channels, static_cast<unsigned>(rank + 1));
    for (double &value : x)
      value = static_cast<double>(static_cast<float>(value + 3 * static_cast<double>(rank))); // means far apart
    return x;
  };
  const std::vector<Numbers> found = ofRanks(ranks, [&](Harness &h, int rank) {
    const Shape shape{samples, channels};
    const BatchNormStatistics own("x", shape, epsilon);
    const SynchronizedNorm norm("x", channels, together, epsilon);
    const Tensor x = h.tensor(shape), mean = h.tensor({channels}), rstd = h.tensor({channels}),
                 joint = h.tensor({channels}), jointRstd = h.tensor({channels}), scratch = h.workspace(own),
                 room = h.workspace(norm);
    h.write(x, batchOf(rank));
    own.run(h.session.compute, x, mean, rstd, scratch);
    h.session.synchronize();
    norm.statistics(h.session.communication, mean, rstd, joint, jointRstd, room);
    Numbers both = h.read(joint);
    const Numbers second = h.read(jointRstd);
    both.insert(both.end(), second.begin(), second.end());
    return both;
  });
  for (int64_t first = 0; first < ranks / together; ++first) {
    Numbers expected(2 * channels);
    for (size_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t rank = first; rank < ranks; rank += ranks / together)
        for (size_t i = c; i < samples * channels; i += channels)
          sum += batchOf(rank)[i], squares += batchOf(rank)[i] * batchOf(rank)[i];
      const double count = samples * together, mean = sum / count;
      expected[c] = mean;
      expected[channels + c] = 1 / std::sqrt(squares / count - mean * mean + static_cast<double>(epsilon));
    }
    for (int64_t rank = first; rank < ranks; rank += ranks / together) {
      EXPECT_CLOSE(found[static_cast<size_t>(rank)], expected, 1e-6);
      EXPECT_EQ(found[static_cast<size_t>(rank)], found[static_cast<size_t>(first)]) << rank;
    }
  }
}

// In the tree that sums gradients, so that four ranks have the bits of the sum over four.
TEST(SynchronizedNorm, SumsAreInTheTree) {
  constexpr int ranks = 4;
  constexpr int64_t channels = 9;
  const std::vector<Numbers> found = ofRanks(ranks, [&](Harness &h, int rank) {
    const SynchronizedNorm norm("x", channels, ranks, 0);
    const Tensor one = h.tensor({channels}), other = h.tensor({channels}), sums = h.tensor({channels}),
                 others = h.tensor({channels}), room = h.workspace(norm);
    h.session.write(one, partOf(rank, channels).data()), h.session.write(other, partOf(rank + ranks, channels).data());
    norm.sums(h.session.communication, one, other, sums, others, room);
    Numbers both = h.read(sums);
    const Numbers second = h.read(others);
    both.insert(both.end(), second.begin(), second.end());
    return both;
  });
  Numbers expected;
  for (const int64_t begin : {0, ranks}) {
    std::vector<Floats> parts;
    std::vector<const float *> leaves;
    for (int64_t unit = begin; unit < begin + ranks; ++unit)
      parts.push_back(partOf(unit, channels));
    for (const Floats &one : parts)
      leaves.push_back(one.data());
    Floats sum(channels);
    sumInTree(leaves, nullptr, 1, sum.data(), channels);
    expected.insert(expected.end(), sum.begin(), sum.end());
  }
  for (const Numbers &one : found)
    EXPECT_EQ(one, expected);
}

TEST(SynchronizedNorm, RanksDivideAllOfThem) {
  Harness h;
  const SynchronizedNorm norm("x", 4, 2, 0);
  const Tensor x = h.tensor({4}), room = h.workspace(norm);
  EXPECT_THROW(norm.sums(h.session.communication, x, x, x, x, room), std::invalid_argument);
}

// Statistics that two units have in common count once, as those of one batch.
TEST(SynchronizedNorm, JointStatisticsCountOnce) {
  constexpr int units = 4, together = 2, groups = units / together;
  Harness h;
  const Tensor mean = h.tensor({1}), rstd = h.tensor({1}), shares = h.tensor({2, 1}), sum = h.tensor({2, 1}),
               m = h.tensor({1}), v = h.tensor({1});
  h.write(m, {1}), h.write(v, {4}), h.write(rstd, {0.5});
  StepState &state = h.session.state;
  state.ranks = units, state.step = 1;
  const BatchStatistics statistics("x", 1, 8, 0.1f, 0, together);
  Numbers total(2);
  double expected = 1;
  for (int unit = 0; unit < units; ++unit) {
    state.rank = unit;
    h.write(mean, {static_cast<double>(10 + unit % groups)}); // of unit and unit + groups
    statistics.run(h.session.compute, mean, rstd, shares);
    const Numbers share = h.read(shares);
    total[0] += share[0], total[1] += share[1];
    if (unit < groups)
      expected += 0.1 * (10 + unit - expected);
  }
  h.write(sum, total);
  applyStatistics(h.session.compute, sum, m, v, 0.1f, together, "x");
  EXPECT_CLOSE(h.read(m), (Numbers{expected}), 1e-6);
  const double variance = 4.0 * 8 / 7;
  EXPECT_CLOSE(h.read(v), (Numbers{4 * 0.81 + variance * 0.19}), 1e-6);
}

} // namespace
} // namespace sluice
