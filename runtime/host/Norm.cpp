// SPDX-License-Identifier: Apache-2.0
// Batch statistics. Each block of rows is read twice while it lies in the first-level cache: its own mean, then the
// squared distances from that mean. Blocks and chunks are merged in double by Chan's formula, so large means cost no
// digits of the variance.
#include "runtime/Columns.h"
#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Prefetch.h"
#include "runtime/host/Vectors.h"

#include <cmath>
#include <string>

namespace sluice {

namespace {

/// Merges a block of `count` rows (float mean, sum of squared distances) into `before` rows.
void mergeBlock(double *__restrict mean, double *__restrict m2, const float *__restrict blockMean,
                const float *__restrict blockM2, int64_t before, int64_t count, int64_t width) {
  const double weight = static_cast<double>(count) / static_cast<double>(before + count);
  const double cross = weight * static_cast<double>(before);
  for (int64_t i = 0; i < width; ++i) {
    const double delta = static_cast<double>(blockMean[i]) - mean[i];
    mean[i] += delta * weight;
    m2[i] += static_cast<double>(blockM2[i]) + delta * delta * cross;
  }
}

/// Where a block of rows has its columns from `x` on, and what of the next block to ask for with each row.
template <typename T> struct Block {
  const T *x;
  int64_t rows, stride;
  const T *next;
  int64_t nextStride;
};

/// Of so many vectors of columns, whose sums stay in registers. Asks for as much of the block that comes next.
template <int Vectors, typename T> void vectorStatistics(const Block<T> &b, float *mean, float *m2) {
  constexpr int64_t bytes = Vectors * tile::lanes * static_cast<int64_t>(sizeof(T));
  tile::Vector means[Vectors] = {}, squares[Vectors] = {};
  for (int64_t row = 0; row < b.rows; ++row) {
    expect(b.next + row * b.nextStride, bytes);
    for (int v = 0; v < Vectors; ++v)
      means[v] += loaded(b.x + row * b.stride + v * tile::lanes);
  }
  for (tile::Vector &of : means)
    of /= static_cast<float>(b.rows);
  for (int64_t row = 0; row < b.rows; ++row)
    for (int v = 0; v < Vectors; ++v) {
      const tile::Vector distance = loaded(b.x + row * b.stride + v * tile::lanes) - means[v];
      squares[v] += distance * distance;
    }
  for (int v = 0; v < Vectors; ++v) {
    keep(means[v], mean + v * tile::lanes);
    keep(squares[v], m2 + v * tile::lanes);
  }
}

template <typename T>
void blockStatistics(const T *x, int64_t rows, int64_t stride, int64_t width, float *__restrict mean,
                     float *__restrict m2) {
  int64_t i = 0;
  // Whole rows are asked for in the order of their bytes: processors follow that, but not columns of rows.
  const auto from = [&](int64_t columns) {
    const T *next = x + rows * stride;
    return width == stride ? Block<T>{x + i, rows, stride, next + rows * i, columns}
                           : Block<T>{x + i, rows, stride, next + i, stride};
  };
  for (constexpr int64_t four = 4 * tile::lanes; i + four <= width; i += four)
    vectorStatistics<4>(from(four), mean + i, m2 + i);
  for (; i + tile::lanes <= width; i += tile::lanes)
    vectorStatistics<1>(from(tile::lanes), mean + i, m2 + i);
  for (; i < width; ++i) {
    float sum = 0, squares = 0;
    for (int64_t row = 0; row < rows; ++row)
      sum += widened(x[row * stride + i]);
    sum /= static_cast<float>(rows);
    for (int64_t row = 0; row < rows; ++row) {
      const float distance = widened(x[row * stride + i]) - sum;
      squares += distance * distance;
    }
    mean[i] = sum, m2[i] = squares;
  }
}

/// x as wide rows of `group` pixels each, and a few pixels that fill no wide row.
struct Pixels {
  int64_t channels, group, rest;
  Columns columns;

  explicit Pixels(const Shape &x) : channels(x[1]) {
    const int64_t pixels = x.elements() / std::max<int64_t>(1, channels);
    group = Columns::group(pixels, channels);
    columns = Columns(pixels / group, group * channels);
    rest = pixels % group;
  }
  /// Doubles of scratch: mean and squared distances per chunk and column.
  int64_t partials() const { return 2 * columns.chunks * columns.columns; }
  int64_t count() const { return columns.rows * group + rest; }
};

template <typename T> void partialStatistics(const T *x, const Columns &columns, int64_t index, double *partials) {
  const Columns::Task task = columns.task(index);
  double *mean = partials + 2 * task.chunk * columns.columns + task.columnBegin, *m2 = mean + columns.columns;
  std::fill_n(mean, task.width, 0.0);
  std::fill_n(m2, task.width, 0.0);
  float blockMean[Columns::tileWidth], blockM2[Columns::tileWidth];
  for (int64_t row = task.rowBegin; row < task.rowEnd; row += Columns::block) {
    const int64_t rows = std::min(Columns::block, task.rowEnd - row);
    blockStatistics(x + row * columns.columns + task.columnBegin, rows, columns.columns, task.width, blockMean,
                    blockM2);
    mergeBlock(mean, m2, blockMean, blockM2, row - task.rowBegin, rows, task.width);
  }
}

/// Merges statistics of `count` rows into those of `before` rows.
void merge(double *mean, double *m2, const double *otherMean, const double *otherM2, int64_t before, int64_t count,
           int64_t width) {
  const double weight = static_cast<double>(count) / static_cast<double>(before + count);
  for (int64_t i = 0; i < width; ++i) {
    const double delta = otherMean[i] - mean[i];
    mean[i] += delta * weight;
    m2[i] += otherM2[i] + delta * delta * weight * static_cast<double>(before);
  }
}

/// Merges chunks, then the pixels of wide rows, then the remaining pixels, each in order, into the first `channels`
/// columns.
template <typename T> void mergeAll(const Pixels &pixels, const T *x, double *partials) {
  const Columns &columns = pixels.columns;
  double *mean = partials, *m2 = partials + columns.columns;
  for (int64_t chunk = 1; chunk < columns.chunks; ++chunk) {
    const double *other = partials + 2 * chunk * columns.columns;
    const int64_t before = chunk * columns.rowsPerChunk,
                  count = std::min(columns.rows, before + columns.rowsPerChunk) - before;
    merge(mean, m2, other, other + columns.columns, before, count, columns.columns);
  }
  for (int64_t i = 1; i < pixels.group; ++i)
    merge(mean, m2, mean + i * pixels.channels, m2 + i * pixels.channels, i * columns.rows, columns.rows,
          pixels.channels);
  if (pixels.rest) { // only where channels are fewer than a tile
    float restMean[Columns::groupWidth], restM2[Columns::groupWidth];
    blockStatistics(x + columns.rows * columns.columns, pixels.rest, pixels.channels, pixels.channels, restMean,
                    restM2);
    mergeBlock(mean, m2, restMean, restM2, columns.rows * pixels.group, pixels.rest, pixels.channels);
  }
}

} // namespace

BatchNormStatistics::BatchNormStatistics(Node node, Shape x, float epsilon) : Kernel(node), x(x), epsilon(epsilon) {
  checkStatistics(node, x);
  workspace = sizeof(double) * static_cast<size_t>(Pixels(x).partials());
}

void BatchNormStatistics::run(Stream &stream, const Tensor &input, const Tensor &mean, const Tensor &rstd,
                              const Tensor &scratch) const {
  float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  double *partials = stream.data<double>(scratch);
  forStored(node, input.type, [&](auto *type) {
    const auto *px = stream.data<Stored<decltype(type)>>(input);
    stream.launch(node, "batch_norm_statistics", [this, px, pMean, pRstd, partials] {
      const Pixels pixels(x);
      const int64_t tasks = pixels.columns.tasks();
      parallelFor(tasks, [&](int64_t task) { partialStatistics(px, pixels.columns, tasks - 1 - task, partials); });
      mergeAll(pixels, px, partials);
      for (int64_t i = 0; i < pixels.channels; ++i) {
        const double variance = partials[pixels.columns.columns + i] / static_cast<double>(pixels.count());
        pMean[i] = static_cast<float>(partials[i]);
        pRstd[i] = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon)));
      }
    });
  });
}

UpdateStatistics::UpdateStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon)
    : Kernel(node), channels(channels), count(count), momentum(momentum), epsilon(epsilon) {}

void UpdateStatistics::run(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &runningMean,
                           const Tensor &runningVar) const {
  const float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  float *pRunningMean = stream.data<float>(runningMean), *pRunningVar = stream.data<float>(runningVar);
  stream.launch(node.as(OpRole::Update), "update_statistics", [this, pMean, pRstd, pRunningMean, pRunningVar] {
    const double correction = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
    for (int64_t i = 0; i < channels; ++i) {
      const double rstd2 = static_cast<double>(pRstd[i]) * static_cast<double>(pRstd[i]);
      const double variance = std::max(0.0, 1 / rstd2 - static_cast<double>(epsilon)) * correction;
      pRunningMean[i] = (1 - momentum) * pRunningMean[i] + momentum * pMean[i];
      pRunningVar[i] = (1 - momentum) * pRunningVar[i] + momentum * static_cast<float>(variance);
    }
  });
}

} // namespace sluice
