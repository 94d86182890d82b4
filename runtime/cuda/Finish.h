// SPDX-License-Identifier: Apache-2.0
// How blocks end a sum over rows, and the second half of it, in the launch of the first. Blocks leave partials for
// their tile and chunk, see Cut; the last block of a group of chunks merges those of the group, the last of these the
// groups'. Which block that is changes from run to run, the order in which it merges does not. Two steps, because a
// whole tile's partials are more than one block reads in the time of a launch.
#pragma once

#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

/// Device memory that counts blocks, all 0 between launches: of kernels on the compute stream, which run one by one.
unsigned *finishCounters();

/// The tasks of a sum, as far as finishing it goes.
struct ChunkGrid {
  int64_t chunks, tiles;

  SLUICE_KERNEL int64_t groups() const { return (chunks + Cut::finishGroup - 1) / Cut::finishGroup; }
  /// That finishTile() uses; none where there is nothing to merge.
  SLUICE_KERNEL int64_t counters() const { return chunks > 1 ? tiles * (1 + groups()) : 0; }
};

#if defined(__CUDACC__)

namespace detail {

/// Adds the lanes of a block in order; partials of this task. `shared`: Cut::threads * Vector of shared memory, in
/// which threads may still read what was there.
template <int Sums, int Vector, typename View, typename Total>
__device__ inline void storePartials(const View &view, const Total (&totals)[Sums][Vector], double *partials,
                                     int64_t tile, int64_t chunk, double *shared) {
  const int across = view.width * Vector, lanes = Cut::threads / view.width;
  const int column = static_cast<int>(threadIdx.x) % view.width, lane = static_cast<int>(threadIdx.x) / view.width;
#pragma unroll // totals stay in registers
  for (int s = 0; s < Sums; ++s) {
    double *to = partials + s * view.chunks * view.rowExtent;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Vector; ++i)
      shared[lane * across + column * Vector + i] = static_cast<double>(totals[s][i]);
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < across; c += Cut::threads) {
      double total = 0;
      for (int l = 0; l < lanes; ++l)
        total += shared[l * across + c];
      shared[c] = total; // row 0; no other thread reads this column
      if (view.vectorSum[s] && tile * across + c < view.rowExtent)
        to[chunk * view.rowExtent + tile * across + c] = total;
    }
    __syncthreads();
    if (!view.vectorSum[s] && threadIdx.x == 0) {
      double total = 0;
      for (int c = 0; c < across; ++c)
        total += shared[c];
      to[chunk * view.tiles + tile] = total;
    }
  }
}

/// Whether this block is the last of `count` that come here; what the others wrote before is there then. All threads of
/// the block call it.
__device__ inline bool isLast(unsigned *counter, int64_t count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == static_cast<unsigned>(count - 1);
    if (last)
      *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

/// Calls merge(chunk, end, step, own, final) in the blocks that come last: it merges the partials of chunks `chunk`,
/// `chunk` + step and so on below `end`, which are as blocks left them (own) or as merge did, into the place of `chunk`
/// or, final, into the result.
template <typename Merge>
__device__ inline void finishTile(const ChunkGrid &grid, unsigned *counters, int64_t tile, int64_t chunk,
                                  Merge &&merge) {
  const int64_t groups = grid.groups(), group = chunk / Cut::finishGroup;
  const int64_t begin = group * Cut::finishGroup, end = min(begin + Cut::finishGroup, grid.chunks);
  __syncthreads();
  if (end - begin > 1 && !isLast(counters + grid.tiles + tile * groups + group, end - begin))
    return;
  merge(begin, end, static_cast<int64_t>(1), true, groups == 1);
  if (groups > 1 && isLast(counters + tile, groups))
    merge(static_cast<int64_t>(0), grid.chunks, Cut::finishGroup, false, true);
}

/// Sums of columns, of which a thread holds `Vector`: `results` has `Sums` vectors, and partials of sum s begin at s *
/// chunks * rowExtent. Nothing where `counters` is null.
template <int Sums, int Vector, typename View>
__device__ inline void finishSums(const View &view, double *partials, float *const *results, unsigned *counters,
                                  int64_t tile, int64_t chunk) {
  if (!counters)
    return;
  const int across = view.width * Vector;
  finishTile({view.chunks, view.tiles}, counters, tile, chunk,
             [&](int64_t begin, int64_t end, int64_t step, bool, bool final) {
               for (int i = static_cast<int>(threadIdx.x); i < across * Sums; i += Cut::threads) {
                 const int64_t column = tile * across + i % across;
                 if (column >= view.rowExtent)
                   continue;
                 double *from = partials + i / across * view.chunks * view.rowExtent + column, total = 0;
#pragma unroll 8
                 for (int64_t at = begin; at < end; at += step)
                   total += __ldcg(from + at * view.rowExtent);
                 if (final)
                   results[i / across][column] = static_cast<float>(total);
                 else
                   from[begin * view.rowExtent] = total;
               }
             });
}

} // namespace detail

#endif

} // namespace sluice
