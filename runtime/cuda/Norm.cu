// SPDX-License-Identifier: Apache-2.0
// Batch statistics in one pass: each block sums distances of its chunk from the chunk's first row, and their squares, so
// that large means cost no digits; chunks are merged in double by Chan's formula, in order.
#include "runtime/Fused.h"
#include "runtime/cuda/Device.h"

namespace sluice {

namespace {

/// What storePartials() wants to know.
struct StatisticsView {
  int64_t rows, rowExtent, tiles, chunks, rowsPerChunk;
  int width;
  bool vectorSum[2] = {true, true};
};

__global__ void partialStatistics(StatisticsView view, const float *x, double *partials) {
  __shared__ double shared[Cut::threads * Cut::vector];
  const int64_t tile = blockIdx.x % view.tiles, chunk = blockIdx.x / view.tiles;
  const int lanes = Cut::threads / view.width;
  const int64_t column = (tile * view.width + threadIdx.x % view.width) * Cut::vector;
  const int64_t begin = chunk * view.rowsPerChunk, end = min(view.rows, begin + view.rowsPerChunk);
  float origin[Cut::vector] = {}, run[2][Cut::vector] = {};
  double totals[2][Cut::vector] = {};
  for (int i = 0; i < Cut::vector; ++i)
    if (column + i < view.rowExtent)
      origin[i] = x[begin * view.rowExtent + column + i];
  int inRun = 0;
  auto flush = [&] {
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < Cut::vector; ++i)
        totals[s][i] += static_cast<double>(run[s][i]), run[s][i] = 0;
    inRun = 0;
  };
  for (int64_t row = begin + threadIdx.x / view.width; row < end; row += lanes) {
    for (int i = 0; i < Cut::vector; ++i)
      if (column + i < view.rowExtent) {
        const float distance = x[row * view.rowExtent + column + i] - origin[i];
        run[0][i] += distance;
        run[1][i] += distance * distance;
      }
    if (++inRun == 32)
      flush();
  }
  flush();
  detail::storePartials<2>(view, totals, partials, tile, chunk, shared);
}

/// Mean and sum of squared distances from it, of `count` values.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  __device__ void merge(const Moments &other) {
    if (other.count == 0)
      return;
    const double all = count + other.count, delta = other.mean - mean, weight = other.count / all;
    mean += delta * weight;
    squares += other.squares + delta * delta * weight * count;
    count = all;
  }
};

/// A block finishes 32 channels; 8 lanes merge chunks each, then the first merges the lanes.
__global__ void finishStatistics(StatisticsView view, const float *x, const double *partials, float epsilon,
                                 float *mean, float *rstd) {
  __shared__ double counts[8][32], means[8][32], squares[8][32];
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const bool present = channel < view.rowExtent;
  Moments all;
  for (int64_t chunk = threadIdx.y; present && chunk < view.chunks; chunk += 8) {
    const int64_t begin = chunk * view.rowsPerChunk, at = chunk * view.rowExtent + channel;
    Moments part;
    part.count = static_cast<double>(min(view.rows, begin + view.rowsPerChunk) - begin);
    const double sum = partials[at], origin = static_cast<double>(x[begin * view.rowExtent + channel]);
    part.mean = origin + sum / part.count;
    part.squares = fmax(0.0, partials[view.chunks * view.rowExtent + at] - sum * (sum / part.count));
    all.merge(part);
  }
  counts[threadIdx.y][threadIdx.x] = all.count;
  means[threadIdx.y][threadIdx.x] = all.mean;
  squares[threadIdx.y][threadIdx.x] = all.squares;
  __syncthreads();
  if (threadIdx.y > 0 || !present)
    return;
  for (int lane = 1; lane < 8; ++lane) {
    Moments other;
    other.count = counts[lane][threadIdx.x], other.mean = means[lane][threadIdx.x];
    other.squares = squares[lane][threadIdx.x];
    all.merge(other);
  }
  mean[channel] = static_cast<float>(all.mean);
  rstd[channel] = static_cast<float>(1 / sqrt(all.squares / all.count + static_cast<double>(epsilon)));
}

__global__ void updateStatistics(const float *mean, const float *rstd, float *runningMean, float *runningVar,
                                 int64_t channels, double correction, float momentum, float epsilon) {
  SLUICE_GRID_LOOP(i, channels) {
    const double rstd2 = static_cast<double>(rstd[i]) * static_cast<double>(rstd[i]);
    const double variance = fmax(0.0, 1 / rstd2 - static_cast<double>(epsilon)) * correction;
    runningMean[i] = (1 - momentum) * runningMean[i] + momentum * mean[i];
    runningVar[i] = (1 - momentum) * runningVar[i] + momentum * static_cast<float>(variance);
  }
}

} // namespace

BatchNormStatistics::BatchNormStatistics(const char *node, Shape x, float epsilon)
    : Kernel(node), x(x), epsilon(epsilon) {
  checkStatistics(node, x);
  workspace = static_cast<size_t>(cuda::statisticsScratch(x));
}

void BatchNormStatistics::run(Stream &stream, const Tensor &input, const Tensor &mean, const Tensor &rstd,
                              const Tensor &scratch) const {
  const Cut cut(x.elements() / x[1], x[1], Cut::sumTasks);
  const StatisticsView view{cut.rows, cut.columns, cut.tiles, cut.chunks, cut.rowsPerChunk, cut.width};
  const float *px = stream.data<float>(input);
  float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  double *partials = stream.data<double>(scratch);
  stream.launch(node, "batch_norm_statistics", [&] {
    partialStatistics<<<static_cast<unsigned>(cut.tasks()), Cut::threads, 0, native(stream)>>>(view, px, partials);
    finishStatistics<<<blocksFor(x[1], 32), dim3(32, 8), 0, native(stream)>>>(view, px, partials, epsilon, pMean,
                                                                             pRstd);
  });
}

UpdateStatistics::UpdateStatistics(const char *node, int64_t channels, int64_t count, float momentum, float epsilon)
    : Kernel(node), channels(channels), count(count), momentum(momentum), epsilon(epsilon) {}

void UpdateStatistics::run(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &runningMean,
                           const Tensor &runningVar) const {
  const float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  float *pRunningMean = stream.data<float>(runningMean), *pRunningVar = stream.data<float>(runningVar);
  const double correction = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
  stream.launch(node, "update_statistics", [&] {
    updateStatistics<<<blocksFor(channels, blockThreads), blockThreads, 0, native(stream)>>>(
        pMean, pRstd, pRunningMean, pRunningVar, channels, correction, momentum, epsilon);
  });
}

} // namespace sluice
