// SPDX-License-Identifier: Apache-2.0
// BatchNorm in a step of several ranks: its running statistics, and normalization over the batches of several of them.
// Vectors of channels are small, so that each rank sends them whole and all compute the same.
#include "runtime/Collective.h"

#include "runtime/kernels/SumMessages.h"

#include <algorithm>
#include <cmath>

namespace sluice {

BatchStatistics::BatchStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon,
                                 int64_t ranks)
    : Kernel(node), channels(channels), count(count), momentum(momentum), epsilon(epsilon), ranks(ranks) {}

void BatchStatistics::run(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &shares) const {
  const StepState &state = stream.session.state;
  const int64_t groups = state.units() / ranks, group = state.unit() % groups;
  const auto later = static_cast<double>(groups - 1 - group);
  const double share =
      state.unit() == group ? static_cast<double>(momentum) * std::pow(1 - static_cast<double>(momentum), later) : 0;
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
                     float momentum, int64_t ranks, Node node) {
  const StepState &state = stream.session.state;
  if (!state.lastBatch())
    return;
  const auto keep =
      static_cast<float>(std::pow(1 - static_cast<double>(momentum), static_cast<double>(state.units() / ranks)));
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

/// The ranks that normalize together, and where each of them has its two vectors, one behind the other.
struct SynchronizedNorm::Meeting {
  Ranks &ranks;
  NormRanks together;
  const float *one, *other; ///< this rank's own
  float *blocks;
  int64_t channels;
  Awaited awaited;

  float *block(int member) const { return blocks + 2 * channels * member; }

  /// All members' blocks, in their order.
  std::vector<const float *> gather() const {
    std::copy(one, one + channels, block(together.own));
    std::copy(other, other + channels, block(together.own) + channels);
    ranks.exchange(messagesOfBlocks(ranks, together, blocks, 2 * channels), awaited);
    std::vector<const float *> all;
    for (int member = 0; member < together.members; ++member)
      all.push_back(block(member));
    return all;
  }
};

SynchronizedNorm::SynchronizedNorm(Node node, int64_t channels, int64_t ranks, float epsilon)
    : Kernel(node), channels(channels), ranks(ranks), epsilon(epsilon) {
  workspace = static_cast<size_t>(synchronizedScratch(channels, ranks));
}

SynchronizedNorm::Meeting SynchronizedNorm::meet(Stream &stream, const Tensor &one, const Tensor &other,
                                                 const Tensor &scratch, const char *what) const {
  const NormRanks together = normRanks(node, stream.session.ranks, ranks);
  return {*stream.session.ranks,
          together,
          stream.data<float>(one),
          stream.data<float>(other),
          stream.data<float>(scratch),
          channels,
          {what, node.name, stream.session.state.step}};
}

void SynchronizedNorm::statistics(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &jointMean,
                                  const Tensor &jointRstd, const Tensor &scratch) const {
  const Meeting meeting = meet(stream, mean, rstd, scratch, "the statistics of other ranks' batches");
  float *toMean = stream.data<float>(jointMean), *toRstd = stream.data<float>(jointRstd);
  stream.launch(node.as(OpRole::Reduce), "synchronize_statistics", [this, meeting, toMean, toRstd] {
    const std::vector<const float *> all = meeting.gather();
    const auto members = static_cast<double>(ranks);
    for (int64_t i = 0; i < channels; ++i) {
      double sum = 0, variance = 0;
      for (const float *one : all)
        sum += static_cast<double>(one[i]);
      const double joint = sum / members;
      for (const float *one : all) {
        const double inverse = static_cast<double>(one[channels + i]), from = static_cast<double>(one[i]) - joint;
        variance += std::max(0.0, 1 / (inverse * inverse) - static_cast<double>(epsilon)) + from * from;
      }
      toMean[i] = static_cast<float>(joint);
      toRstd[i] = static_cast<float>(1 / std::sqrt(variance / members + static_cast<double>(epsilon)));
    }
  });
}

void SynchronizedNorm::sums(Stream &stream, const Tensor &dscale, const Tensor &dbias, const Tensor &jointDscale,
                            const Tensor &jointDbias, const Tensor &scratch) const {
  const Meeting meeting = meet(stream, dscale, dbias, scratch, "the sums of other ranks' gradients");
  float *toScale = stream.data<float>(jointDscale), *toBias = stream.data<float>(jointDbias);
  stream.launch(node.as(OpRole::Reduce), "synchronize_sums", [this, meeting, toScale, toBias] {
    std::vector<const float *> all = meeting.gather();
    sumInTree(all, nullptr, 1, toScale, channels);
    for (const float *&one : all)
      one += channels;
    sumInTree(all, nullptr, 1, toBias, channels);
  });
}

void unitWeight(Stream &stream, const Tensor &weight, Node node) {
  float *to = stream.data<float>(weight);
  const float value = stream.session.state.unitWeight;
  stream.launch(node.as(OpRole::Loss), "unit_weight", [to, value] { *to = value; });
}

} // namespace sluice
