// SPDX-License-Identifier: Apache-2.0
// BatchNorm in a step of several ranks, as host/SynchronizedNorm.cpp: a thread for each channel.
#include "runtime/Collective.h"

#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/kernels/SumMessages.h"

namespace sluice {

namespace {

/// What a batch adds to running statistics.
struct BatchShare {
  int64_t channels, ranks;
  double correction; ///< of the biased variance
  float momentum, epsilon;
};

__global__ void batchStatisticsKernel(BatchShare b, const float *mean, const float *rstd, float *shares,
                                      const DeviceState *state) {
  const int64_t groups = state->units / b.ranks, group = state->unit % groups;
  const auto momentum = static_cast<double>(b.momentum);
  const double share = state->unit == group ? momentum * pow(1 - momentum, static_cast<double>(groups - 1 - group)) : 0;
  SLUICE_GRID_LOOP(i, b.channels) {
    const double rstd2 = static_cast<double>(rstd[i]) * static_cast<double>(rstd[i]);
    const double biased = 1 / rstd2 - static_cast<double>(b.epsilon);
    shares[i] = static_cast<float>(share * static_cast<double>(mean[i]));
    shares[b.channels + i] = static_cast<float>(share * ((biased > 0 ? biased : 0) * b.correction));
  }
}

__global__ void applyStatisticsKernel(const float *sum, float *runningMean, float *runningVar, int64_t channels,
                                      float momentum, int64_t ranks, const DeviceState *state) {
  if (!state->update.lastBatch)
    return;
  const auto keep =
      static_cast<float>(pow(1 - static_cast<double>(momentum), static_cast<double>(state->units / ranks)));
  SLUICE_GRID_LOOP(i, channels) {
    runningMean[i] = keep * runningMean[i] + sum[i];
    runningVar[i] = keep * runningVar[i] + sum[channels + i];
  }
}

/// Two vectors of each of `members` ranks, one behind the other.
struct Blocks {
  const float *first;
  int64_t channels;
  int members;
};

__global__ void jointStatistics(Blocks blocks, float *mean, float *rstd, float epsilon) {
  const auto members = static_cast<double>(blocks.members);
  SLUICE_GRID_LOOP(i, blocks.channels) {
    double sum = 0, variance = 0;
    for (int member = 0; member < blocks.members; ++member)
      sum += static_cast<double>(blocks.first[2 * member * blocks.channels + i]);
    const double joint = sum / members;
    for (int member = 0; member < blocks.members; ++member) {
      const float *one = blocks.first + 2 * member * blocks.channels;
      const double inverse = static_cast<double>(one[blocks.channels + i]), from = static_cast<double>(one[i]) - joint;
      const double biased = 1 / (inverse * inverse) - static_cast<double>(epsilon);
      variance += (biased > 0 ? biased : 0) + from * from;
    }
    mean[i] = static_cast<float>(joint);
    rstd[i] = static_cast<float>(1 / sqrt(variance / members + static_cast<double>(epsilon)));
  }
}

__global__ void jointSums(Blocks blocks, float *dscale, float *dbias) {
  SLUICE_GRID_LOOP(i, 2 * blocks.channels)
  (i < blocks.channels ? dscale[i] : dbias[i - blocks.channels]) =
      treeSum(blocks.members, [&](int member) { return blocks.first[2 * member * blocks.channels + i]; });
}

unsigned blocksOf(int64_t elements) { return blocksFor(elements, blockThreads); }

__global__ void storeUnitWeight(float *weight, const DeviceState *state) { *weight = state->unitWeight; }

} // namespace

BatchStatistics::BatchStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon,
                                 int64_t ranks)
    : Kernel(node), channels(channels), count(count), momentum(momentum), epsilon(epsilon), ranks(ranks) {}

void BatchStatistics::run(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &shares) const {
  const float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  float *to = stream.data<float>(shares);
  const double correction = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
  const BatchShare share{channels, ranks, correction, momentum, epsilon};
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Update), "batch_statistics", [&] {
    batchStatisticsKernel<<<blocksOf(channels), blockThreads, 0, native(stream)>>>(share, pMean, pRstd, to, state);
  });
}

void applyStatistics(Stream &stream, const Tensor &sum, const Tensor &runningMean, const Tensor &runningVar,
                     float momentum, int64_t ranks, Node node) {
  const float *shares = stream.data<float>(sum);
  float *pMean = stream.data<float>(runningMean), *pVar = stream.data<float>(runningVar);
  const int64_t channels = runningMean.shape.elements();
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Update), "apply_statistics", [&] {
    applyStatisticsKernel<<<blocksOf(channels), blockThreads, 0, native(stream)>>>(shares, pMean, pVar, channels,
                                                                                   momentum, ranks, state);
  });
}

SynchronizedNorm::SynchronizedNorm(Node node, int64_t channels, int64_t ranks, float epsilon)
    : Kernel(node), channels(channels), ranks(ranks), epsilon(epsilon) {
  workspace = static_cast<size_t>(synchronizedScratch(channels, ranks));
}

/// Where the ranks that normalize together have their two vectors, one behind the other.
struct SynchronizedNorm::Meeting {
  Stream &stream;
  NormRanks together;
  const float *one, *other; ///< this rank's own
  float *blocks;
  int64_t channels;
  Awaited awaited;

  Blocks gather() const {
    float *own = blocks + 2 * channels * together.own;
    const size_t bytes = static_cast<size_t>(channels) * sizeof(float);
    for (const auto &[from, to] : {std::pair(one, own), {other, own + channels}})
      checkCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native(stream)), "cannot copy statistics");
    Ranks &ranks = *stream.session.ranks;
    ranks.onDevices()->exchange(messagesOfBlocks(ranks, together, blocks, 2 * channels), stream.native(), awaited);
    return {blocks, channels, together.members};
  }
};

SynchronizedNorm::Meeting SynchronizedNorm::meet(Stream &stream, const Tensor &one, const Tensor &other,
                                                 const Tensor &scratch, const char *what) const {
  return {stream,
          normRanks(node, stream.session.ranks, ranks),
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
  stream.launch(node.as(OpRole::Reduce), "synchronize_statistics", [&] {
    const Blocks all = meeting.gather();
    jointStatistics<<<blocksOf(channels), blockThreads, 0, native(stream)>>>(all, toMean, toRstd, epsilon);
  });
}

void SynchronizedNorm::sums(Stream &stream, const Tensor &dscale, const Tensor &dbias, const Tensor &jointDscale,
                            const Tensor &jointDbias, const Tensor &scratch) const {
  const Meeting meeting = meet(stream, dscale, dbias, scratch, "the sums of other ranks' gradients");
  float *toScale = stream.data<float>(jointDscale), *toBias = stream.data<float>(jointDbias);
  stream.launch(node.as(OpRole::Reduce), "synchronize_sums", [&] {
    const Blocks all = meeting.gather();
    jointSums<<<blocksOf(2 * channels), blockThreads, 0, native(stream)>>>(all, toScale, toBias);
  });
}

void unitWeight(Stream &stream, const Tensor &weight, Node node) {
  float *to = stream.data<float>(weight);
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Loss), "unit_weight", [&] { storeUnitWeight<<<1, 1, 0, native(stream)>>>(to, state); });
}

} // namespace sluice
