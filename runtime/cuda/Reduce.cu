// SPDX-License-Identifier: Apache-2.0
// Sums: the second half of fused regions with scalars, gradients of broadcasting (SumTo), columns of a matrix. Blocks
// write partial sums in double, then the partials of a result are added in order, by the last blocks (Finish.h) or,
// where results are too many to count blocks for, by a second kernel.
#include "runtime/cuda/Reduce.h"

#include "runtime/Fused.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Held.h"
#include "runtime/kernels/BroadcastTo.h"

namespace sluice {

namespace {

__device__ unsigned blockCounters[Cut::finishCounters];

constexpr int finishColumns = 32, finishLanes = blockThreads / finishColumns;

/// Adds `count` partials, `step` apart, of the column of this thread; the total is in lane 0.
__device__ double finishColumn(const double *from, int64_t count, int64_t step, bool present, double *shared) {
  const int column = static_cast<int>(threadIdx.x) % finishColumns,
            lane = static_cast<int>(threadIdx.x) / finishColumns;
  double total = 0;
  if (present)
    for (int64_t i = lane; i < count; i += finishLanes)
      total += from[i * step];
  __syncthreads();
  shared[lane * finishColumns + column] = total;
  __syncthreads();
  total = 0;
  if (lane == 0)
    for (int l = 0; l < finishLanes; ++l)
      total += shared[l * finishColumns + column];
  return total;
}

__global__ void finishFused(const double *partials, SumResults results, int64_t chunks, int64_t columns,
                            int64_t tiles) {
  __shared__ double shared[blockThreads];
  const int s = static_cast<int>(blockIdx.y);
  const double *from = partials + s * chunks * columns;
  if (!results.vector[s]) {
    if (blockIdx.x > 0)
      return;
    double total = 0;
    for (int64_t i = threadIdx.x; i < chunks * tiles; i += blockThreads)
      total += from[i];
    total = blockSum(total, shared);
    if (threadIdx.x == 0)
      *results.target[s] = static_cast<float>(total);
    return;
  }
  const int64_t column = static_cast<int64_t>(blockIdx.x) * finishColumns + threadIdx.x % finishColumns;
  const double total = finishColumn(from + column, chunks, columns, column < columns, shared);
  if (threadIdx.x < finishColumns && column < columns)
    results.target[s][column] = static_cast<float>(total);
}

/// Dimensions of an index, innermost first, as a kernel argument.
struct Walk {
  int count = 0;
  int64_t extent[Shape::maxRank] = {}, strideX[Shape::maxRank] = {}, strideY[Shape::maxRank] = {};

  void add(const SumDimension &d) {
    extent[count] = d.extent, strideX[count] = d.strideX, strideY[count] = d.strideY;
    ++count;
  }
  __device__ int64_t offset(int64_t index, const int64_t *stride) const {
    int64_t offset = 0;
    for (int d = 0; d + 1 < count; ++d) {
      offset += index % extent[d] * stride[d];
      index /= extent[d];
    }
    return count ? offset + index * stride[count - 1] : 0;
  }
};

/// x as [kept][rows][columns]: all rows are summed, columns too when `scalar`.
struct SumPlan {
  Walk kept, reduced;
  int64_t keptCount, rows, columns, columnStrideY, tiles, chunks, rowsPerChunk;
  int width;
  bool scalar;
  float scale;

  __host__ __device__ int64_t partials() const { return chunks * (scalar ? tiles : columns); } ///< of a kept position
  /// A scalar's tasks are the chunks of one tile.
  __host__ __device__ ChunkGrid chunkGrid() const {
    return scalar ? ChunkGrid{tiles * chunks, 1} : ChunkGrid{chunks, tiles};
  }
  /// Threads across where each holds `columns`.
  __host__ __device__ int widthFor(int columns) const {
    return width * Cut::vector > columns ? width * Cut::vector / columns : 1;
  }
  bool finishesItself() const { return keptCount * chunkGrid().counters() <= Cut::finishCounters; }
};

/// The second half in the same launch, see finishTile().
__device__ void finishTask(const SumPlan &plan, double *partials, float *y, unsigned *counters, int64_t kept,
                           int64_t tile, int64_t chunk) {
  const ChunkGrid grid = plan.chunkGrid();
  const int across = plan.scalar ? 1 : plan.width * Cut::vector;
  const int64_t columns = plan.scalar ? 1 : plan.columns;
  double *own = partials + kept * plan.partials();
  float *to = y + plan.kept.offset(kept, plan.kept.strideY);
  detail::finishTile(grid, counters + kept * grid.counters(), plan.scalar ? 0 : tile,
                     plan.scalar ? chunk * plan.tiles + tile : chunk,
                     [&](int64_t begin, int64_t end, int64_t step, bool, bool final) {
                       const int64_t column = (plan.scalar ? 0 : tile) * across + threadIdx.x;
                       if (static_cast<int>(threadIdx.x) >= across || column >= columns)
                         return;
                       double total = 0;
#pragma unroll 8
                       for (int64_t at = begin; at < end; at += step)
                         total += __ldcg(own + at * columns + column);
                       if (final)
                         to[column * plan.columnStrideY] = static_cast<float>(total * static_cast<double>(plan.scale));
                       else
                         own[begin * columns + column] = total;
                     });
}

/// The rows of a thread, `lanes` apart: several are asked for before the first of them is added, as they are stored.
/// Halves are added in float alone (FusedStream.h), floats in double after runs of 32.
template <typename T, int Group> struct ColumnTotals {
  static constexpr bool narrow = sizeof(T) == 2;
  static constexpr int vector = detail::columnsOf<T>, together = 4;
  using Held = std::conditional_t<(Group > 1), detail::HeldColumns<T, vector>, detail::HeldFloats<T, vector>>;

  float run[vector] = {};
  double totals[narrow ? 1 : vector] = {};

  __device__ void add(const SumPlan &plan, const T *base, int64_t begin, int64_t end, int lanes, int64_t column) {
    const int count = static_cast<int>(min(plan.columns - column, static_cast<int64_t>(vector)));
    int inRun = 0;
    for (int64_t first = begin; first < end; first += lanes * together) {
      Held held[together];
#pragma unroll
      for (int u = 0; u < together; ++u)
        if (const int64_t row = first + u * lanes; row < end)
          held[u].template load<Group>(base + plan.reduced.offset(row, plan.reduced.strideX) + column, count);
#pragma unroll
      for (int u = 0; u < together; ++u)
        if (first + u * lanes < end)
#pragma unroll
          for (int i = 0; i < vector; ++i)
            run[i] += held[u].at(i);
      if (!narrow && (inRun += together) == 32)
        inRun = 0, flush();
    }
    if constexpr (!narrow)
      flush();
  }
  __device__ void flush() {
#pragma unroll
    for (int i = 0; i < vector; ++i)
      totals[narrow ? 0 : i] += static_cast<double>(run[i]), run[i] = 0;
  }
  __device__ double at(int i) const { return narrow ? static_cast<double>(run[i]) : totals[narrow ? 0 : i]; }
};

/// Group: what all rows split into, see loadColumns(). Without counters finishSum() comes after.
template <typename T, int Group>
__global__ void __launch_bounds__(Cut::threads, 4)
    sumPartials(SumPlan plan, const T *x, double *partials, float *y, unsigned *counters) {
  constexpr int vector = detail::columnsOf<T>;
  __shared__ double shared[Cut::threads * vector];
  __shared__ double warps[blockThreads / 32];
  const int64_t tasks = plan.tiles * plan.chunks, kept = blockIdx.x / tasks, task = blockIdx.x % tasks;
  const int64_t tile = task % plan.tiles, chunk = task / plan.tiles;
  const int across = plan.width * Cut::vector, width = plan.widthFor(vector), lanes = Cut::threads / width;
  const int lane = static_cast<int>(threadIdx.x) / width, at = static_cast<int>(threadIdx.x) % width * vector;
  const int64_t column = tile * across + at;
  ColumnTotals<T, Group> totals;
  if (column < plan.columns)
    totals.add(plan, x + plan.kept.offset(kept, plan.kept.strideX), chunk * plan.rowsPerChunk + lane,
               min(plan.rows, (chunk + 1) * plan.rowsPerChunk), lanes, column);
  double *to = partials + kept * plan.partials();
  if (plan.scalar) {
    double sum = 0;
#pragma unroll
    for (int i = 0; i < vector; ++i)
      sum += totals.at(i);
    sum = blockSum(sum, warps);
    if (threadIdx.x == 0)
      to[task] = sum;
  } else {
    const int stored = max(across, vector); // a width of one holds more than the tile has
#pragma unroll
    for (int i = 0; i < vector; ++i)
      shared[lane * stored + at + i] = totals.at(i);
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < across; c += Cut::threads) {
      double total = 0;
      for (int l = 0; l < lanes; ++l)
        total += shared[l * stored + c];
      if (tile * across + c < plan.columns)
        to[chunk * plan.columns + tile * across + c] = total;
    }
  }
  if (counters)
    finishTask(plan, partials, y, counters, kept, tile, chunk);
}

__global__ void finishSum(SumPlan plan, const double *partials, float *y) {
  __shared__ double shared[blockThreads];
  const int64_t columns = plan.scalar ? 1 : plan.columns, count = plan.scalar ? plan.tiles * plan.chunks : plan.chunks;
  const int64_t results = plan.keptCount * columns;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * finishColumns; first < results;
       first += static_cast<int64_t>(gridDim.x) * finishColumns) {
    const int64_t result = first + threadIdx.x % finishColumns, kept = result / columns, column = result % columns;
    const double total =
        finishColumn(partials + kept * plan.partials() + column, count, columns, result < results, shared);
    if (threadIdx.x < finishColumns && result < results)
      y[plan.kept.offset(kept, plan.kept.strideY) + column * plan.columnStrideY] =
          static_cast<float>(total * static_cast<double>(plan.scale));
  }
}

/// Few elements for each result: a warp adds them without partials.
template <typename T> __global__ void sumShort(SumPlan plan, const T *x, float *y) {
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockThreads / 32), lane = threadIdx.x % 32;
  for (int64_t kept = (blockIdx.x * static_cast<int64_t>(blockThreads) + threadIdx.x) / 32; kept < plan.keptCount;
       kept += warps) {
    const T *base = x + plan.kept.offset(kept, plan.kept.strideX);
    double total = 0;
    for (int64_t row = 0; row < plan.rows; ++row) {
      const T *from = base + plan.reduced.offset(row, plan.reduced.strideX);
      for (int64_t column = lane; column < plan.columns; column += 32)
        total += static_cast<double>(widened(from[column]));
    }
    total = warpSum(total);
    if (lane == 0)
      y[plan.kept.offset(kept, plan.kept.strideY)] = static_cast<float>(total * static_cast<double>(plan.scale));
  }
}

SumPlan planOf(const Cut &cut, int64_t keptCount) {
  SumPlan plan{};
  plan.keptCount = keptCount, plan.rows = cut.rows, plan.columns = cut.columns, plan.columnStrideY = 1;
  plan.tiles = cut.tiles, plan.chunks = cut.chunks, plan.rowsPerChunk = cut.rowsPerChunk, plan.width = cut.width;
  plan.scale = 1;
  return plan;
}

/// Both halves, in one launch or in two.
template <typename T> void launchSum(cudaStream_t stream, const SumPlan &plan, const T *x, double *partials, float *y) {
  int group = detail::aligned(x) ? detail::columnsOf<T> : 1;
  const auto split = [&](int64_t extent) {
    while (extent % group)
      group = group > Cut::vector ? Cut::vector : 1;
  };
  split(plan.columns);
  for (const Walk *walk : {&plan.kept, &plan.reduced})
    for (int d = 0; d < walk->count; ++d)
      split(walk->strideX[d]);
  const auto kernel = group == detail::columnsOf<T> ? sumPartials<T, detail::columnsOf<T>>
                      : group == Cut::vector        ? sumPartials<T, Cut::vector>
                                                    : sumPartials<T, 1>;
  const auto tasks = static_cast<unsigned>(plan.keptCount * plan.tiles * plan.chunks);
  unsigned *counters = plan.finishesItself() ? finishCounters() : nullptr;
  kernel<<<tasks, Cut::threads, 0, stream>>>(plan, x, partials, y, counters);
  const int64_t results = plan.keptCount * (plan.scalar ? 1 : plan.columns);
  if (!counters)
    finishSum<<<blocksFor(results, finishColumns), blockThreads, 0, stream>>>(plan, partials, y);
}

} // namespace

unsigned *finishCounters() {
  static void *const address = [] {
    void *found = nullptr;
    checkCuda(cudaGetSymbolAddress(&found, blockCounters), "cannot find the counters of sums");
    return found;
  }();
  return static_cast<unsigned *>(address);
}

void finishFusedSums(cudaStream_t stream, const Cut &cut, const double *partials, const SumResults &results) {
  const dim3 grid(blocksFor(cut.columns, finishColumns), static_cast<unsigned>(results.sums));
  finishFused<<<grid, blockThreads, 0, stream>>>(partials, results, cut.chunks, cut.columns, cut.tiles);
}

void columnSums(cudaStream_t stream, int64_t rows, int64_t columns, DataType type, const void *x, double *partials,
                float *result) {
  const Cut cut(rows, columns, Cut::sumTasks);
  SumPlan plan = planOf(cut, 1);
  plan.reduced.add({cut.rows, cut.columns, 0, true});
  forStored(type, [&](auto *stored) {
    launchSum(stream, plan, static_cast<decltype(stored)>(const_cast<void *>(x)), partials, result);
  });
}

struct SumTo::Impl {
  SumPlan plan;
  bool isShort = false;
};

SumTo::SumTo(Node node, const Tensor &x, const Tensor &y, float scale) : Kernel(node) {
  const SumCut sum(node, x, y);
  auto made = std::make_shared<Impl>();
  made->plan = planOf(sum.cut, sum.keptCount);
  for (const SumDimension &d : sum.kept)
    made->plan.kept.add(d);
  for (const SumDimension &d : sum.reduced)
    made->plan.reduced.add(d);
  made->plan.columnStrideY = sum.inner.strideY, made->plan.scalar = sum.inner.reduced, made->plan.scale = scale;
  made->isShort = sum.isShort;
  workspace = static_cast<size_t>(sum.scratch());
  impl = made;
}

void SumTo::run(Stream &stream, const Tensor &x, const Tensor &y, const Tensor &scratch) const {
  const SumPlan &plan = impl->plan;
  const void *from = stream.address(x);
  float *py = stream.data<float>(y);
  double *partials = stream.data<double>(scratch);
  stream.launch(node, "sum_to", [&] {
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *px = static_cast<const T *>(from);
      const auto brief = sumShort<T>;
      if (impl->isShort)
        brief<<<blocksFor(plan.keptCount, blockThreads / 32), blockThreads, 0, native(stream)>>>(plan, px, py);
      else
        launchSum(native(stream), plan, px, partials, py);
    });
  });
}

} // namespace sluice
