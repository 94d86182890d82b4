// SPDX-License-Identifier: Apache-2.0
// How regions with means of rows are walked. A block takes as many rows at a time as it has warps: first each warp
// adds up one of them, then the block computes them all, a thread eight columns of some, so that sums over rows stay
// in registers. What the second half reads lies in the caches since the first. The caller's rows are whole: one tile.
#pragma once

#include "runtime/cuda/FusedWalk.h"

namespace sluice::detail {

/// The means of a row by its warp. Neighbours are added in float, the rest in double.
template <typename F, int Group, size_t... I>
__device__ inline Values<meansOf<F>()> meansOfRow(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                                  const FusedPointers<F> &p, int64_t row, std::index_sequence<I...>) {
  constexpr int vector = FusedWalk<F>::vector, means = meansOf<F>();
  double totals[means] = {};
  for (int64_t column = threadIdx.x % 32 * vector; column < view.rowExtent; column += 32 * vector) {
    const int count = columnsFrom<F>(column, view.rowExtent);
    typename FusedWalk<F>::Inputs in;
    (loadOperand<F, static_cast<int>(I), Group>(in[I], p, view.offset(static_cast<int>(I), row), column, count), ...);
    float part[means] = {};
#pragma unroll
    for (int i = 0; i < vector; ++i) {
      const Values<means> terms = f.rowTerms(in[I][i]...);
      for (int m = 0; m < means; ++m)
        part[m] += Group == vector || i < count ? terms.v[m] : 0.0f;
    }
    for (int m = 0; m < means; ++m)
      totals[m] += static_cast<double>(part[m]);
  }
  Values<means> mean;
  for (int m = 0; m < means; ++m)
    mean.v[m] = static_cast<float>(warpSum(totals[m]) / static_cast<double>(view.rowExtent));
  return mean;
}

/// An output may be an input's very bytes: a row is read as a whole before any of it is written.
template <typename F, int Group, size_t... I>
__device__ inline void rowsTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                const FusedPointers<F> &p, std::index_sequence<I...> inputs) {
  using Walk = FusedWalk<F>;
  constexpr int warps = Cut::threads / 32, vector = Walk::vector;
  __shared__ Values<meansOf<F>()> means[warps];
  const FusedTask<F> task(view);
  const int warp = static_cast<int>(threadIdx.x) / 32, count = columnsFrom<F>(task.column, view.rowExtent);
  Element element = firstElement<F>(p);
  typename Walk::Inputs in;
  typename Walk::Sums run = {};
  typename Walk::Total totals[F::sums > 0 ? F::sums : 1][vector] = {};
  bool fresh = true;
  for (int64_t first = task.begin; first < task.end; first += warps) {
    if (first + warp < task.end) {
      const Values<meansOf<F>()> own = meansOfRow<F, Group>(f, view, p, first + warp, inputs);
      if (threadIdx.x % 32 == 0)
        means[warp] = own;
    }
    __syncthreads();
    const int64_t end = min(task.end, first + warps);
    for (int64_t row = first + task.lane; row < end && count > 0; row += task.lanes) {
      ((fresh || !view.fixed[I] ? loadOperand<F, static_cast<int>(I), Group>(
                                      in[I], p, view.offset(static_cast<int>(I), row), task.column, count)
                                : void()),
       ...);
      fresh = false;
      fusedRow<F, Group>(f, view, p, in, {row, task.column, count}, element, run, means[row - first]);
    }
    if constexpr (F::sums > 0 && !Walk::narrow)
      drain(run, totals);
    __syncthreads();
  }
  if constexpr (F::sums > 0) {
    drain(run, totals);
    __shared__ double shared[Cut::threads * vector];
    storePartials(view, totals, p.partials, task.tile, task.chunk, shared);
    finishSums<F::sums, vector>(view, p.partials, p.sum, p.counters, task.tile, task.chunk);
  }
}

} // namespace sluice::detail
