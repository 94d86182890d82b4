// SPDX-License-Identifier: Apache-2.0
// Sums over ranks: the same bits for any number of them, whatever a rank's batches are. Ranks are threads here, with a
// session each and mailboxes between them.
#include "test/unit/runtime/ThreadRanks.h"

namespace sluice {
namespace {

/// Of a step's targets, as if some were ignored.
float weightOf(int64_t unit) { return 1 - 0.03125f * static_cast<float>(unit % 5); }

/// Some elements of a vector.
Tensor part(Tensor whole, int64_t first, int64_t count) {
  whole.offset += static_cast<size_t>(first) * sizeof(float);
  whole.shape = {count};
  return whole;
}

/// One rank's step: its batches through sum_batches of `digits` sums, if any, then the sum over all ranks, in two parts
/// of one message where they fit one.
Floats stepOf(int rank, int ranks, int64_t batches, int digits, size_t count, bool ordered, Mail &mail) {
  const bool split = static_cast<int64_t>(count) <= reducedPiece;
  Harness h(size_t(16) << 20);
  ThreadRanks others(rank, ranks, mail);
  h.session.ranks = ranks > 1 ? &others : nullptr;
  StepState &state = h.session.state;
  state.rank = rank, state.ranks = ranks, state.batches = batches, state.step = 1;
  const Shape shape{static_cast<int64_t>(count)};
  const Tensor x = h.tensor(shape);
  std::vector<Tensor> sums;
  for (int i = 0; i < digits; ++i)
    sums.push_back(h.tensor(shape));
  // Half of the tensor is summed by itself, where it is not too much in one message with the other half.
  const auto half = static_cast<int64_t>(count / 2);
  const bool together = split && half > 0;
  const Tensor room = h.tensor({roomOfSum(together ? 2 : 1, shape.elements(), true)});
  double weight = 0;
  h.session.unitWeights.clear();
  for (int64_t unit = 0; unit < ranks * batches; ++unit) {
    weight += static_cast<double>(weightOf(unit));
    if (digits == 0)
      h.session.unitWeights.push_back(weightOf(unit));
  }
  state.meanFactor = static_cast<float>(1 / weight);
  for (state.batch = 0; state.batch < batches; ++state.batch) {
    state.unitWeight = weightOf(state.unit());
    h.session.write(x, partOf(state.unit(), count).data());
    if (digits > 0)
      sumBatches(h.session.compute, x, {sums.data(), sums.size()}, true, "x");
    h.session.synchronize();
    const Tensor own = digits > 0 ? sums.back() : x;
    if (together)
      allReduce(h.session.communication, room, {part(own, 0, half), part(own, half, shape.elements() - half)},
                {part(x, 0, half), part(x, half, shape.elements() - half)}, true, digits == 0, ordered, "x");
    else
      allReduce(h.session.communication, room, {own}, {x}, true, digits == 0, ordered, "x");
    h.session.synchronize();
  }
  Floats all(count);
  h.session.read(x, all.data());
  return all;
}

/// What all ranks have after a step, which must be one thing.
Floats sumOf(int ranks, int64_t batches, int digits, size_t count, bool ordered = true) {
  Mail mail;
  std::vector<Floats> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(
        [&, rank] { results[static_cast<size_t>(rank)] = stepOf(rank, ranks, batches, digits, count, ordered, mail); });
  for (std::thread &thread : threads)
    thread.join();
  for (const Floats &one : results)
    EXPECT_EQ(one, results.front()) << ranks << " ranks";
  return results.front();
}

// Of 12 units, as of a number that is no power of two; one element, some, and more than one piece, so that tensors go
// whole and in shares.
TEST(Collective, NumberOfRanksChangesNoBit) {
  const Floats one = sumOf(1, 12, 4, 1000);
  for (const auto &[ranks, batches, digits] : {std::tuple(3, 4, 2), {3, 4, 5}, {6, 2, 1}, {12, 1, 1}, {12, 1, 0}})
    EXPECT_EQ(sumOf(ranks, batches, digits, 1000), one) << ranks << " ranks";
  EXPECT_EQ(sumOf(12, 1, 0, 1), sumOf(3, 4, 2, 1));
  constexpr size_t large = reducedPiece + 77;
  EXPECT_EQ(sumOf(3, 1, 0, large), sumOf(1, 3, 2, large));
}

TEST(Collective, SumIsTheWeightedMean) {
  constexpr size_t count = 1000;
  const Floats mean = sumOf(3, 4, 2, count);
  Numbers sum(count), size(count);
  double weights = 0;
  for (int unit = 0; unit < 12; ++unit) {
    const Floats part = partOf(unit, count);
    const double weight = static_cast<double>(weightOf(unit));
    weights += weight;
    for (size_t i = 0; i < count; ++i)
      sum[i] += static_cast<double>(part[i]) * weight, size[i] += std::abs(static_cast<double>(part[i]));
  }
  for (size_t i = 0; i < count; ++i)
    ASSERT_NEAR(static_cast<double>(mean[i]) * weights, sum[i], 1e-6 * size[i]) << i;
}

// The numbers tell one order from another: else the test above would say nothing.
TEST(Collective, AnotherOrderHasOtherBits) {
  EXPECT_NE(sumOf(1, 12, 1, 1000), sumOf(1, 12, 4, 1000)); // one digit: one after the other
}

TEST(Collective, FastIsNear) {
  const Floats one = sumOf(1, 8, 3, 1000), fast = sumOf(4, 2, 1, 1000, false);
  double difference = 0, size = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(one[i]) - static_cast<double>(fast[i])));
    size = std::max(size, std::abs(static_cast<double>(one[i])));
  }
  EXPECT_LT(difference, 1e-6 * size);
}

TEST(Collective, RoomHoldsWhatAnyNumberOfRanksSends) {
  for (const int64_t count : {int64_t{1}, int64_t{1023}, int64_t{5000}, reducedPiece, 10 * reducedPiece})
    for (const int64_t ranks : {2, 3, 64, 1000, mostRanks}) {
      const int64_t piece = std::min(count, reducedPiece);
      EXPECT_LE((ranks - 1) * ((piece + ranks - 1) / ranks), roomOfSum(1, count, true));
    }
}

// Each rank updates its share with states of that alone; once gathered, all have what one process makes of it.
TEST(Collective, SharesOfAnUpdateAreGathered) {
  for (const int64_t count : {1, 2, 10, 1000}) {
    const Numbers weights = randomNumbers(static_cast<size_t>(count), 1),
                  gradient = randomNumbers(static_cast<size_t>(count), 2);
    const auto update = [&](int rank, int ranks, Mail &mail) {
      Harness h;
      ThreadRanks others(rank, ranks, mail);
      h.session.ranks = &others;
      h.session.sharesStates = ranks > 1;
      StepState &state = h.session.state;
      state.rank = rank, state.ranks = ranks, state.learningRate = 0.1f, state.momentum = 0.9f;
      const Tensor w = h.tensor({count}), dw = h.tensor({count}), m = h.tensor({shareOf(count, 0, ranks).count});
      h.write(w, weights), h.write(dw, gradient);
      for (state.step = 1; state.step <= 3; ++state.step) {
        updateSgd(h.session.compute, {}, w, dw, none, m, "x");
        h.session.synchronize();
        allGather(h.session.communication, {w}, "x");
        h.session.synchronize();
      }
      return h.read(w);
    };
    Mail none, mail;
    const Numbers alone = update(0, 1, none);
    std::vector<Numbers> shared(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] { shared[static_cast<size_t>(rank)] = update(rank, 3, mail); });
    for (std::thread &thread : threads)
      thread.join();
    for (const Numbers &one : shared)
      EXPECT_EQ(one, alone) << count << " elements";
  }
}

/// Runs `body(rank, mail)` as so many ranks.
template <typename Body> void asRanks(int ranks, Body &&body) {
  Mail mail;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { body(rank, mail); });
  for (std::thread &thread : threads)
    thread.join();
}

// Parameters that are shares are whole after gathering, in every batch; updates change the share, shorter than its
// slot.
TEST(Collective, SharesOfAParameterAreGathered) {
  for (const auto &[ranks, count] : {std::pair(2, 10), {3, 10}, {5, 6}, {4, 9}}) {
    const Numbers weights = randomNumbers(static_cast<size_t>(count), 1),
                  gradient = randomNumbers(static_cast<size_t>(count), 2);
    const int64_t length = shareOf(count, 0, 2).count; // of slots for the share of one of two
    const auto put = [](Harness &h, const Tensor &to, const Numbers &all, Share share) {
      Numbers own(static_cast<size_t>(to.shape.elements()), 0);
      std::copy_n(all.begin() + share.first, share.count, own.begin());
      h.write(to, own);
    };
    Harness single;
    single.session.state.learningRate = 0.1f, single.session.state.momentum = 0.9f;
    const Tensor w = single.tensor({count}), dw = single.tensor({count}), m = single.tensor({count});
    single.write(w, weights), single.write(dw, gradient);
    const Numbers begin = single.read(w);
    updateSgd(single.session.compute, {}, w, dw, none, m, "x");
    single.session.synchronize();
    const Numbers alone = single.read(w);
    asRanks(ranks, [&, all = ranks, elements = count](int rank, Mail &mail) {
      Harness h;
      ThreadRanks others(rank, all, mail);
      h.session.ranks = &others;
      h.session.sharesStates = true;
      StepState &state = h.session.state;
      state.rank = rank, state.ranks = all, state.learningRate = 0.1f, state.momentum = 0.9f, state.batches = 2;
      const Share own = shareOf(elements, rank, all);
      const Tensor share = h.tensor({length}), part = h.tensor({length}), momentum = h.tensor({length}),
                   whole = h.tensor({elements});
      put(h, share, weights, own), put(h, part, gradient, own);
      for (state.batch = 0; state.batch < 2; ++state.batch) { // the first of which updates nothing
        gatherShares(h.session.communication, share, whole, "x");
        h.session.synchronize();
        EXPECT_EQ(h.read(whole), begin) << elements << " elements, batch " << state.batch;
        updateSgd(h.session.compute, {}, share, part, none, momentum, "x");
        h.session.synchronize();
      }
      gatherShares(h.session.communication, share, whole, "x");
      h.session.synchronize();
      EXPECT_EQ(h.read(whole), alone) << elements << " elements";
    });
  }
}

TEST(Collective, AShareOfAParameterHasRoom) {
  Mail mail;
  Harness h;
  EXPECT_THROW(gatherShares(h.session.communication, h.tensor({5}), h.tensor({10}), "x"), std::invalid_argument);
  ThreadRanks others(0, 2, mail);
  h.session.ranks = &others;
  h.session.state.ranks = 2;
  EXPECT_THROW(gatherShares(h.session.communication, h.tensor({4}), h.tensor({10}), "x"), std::invalid_argument);
}

// Of two tensors in one message, weighted, where their shares are as long, shorter than the first rank's, or nothing,
// and where the room holds a part of them at a time: what allReduce() leaves there.
TEST(Collective, EachRankGetsItsShareOfTheSum) {
  for (const auto &[ranks, first, second] :
       {std::tuple(2, 10, 1), {3, 1000, 7}, {5, 3, 4}, {3, 600000, 2}, {4, 8, 8}}) {
    const int64_t counts[] = {first, second};
    asRanks(ranks, [&, all = ranks](int rank, Mail &mail) {
      Harness h(size_t(16) << 20);
      ThreadRanks others(rank, all, mail);
      h.session.ranks = &others;
      StepState &state = h.session.state;
      state.rank = rank, state.ranks = all, state.step = 1, state.meanFactor = 0.37f;
      for (int unit = 0; unit < all; ++unit)
        h.session.unitWeights.push_back(weightOf(unit));
      std::vector<Tensor> xs, sums, shares;
      for (const int64_t count : counts) {
        xs.push_back(h.tensor({count})), sums.push_back(h.tensor({count}));
        shares.push_back(h.tensor({shareOf(count, 0, all).count}));
        h.session.write(xs.back(), partOf(rank, static_cast<size_t>(count)).data());
      }
      const Tensor room = h.tensor({roomOfSum(1, first + second, true)});
      for (size_t i = 0; i < 2; ++i)
        allReduce(h.session.communication, room, {xs[i]}, {sums[i]}, true, true, true, "x");
      const Tensor wide = h.tensor({roomOfShares(first + second, true)});
      reduceScatter(h.session.communication, wide, {xs[0], xs[1]}, {shares[0], shares[1]}, true, "x");
      h.session.synchronize();
      for (size_t i = 0; i < 2; ++i) {
        const Share share = shareOf(counts[i], rank, all);
        Floats whole(static_cast<size_t>(counts[i])), own(static_cast<size_t>(shares[i].shape.elements()));
        h.session.read(sums[i], whole.data());
        h.session.read(shares[i], own.data());
        for (int64_t at = 0; at < share.count; ++at)
          ASSERT_EQ(own[static_cast<size_t>(at)], whole[static_cast<size_t>(share.first + at)])
              << all << " ranks, element " << at << " of " << counts[i];
      }
    });
  }
}

// Parts end in the share of the next rank, of several, or nowhere; some ranks have no part, or no element.
TEST(Collective, NormOfSharesHasTheBitsOfTheWhole) {
  for (const int64_t count : {1, 2, 63, 64, 65, 1000, 4099})
    for (const int ranks : {2, 3, 7, 70}) {
      const Numbers gradient = randomNumbers(static_cast<size_t>(count), 3);
      Harness alone;
      const Tensor whole = alone.tensor({count}), expected = alone.tensor({}), others = alone.tensor({}),
                   partials = alone.tensor({2 * leastNormParts});
      alone.write(whole, gradient), alone.write(others, {0.75});
      alone.session.state.clipValue = 0.9f;
      GradientNorm("x", {count}).run(alone.session.compute, whole, others, expected, partials);
      asRanks(ranks, [&](int rank, Mail &mail) {
        Harness h(size_t(1) << 18);
        ThreadRanks team(rank, ranks, mail);
        h.session.ranks = &team;
        StepState &state = h.session.state;
        state.rank = rank, state.ranks = ranks, state.clipValue = 0.9f;
        const Share own = shareOf(count, rank, ranks);
        const Tensor share = h.tensor({shareOf(count, 0, ranks).count}), before = h.tensor({}), norm = h.tensor({}),
                     room = h.tensor({roomOfNorm(count)}), scratch = h.tensor({2 * leastNormParts});
        Numbers numbers(static_cast<size_t>(share.shape.elements()));
        std::copy_n(gradient.begin() + own.first, own.count, numbers.begin());
        h.write(share, numbers), h.write(before, {0.75});
        SharesNorm("x", count).run(h.session.communication, share, before, room, norm, scratch);
        EXPECT_EQ(h.read(norm), alone.read(expected)) << count << " elements, rank " << rank << " of " << ranks;
      });
    }
}

TEST(Collective, SharesAreChecked) {
  Harness h;
  h.session.state.ranks = 2;
  const Tensor x = h.tensor({8}), share = h.tensor({4}), small = h.tensor({3}),
               room = h.tensor({roomOfShares(8, false)});
  const auto scatter = [&](const Tensor &place, const Tensor &to, bool weighted) {
    reduceScatter(h.session.communication, place, {x}, {to}, weighted, "x");
  };
  EXPECT_THROW(scatter(room, small, false), std::invalid_argument);
  EXPECT_THROW(scatter(x, share, false), std::invalid_argument);
  EXPECT_THROW(scatter(room, share, true), std::invalid_argument);
  EXPECT_THROW(scatter(room, share, false), std::invalid_argument); // there is nobody else
  const auto norm = [&](const Tensor &own) {
    SharesNorm("x", 8).run(h.session.communication, own, none, room, h.tensor({}), h.tensor({2 * leastNormParts}));
  };
  EXPECT_THROW(norm(small), std::invalid_argument);
  EXPECT_THROW(norm(share), std::invalid_argument);
}

TEST(Collective, RoomIsChecked) {
  Harness h;
  const Tensor x = h.tensor({8}), room = h.tensor({8});
  EXPECT_THROW(allReduce(h.session.communication, room, {x}, {x}, true, false, true, "x"), std::invalid_argument);
}

// Shares of all units add up to what taking one batch after the other gives.
TEST(Collective, StatisticsTakeOneBatchAfterTheOther) {
  constexpr int units = 6, channels = 3;
  constexpr float momentum = 0.1f, epsilon = 1e-5f;
  Harness h;
  const Tensor mean = h.tensor({channels}), rstd = h.tensor({channels}), shares = h.tensor({2, channels}),
               sum = h.tensor({2, channels}), m = h.tensor({channels}), v = h.tensor({channels});
  h.write(m, {1, 2, 3}), h.write(v, {4, 5, 6});
  Numbers expectedMean{1, 2, 3}, expectedVar{4, 5, 6};
  StepState &state = h.session.state;
  state.ranks = 3, state.batches = 2, state.step = 1;
  Numbers total(2 * channels);
  const BatchStatistics statistics("x", channels, 8, momentum, epsilon);
  for (int unit = 0; unit < units; ++unit) {
    state.rank = unit / 2, state.batch = unit % 2;
    const Numbers means = randomNumbers(channels, static_cast<unsigned>(unit)), scales(channels, 0.5);
    h.write(mean, means), h.write(rstd, scales);
    statistics.run(h.session.compute, mean, rstd, shares);
    const Numbers share = h.read(shares);
    for (size_t i = 0; i < total.size(); ++i)
      total[i] += share[i];
    for (size_t c = 0; c < channels; ++c) {
      const double variance = (1 / 0.25 - static_cast<double>(epsilon)) * 8 / 7;
      expectedMean[c] += static_cast<double>(momentum) * (means[c] - expectedMean[c]);
      expectedVar[c] += static_cast<double>(momentum) * (variance - expectedVar[c]);
    }
  }
  h.write(sum, total);
  state.batch = 0; // not the last one
  applyStatistics(h.session.compute, sum, m, v, momentum, 1, "x");
  EXPECT_CLOSE(h.read(m), (Numbers{1, 2, 3}), 0);
  state.batch = 1;
  applyStatistics(h.session.compute, sum, m, v, momentum, 1, "x");
  EXPECT_CLOSE(h.read(m), expectedMean, 1e-6);
  EXPECT_CLOSE(h.read(v), expectedVar, 1e-6);
}

} // namespace
} // namespace sluice
