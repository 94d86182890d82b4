// SPDX-License-Identifier: Apache-2.0
// Sums over ranks.
#include "runtime/Collective.h"

#include "runtime/host/Parallel.h"
#include "runtime/kernels/SumMessages.h"

#include <algorithm>
#include <stdexcept>

namespace sluice {

namespace {

constexpr int64_t grain = 1 << 15;
constexpr int64_t block = 512; ///< elements of a sum that stay in the cache
constexpr int digits = 11;     ///< of a counter up to mostRanks
static_assert(1 << (digits - 1) >= mostRanks, "a digit for each power of two up to mostRanks");

/// One block of sumInTree().
void sumBlock(const std::vector<const float *> &leaves, const float *weights, float factor, float *to, int64_t begin,
              int64_t count) {
  float sums[digits][block], value[block];
  const auto join = [&](int digit) {
    for (int64_t i = 0; i < count; ++i)
      value[i] = sums[digit][i] + value[i];
  };
  const auto last = static_cast<unsigned>(leaves.size() - 1);
  for (unsigned leaf = 0; leaf <= last; ++leaf) {
    const float weight = weights ? weights[leaf] : 1;
    for (int64_t i = 0; i < count; ++i)
      value[i] = leaves[leaf][begin + i] * weight;
    int digit = 0;
    for (; leaf >> digit & 1; ++digit)
      join(digit);
    if (leaf < last)
      std::copy(value, value + count, sums[digit]);
    else
      for (; last >> digit; ++digit)
        if (last >> digit & 1)
          join(digit);
  }
  for (int64_t i = 0; i < count; ++i)
    to[begin + i] = value[i] * factor;
}

/// Sums of all ranks.
struct Reduction {
  Ranks &ranks;
  std::vector<float> weights;
  float factor;
  Awaited awaited;

  /// One tensor piece by piece, in its own place; `room` for what is received.
  void run(const float *x, float *y, float *received, int64_t room, int64_t elements) const {
    for (int64_t begin = 0; begin < elements; begin += reducedPiece) {
      const RankSum sum =
          sumOfRanks(ranks, x + begin, y + begin, received, room, std::min(reducedPiece, elements - begin));
      std::vector<const float *> leaves;
      for (int rank = 0; rank < ranks.size(); ++rank)
        leaves.push_back(sum.leaves.of(rank));
      ranks.exchange(sum.before, awaited);
      sumInTree(leaves, weights.empty() ? nullptr : weights.data(), factor, sum.sum, sum.leaves.count);
      ranks.exchange(sum.after, awaited);
    }
  }
};

/// y = x * factor.
void scale(const float *x, float *y, int64_t count, float factor) {
  parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = x[i] * factor;
  });
}

/// The tensors of one sum.
struct Summed {
  std::vector<const float *> xs;
  std::vector<float *> ys;
  std::vector<int64_t> counts;
  int64_t elements = 0;
};

} // namespace

void sumInTree(const std::vector<const float *> &leaves, const float *weights, float factor, float *to, int64_t count) {
  parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += block)
      sumBlock(leaves, weights, factor, to, at, std::min(block, end - at));
  });
}

/// By all ranks together: of several tensors in the front of the room, from where each takes its own.
static void sumOverRanks(const Summed &all, float *room, bool ordered, float own, const Reduction &reduction) {
  const bool packs = all.xs.size() > 1;
  float *packed = packs ? room : all.ys[0];
  const float *from = packs ? room : all.xs[0];
  for (size_t i = 0, at = 0; packs && i < all.xs.size(); at += static_cast<size_t>(all.counts[i++]))
    std::copy(all.xs[i], all.xs[i] + all.counts[i], room + at);
  if (ordered) {
    const int64_t taken = packs ? all.elements : 0;
    reduction.run(from, packed, room + taken, roomOfSum(1, all.elements, true), all.elements);
  } else {
    scale(from, packed, all.elements, own * reduction.factor);
    reduction.ranks.add(packed, static_cast<size_t>(all.elements), reduction.awaited);
  }
  for (size_t i = 0, at = 0; packs && i < all.xs.size(); at += static_cast<size_t>(all.counts[i++]))
    std::copy(room + at, room + at + all.counts[i], all.ys[i]);
}

void allReduce(Stream &stream, const Tensor &room, TensorList xs, TensorList ys, bool mean, bool weighted, bool ordered,
               Node node) {
  Summed all;
  all.elements = checkedElements(node, room, xs, ys, ordered);
  for (const Tensor &x : xs) {
    all.xs.push_back(stream.data<float>(x));
    all.counts.push_back(x.shape.elements());
  }
  for (const Tensor &y : ys)
    all.ys.push_back(stream.data<float>(y));
  const Session &session = stream.session;
  if (!session.state.lastBatch())
    return;
  const float factor = mean ? session.state.meanFactor : 1;
  std::vector<float> weights = weighted ? session.unitWeights : std::vector<float>();
  Ranks *ranks = session.ranks;
  const float own = weights.empty() ? 1 : weights[static_cast<size_t>(ranks ? ranks->rank() : 0)];
  const Awaited awaited = {"the sum over all ranks", node.name, session.state.step};
  float *place = stream.data<float>(room);
  stream.launch(node.as(OpRole::Reduce), "all_reduce",
                [=, isOrdered = ordered, all = std::move(all), weights = std::move(weights)] {
                  if (ranks)
                    return sumOverRanks(all, place, isOrdered, own, Reduction{*ranks, weights, factor, awaited});
                  for (size_t i = 0; i < all.xs.size(); ++i)
                    sumInTree({all.xs[i]}, weights.empty() ? nullptr : weights.data(), factor, all.ys[i],
                              all.counts[i]);
                });
}

void reduceScatter(Stream &stream, const Tensor &room, TensorList xs, TensorList ys, bool weighted, Node node) {
  const Session &session = stream.session;
  checkScattered(node, session, room, xs, ys, weighted);
  std::vector<ScatteredSum> all = scatteredSums(stream, xs, ys);
  const FloatRange place{stream.data<float>(room), room.shape.elements()};
  if (!session.state.lastBatch())
    return;
  Ranks *ranks = session.ranks;
  const Awaited awaited = {"the sum over all ranks", node.name, session.state.step};
  stream.launch(node.as(OpRole::Reduce), "reduce_scatter",
                [ranks, all = std::move(all), place, awaited, factor = session.state.meanFactor,
                 weights = weighted ? session.unitWeights : std::vector<float>()] {
                  std::vector<const float *> leaves(static_cast<size_t>(ranks->size()));
                  for (const ScatterRound &round : roundsOfShares(*ranks, all, place, /*copies=*/false)) {
                    ranks->exchange(round.messages, awaited);
                    for (const ScatterRound::Sum &sum : round.sums) {
                      for (int rank = 0; rank < ranks->size(); ++rank)
                        leaves[static_cast<size_t>(rank)] = sum.leaves.of(rank);
                      sumInTree(leaves, weights.empty() ? nullptr : weights.data(), factor, sum.to, sum.leaves.count);
                    }
                  }
                });
}

void allGather(Stream &stream, TensorList parameters, Node node) {
  const Session &session = stream.session;
  Ranks *ranks = session.ranks;
  if (!session.state.lastBatch() || !ranks)
    return;
  std::vector<FloatRange> all;
  for (const Tensor &parameter : parameters)
    all.push_back({stream.data<float>(parameter), parameter.shape.elements()});
  const Awaited awaited = {"the parameters of all ranks", node.name, session.state.step};
  stream.launch(node.as(OpRole::Gather), "all_gather",
                [ranks, messages = messagesOfShares(*ranks, all), awaited] { ranks->exchange(messages, awaited); });
}

void gatherShares(Stream &stream, const Tensor &share, const Tensor &whole, Node node) {
  const Session &session = stream.session;
  const GatheredShares all = gatheredShares(node, session, {stream.data<float>(share), share.shape.elements()},
                                            {stream.data<float>(whole), whole.shape.elements()});
  const Awaited awaited = {"the parameter of all ranks", node.name, session.state.step};
  stream.launch(node.as(OpRole::Gather), "gather_shares", [ranks = session.ranks, all, awaited] {
    std::copy_n(all.own.from, all.own.count, all.own.to);
    ranks->exchange(all.messages, awaited);
  });
}

void sumBatches(Stream &stream, const Tensor &x, TensorList sums, bool weighted, Node node) {
  const StepState &state = stream.session.state;
  std::vector<float *> digit;
  for (const Tensor &sum : sums)
    digit.push_back(stream.data<float>(sum));
  const float *px = stream.data<float>(x), weight = weighted ? state.unitWeight : 1;
  const int64_t count = x.shape.elements();
  // Which sums are added, the smallest first, and which one takes what comes of it.
  const size_t top = digit.size() - 1;
  const auto isSet = [&](size_t i) { return (state.batch >> i & 1) != 0; };
  std::vector<const float *> added;
  size_t into = 0;
  for (; into < top && (state.lastBatch() || isSet(into)); ++into)
    if (isSet(into))
      added.push_back(digit[into]);
  if (into == top && state.batch >> top > 0)
    added.push_back(digit[top]);
  stream.launch(node.as(OpRole::Update), "sum_batches", [px, count, weight, added, to = digit[into]] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += block) {
        const int64_t stop = std::min(end, at + block);
        float value[block];
        for (int64_t i = at; i < stop; ++i)
          value[i - at] = px[i] * weight;
        for (const float *sum : added)
          for (int64_t i = at; i < stop; ++i)
            value[i - at] = sum[i] + value[i - at];
        std::copy(value, value + (stop - at), to + at);
      }
    });
  });
}

} // namespace sluice
