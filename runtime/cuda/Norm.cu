// SPDX-License-Identifier: Apache-2.0
// Batch statistics in one pass and one launch: each block sums distances of its chunk from the chunk's first row, and
// their squares, so that large means cost no digits; chunks are merged in double by Chan's formula, in order
// (Finish.h).
#include "runtime/Fused.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Gather.h"
#include "runtime/cuda/RowQueue.h"

namespace sluice {

namespace {

/// What storePartials() wants to know.
struct StatisticsView {
  int64_t rows, rowExtent, tiles, chunks, rowsPerChunk;
  int width;
  bool vectorSum[2] = {true, true};
};

template <typename T, int Group>
__device__ inline void loadRow(float (&to)[detail::columnsOf<T>], const T *x, const StatisticsView &view, int64_t row,
                               int64_t column) {
  loadColumns<Group>(to, x + row * view.rowExtent + column,
                     static_cast<int>(min(view.rowExtent - column, static_cast<int64_t>(detail::columnsOf<T>))));
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

/// Partials of blocks are sums of distances from the chunk's first row, and of their squares; merged ones are means and
/// squares of distances from them.
template <typename T>
__device__ Moments momentsOf(const StatisticsView &view, const T *x, const double *partials, int64_t chunk,
                             int64_t chunks, int64_t channel, bool own) {
  const int64_t begin = chunk * view.rowsPerChunk, at = chunk * view.rowExtent + channel;
  const double first = __ldcg(partials + at), second = __ldcg(partials + view.chunks * view.rowExtent + at);
  Moments part;
  part.count = static_cast<double>(min(view.rows, begin + chunks * view.rowsPerChunk) - begin);
  if (!own) {
    part.mean = first, part.squares = second;
    return part;
  }
  part.mean = static_cast<double>(widened(x[begin * view.rowExtent + channel])) + first / part.count;
  part.squares = fmax(0.0, second - first * (first / part.count));
  return part;
}

/// What statistics are made from and where they go.
template <typename T> struct StatisticsPointers {
  const T *x;
  double *partials;
  unsigned *counters;
  float *mean, *rstd;
  float epsilon;
};

/// A thread merges the chunks of a channel, by finishTile().
template <typename T>
__device__ void finishStatistics(const StatisticsView &view, const StatisticsPointers<T> &p, int64_t tile,
                                 int64_t chunk) {
  const int across = view.width * detail::columnsOf<T>;
  detail::finishTile({view.chunks, view.tiles}, p.counters, tile, chunk,
                     [&](int64_t begin, int64_t end, int64_t step, bool own, bool final) {
                       const int64_t channel = tile * across + threadIdx.x;
                       if (static_cast<int>(threadIdx.x) >= across || channel >= view.rowExtent)
                         return;
                       constexpr int together = 8; // that are asked for before the first of them is merged
                       Moments all;
                       for (int64_t first = begin; first < end; first += together * step) {
                         Moments parts[together];
#pragma unroll
                         for (int i = 0; i < together; ++i)
                           if (const int64_t at = first + i * step; at < end)
                             parts[i] = momentsOf(view, p.x, p.partials, at, step, channel, own);
#pragma unroll
                         for (const Moments &part : parts)
                           all.merge(part);
                       }
                       if (final) {
                         p.mean[channel] = static_cast<float>(all.mean);
                         p.rstd[channel] =
                             static_cast<float>(1 / sqrt(all.squares / all.count + static_cast<double>(p.epsilon)));
                       } else {
                         p.partials[begin * view.rowExtent + channel] = all.mean;
                         p.partials[(view.chunks + begin) * view.rowExtent + channel] = all.squares;
                       }
                     });
}

/// What a block of statisticsKernel() has to do, for a thread.
template <typename T> struct StatisticsTask {
  static constexpr int vector = detail::columnsOf<T>;
  int64_t tile, chunk, column, begin, end;
  int lanes;

  __device__ explicit StatisticsTask(const StatisticsView &view)
      : tile(blockIdx.x % view.tiles), chunk(blockIdx.x / view.tiles),
        column((tile * view.width + threadIdx.x % view.width) * vector), begin(chunk * view.rowsPerChunk),
        end(column < view.rowExtent ? min(view.rows, begin + view.rowsPerChunk) : begin),
        lanes(Cut::threads / view.width) {}
  __device__ int64_t firstRow(const StatisticsView &view) const { return begin + threadIdx.x / view.width; }
};

/// Adds a row's distances from the chunk's first one, and their squares.
template <typename Held, int Vector>
__device__ inline void addRow(float (&run)[2][Vector], const Held &held, const float (&origin)[Vector]) {
#pragma unroll
  for (int i = 0; i < Vector; ++i) {
    const float distance = held.at(i) - origin[i];
    run[0][i] += distance;
    run[1][i] += distance * distance;
  }
}

/// Rows and sums as in fused regions: short runs are added in float, the rest in double, those of halves in float
/// alone.
template <typename T, int Group>
__global__ void __launch_bounds__(Cut::threads) statisticsKernel(StatisticsView view, StatisticsPointers<T> p) {
  constexpr bool narrow = sizeof(T) == 2;
  constexpr int vector = detail::columnsOf<T>;
  using Total = std::conditional_t<narrow, float, double>;
  const StatisticsTask<T> task(view);
  float origin[vector] = {}, run[2][vector] = {};
  Total totals[2][vector] = {};
  if (task.begin < task.end)
    loadRow<T, Group>(origin, p.x, view, task.begin, task.column);
  int inRun = 0;
  for (int64_t row = task.firstRow(view); row < task.end; row += task.lanes) {
    detail::HeldFloats<T, vector> held;
    held.template load<Group>(p.x + row * view.rowExtent + task.column,
                              static_cast<int>(min(view.rowExtent - task.column, static_cast<int64_t>(vector))));
    addRow(run, held, origin);
    if (!narrow && ++inRun == 32) {
      inRun = 0;
      detail::drain(run, totals);
    }
  }
  detail::drain(run, totals);
  __shared__ double shared[Cut::threads * vector];
  detail::storePartials(view, totals, p.partials, task.tile, task.chunk, shared);
  finishStatistics(view, p, task.tile, task.chunk);
}

/// The same of halves whose rows are groups of eight: they come through a RowQueue.
template <typename T>
__global__ void __launch_bounds__(Cut::threads, 4) queuedStatistics(StatisticsView view, StatisticsPointers<T> p) {
  constexpr int vector = detail::columnsOf<T>;
  using Queue = detail::RowQueue<1, 1>;
  alignas(16) __shared__ typename Queue::Slots slots;
  static_assert(sizeof slots >= sizeof(double) * Cut::threads * vector, "partial sums take the place of rows");
  const StatisticsTask<T> task(view);
  Queue queue(slots);
  int64_t asked = task.firstRow(view);
  const auto ask = [&] {
    if (asked < task.end)
      queue.ask(0, 0, p.x + asked * view.rowExtent + task.column);
    queue.asked();
    asked += task.lanes;
  };
  for (int b = 0; b < Queue::batches; ++b)
    ask();
  float origin[vector] = {}, run[2][vector] = {};
  if (task.begin < task.end)
    loadRow<T, vector>(origin, p.x, view, task.begin, task.column);
  for (int64_t row = task.firstRow(view); row < task.end; row += task.lanes) {
    queue.wait();
    detail::HeldHalves<T> held;
    held.template load<vector>(static_cast<const T *>(queue.row(0, 0)), vector);
    addRow(run, held, origin);
    ask();
  }
  detail::storePartials(view, run, p.partials, task.tile, task.chunk, reinterpret_cast<double *>(&slots));
  finishStatistics(view, p, task.tile, task.chunk);
}

template <typename T>
void statistics(cudaStream_t stream, const Cut &cut, const void *from, double *partials, float epsilon, float *mean,
                float *rstd) {
  const StatisticsView view{cut.rows,   cut.columns,      cut.tiles,
                            cut.chunks, cut.rowsPerChunk, cut.widthFor(detail::columnsOf<T>)};
  const StatisticsPointers<T> p{static_cast<const T *>(from), partials, finishCounters(), mean, rstd, epsilon};
  const auto splits = [&](int group) { return cut.columns % group == 0 && detail::aligned(from); };
  auto kernel = splits(Cut::vector) ? statisticsKernel<T, Cut::vector> : statisticsKernel<T, 1>;
  if constexpr (sizeof(T) == 2)
    if (splits(detail::columnsOf<T>))
      kernel = queuedStatistics<T>;
  kernel<<<static_cast<unsigned>(cut.tasks()), Cut::threads, 0, stream>>>(view, p);
}

struct Running {
  const float *mean, *rstd;
  float *runningMean, *runningVar;
  int64_t channels;
  double correction;
  float momentum, epsilon;
};

__global__ void updateStatistics(Pieces<Running> all) {
  const int own = all.own();
  const Running &p = all.piece[own];
  for (int64_t i = all.thread(own); i < p.channels; i += all.threads(own)) {
    const double rstd2 = static_cast<double>(p.rstd[i]) * static_cast<double>(p.rstd[i]);
    const double variance = fmax(0.0, 1 / rstd2 - static_cast<double>(p.epsilon)) * p.correction;
    p.runningMean[i] = (1 - p.momentum) * p.runningMean[i] + p.momentum * p.mean[i];
    p.runningVar[i] = (1 - p.momentum) * p.runningVar[i] + p.momentum * static_cast<float>(variance);
  }
}

void runningPieces(cudaStream_t stream, const Pieces<Running> &all, const DeviceState *) {
  updateStatistics<<<all.blocks(), blockThreads, 0, stream>>>(all);
}

} // namespace

BatchNormStatistics::BatchNormStatistics(Node node, Shape x, float epsilon) : Kernel(node), x(x), epsilon(epsilon) {
  checkStatistics(node, x);
  workspace = static_cast<size_t>(cuda::statisticsScratch(x));
}

void BatchNormStatistics::run(Stream &stream, const Tensor &input, const Tensor &mean, const Tensor &rstd,
                              const Tensor &scratch) const {
  const Cut cut = Cut(x.elements() / x[1], x[1], Cut::sumTasks);
  const void *from = stream.address(input);
  float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  double *partials = stream.data<double>(scratch);
  stream.launch(node, "batch_norm_statistics", [&] {
    const auto run = input.type == DataType::BF16  ? statistics<BFloat16>
                     : input.type == DataType::F16 ? statistics<Float16>
                                                   : statistics<float>;
    run(native(stream), cut, from, partials, epsilon, pMean, pRstd);
  });
}

UpdateStatistics::UpdateStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon)
    : Kernel(node), channels(channels), count(count), momentum(momentum), epsilon(epsilon) {}

void UpdateStatistics::run(Stream &stream, const Tensor &mean, const Tensor &rstd, const Tensor &runningMean,
                           const Tensor &runningVar) const {
  const double correction = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
  const Running piece{stream.data<float>(mean),
                      stream.data<float>(rstd),
                      stream.data<float>(runningMean),
                      stream.data<float>(runningVar),
                      channels,
                      correction,
                      momentum,
                      epsilon};
  launchPiece<Running>(stream, node.as(OpRole::Update), "update_statistics", runningPieces, piece, channels);
}

} // namespace sluice
