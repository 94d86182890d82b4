// SPDX-License-Identifier: Apache-2.0
// Sums over ranks. Each rank adds up its share of the elements: it gets that share from all others and sends them the
// sum of it, twice the tensor's bytes to and fro for any number of ranks. A tensor so small that all of all ranks fit
// the scratch is sent whole, once, and added up by each.
#include "runtime/Collective.h"

#include "runtime/Ranks.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <cmath>
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

/// The sum of one tensor, piece by piece.
struct Reduction {
  Ranks &ranks;
  const float *x;
  float *y, *scratch;
  int64_t room; ///< floats of scratch
  std::vector<float> weights;
  float factor;
  Awaited awaited;

  const float *weightsOrNull() const { return weights.empty() ? nullptr : weights.data(); }

  /// Everybody gets all of everybody.
  void whole(int64_t begin, int64_t count) const {
    std::vector<const float *> leaves;
    std::vector<Message> messages;
    float *received = scratch;
    for (int peer = 0; peer < ranks.size(); ++peer) {
      if (peer == ranks.rank()) {
        leaves.push_back(x + begin);
        continue;
      }
      messages.push_back({peer, const_cast<float *>(x + begin), static_cast<size_t>(count) * sizeof(float), true});
      messages.push_back({peer, received, static_cast<size_t>(count) * sizeof(float), false});
      leaves.push_back(received);
      received += count;
    }
    ranks.exchange(messages, awaited);
    sumInTree(leaves, weightsOrNull(), factor, y + begin, count);
  }

  /// Everybody adds up a share.
  void shared(int64_t begin, int64_t count) const {
    const int64_t share = (count + ranks.size() - 1) / ranks.size();
    const auto first = [&](int rank) { return begin + std::min(count, rank * share); };
    const auto bytes = [&](int rank) { return static_cast<size_t>(first(rank + 1) - first(rank)) * sizeof(float); };
    const int own = ranks.rank();
    std::vector<const float *> leaves;
    std::vector<Message> scatter, collect;
    float *received = scratch;
    for (int peer = 0; peer < ranks.size(); ++peer) {
      if (peer == own) {
        leaves.push_back(x + first(own));
        continue;
      }
      scatter.push_back({peer, const_cast<float *>(x + first(peer)), bytes(peer), true});
      scatter.push_back({peer, received, bytes(own), false});
      collect.push_back({peer, y + first(own), bytes(own), true});
      collect.push_back({peer, y + first(peer), bytes(peer), false});
      leaves.push_back(received);
      received += bytes(own) / sizeof(float);
    }
    ranks.exchange(scatter, awaited);
    sumInTree(leaves, weightsOrNull(), factor, y + first(own), static_cast<int64_t>(bytes(own) / sizeof(float)));
    ranks.exchange(collect, awaited);
  }

  void run(int64_t elements) const {
    for (int64_t begin = 0; begin < elements; begin += AllReduce::piece) {
      const int64_t count = std::min(AllReduce::piece, elements - begin);
      if ((ranks.size() - 1) * count <= room)
        whole(begin, count);
      else
        shared(begin, count);
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

} // namespace

void sumInTree(const std::vector<const float *> &leaves, const float *weights, float factor, float *to, int64_t count) {
  parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += block)
      sumBlock(leaves, weights, factor, to, at, std::min(block, end - at));
  });
}

// Of a share that is rounded up, all others' pieces take at most mostRanks elements more than the piece.
int64_t AllReduce::scratchElements(int64_t elements) { return std::min(elements, piece) + mostRanks; }

AllReduce::AllReduce(Node node, Shape x, bool mean, bool weighted, bool ordered)
    : Kernel(node), x(x), mean(mean), weighted(weighted), ordered(ordered) {
  if (ordered)
    workspace = static_cast<size_t>(scratchElements(x.elements())) * sizeof(float);
}

void AllReduce::run(Stream &stream, const Tensor &from, const Tensor &to, const Tensor &scratch) const {
  const Session &session = stream.session;
  if (!session.state.lastBatch())
    return;
  const float factor = mean ? session.state.meanFactor : 1, *px = stream.data<float>(from);
  float *py = stream.data<float>(to), *received = ordered ? stream.data<float>(scratch) : nullptr;
  const int64_t count = x.elements();
  std::vector<float> weights = weighted ? session.unitWeights : std::vector<float>();
  const Awaited awaited = {"the sum over all ranks", node.name, session.state.step};
  Ranks *ranks = session.ranks;
  const float own = weights.empty() ? 1 : weights[static_cast<size_t>(ranks ? ranks->rank() : 0)];
  stream.launch(node.as(OpRole::Reduce), "all_reduce",
                [=, isOrdered = ordered, weights = std::move(weights), room = scratchElements(count)] {
                  if (ranks && isOrdered)
                    return Reduction{*ranks, px, py, received, room, weights, factor, awaited}.run(count);
                  if (!ranks)
                    return sumInTree({px}, weights.empty() ? nullptr : weights.data(), factor, py, count);
                  scale(px, py, count, own * factor);
                  ranks->add(py, static_cast<size_t>(count), awaited);
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

BatchStatistics::BatchStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon)
    : Kernel(node), channels(channels), count(count), momentum(momentum), epsilon(epsilon) {}

void BatchStatistics::run(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &shares) const {
  const StepState &state = stream.session.state;
  const auto later = static_cast<double>(state.units() - 1 - state.unit());
  const double share = static_cast<double>(momentum) * std::pow(1 - static_cast<double>(momentum), later);
  const float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  float *to = stream.data<float>(shares);
  stream.launch(node.as(OpRole::Update), "batch_statistics", [this, pMean, pRstd, to, share] {
    const double correction = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
    for (int64_t i = 0; i < channels; ++i) {
      const double rstd2 = static_cast<double>(pRstd[i]) * static_cast<double>(pRstd[i]);
      const double variance = std::max(0.0, 1 / rstd2 - static_cast<double>(epsilon)) * correction;
      to[i] = static_cast<float>(share * static_cast<double>(pMean[i]));
      to[channels + i] = static_cast<float>(share * variance);
    }
  });
}

void applyStatistics(Stream &stream, const Tensor &sum, const Tensor &runningMean, const Tensor &runningVar,
                     float momentum, Node node) {
  const StepState &state = stream.session.state;
  if (!state.lastBatch())
    return;
  const auto keep = static_cast<float>(std::pow(1 - static_cast<double>(momentum), static_cast<double>(state.units())));
  const float *shares = stream.data<float>(sum);
  float *pMean = stream.data<float>(runningMean), *pVar = stream.data<float>(runningVar);
  const int64_t channels = runningMean.shape.elements();
  stream.launch(node.as(OpRole::Update), "apply_statistics", [=] {
    for (int64_t i = 0; i < channels; ++i) {
      pMean[i] = keep * pMean[i] + shares[i];
      pVar[i] = keep * pVar[i] + shares[channels + i];
    }
  });
}

} // namespace sluice
