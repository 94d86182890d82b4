// SPDX-License-Identifier: Apache-2.0
// How regions with sums are walked whose tensors are halves: as FusedStream.h says, but rows come through a RowQueue.
#pragma once

#include "runtime/cuda/FusedStream.h"
#include "runtime/cuda/RowQueue.h"

namespace sluice::detail {

/// The queue of a region that FusedStream<F>::queues(): an image for each input that is no vector.
template <typename F> using FusedQueue = RowQueue<FusedWalk<F>::images(), FusedStream<F>::together>;

template <typename F> constexpr int imageOf(int input) { return input - FusedWalk<F>::vectorsOf(input); }

/// A batch of rows from `first` on, `lanes` apart, as far as there are some.
template <typename F, size_t... I>
__device__ inline void askForBatch(FusedQueue<F> &queue, int64_t first,
                                   const FusedView<F::inputs + F::outputs, F::sums> &view, const FusedPointers<F> &p,
                                   const FusedTask<F> &task, std::index_sequence<I...>) {
  const auto ask = [&](auto input, int u, int64_t row) {
    if constexpr (!FusedWalk<F>::isVector(input)) {
      using T = StoredOf<typeOf<F>(input)>;
      queue.ask(u, imageOf<F>(input), static_cast<const T *>(p.in[input]) + view.offset(input, row) + task.column);
    }
  };
#pragma unroll
  for (int u = 0; u < FusedStream<F>::together; ++u)
    if (const int64_t row = first + u * task.lanes; task.columnsOf(view, row) > 0)
      (ask(std::integral_constant<int, static_cast<int>(I)>(), u, row), ...);
  queue.asked();
}

/// The oldest batch, which begins with row `rows.first`.
template <typename F, size_t... I, typename O>
__device__ inline void takeBatch(HeldRows<F, std::index_sequence<I...>, O> &rows, const FusedQueue<F> &queue,
                                 const FusedView<F::inputs + F::outputs, F::sums> &view, const FusedTask<F> &task) {
  queue.wait();
  const auto take = [&](auto input, int u) {
    if constexpr (!FusedWalk<F>::isVector(input)) {
      constexpr int number = input;
      using T = StoredOf<typeOf<F>(number)>;
      const auto *from = static_cast<const T *>(queue.row(u, imageOf<F>(number)));
      rows.in[u].template of<number>().columns.template load<FusedWalk<F>::vector>(from, FusedWalk<F>::vector);
    }
  };
#pragma unroll
  for (int u = 0; u < FusedStream<F>::together; ++u) {
    rows.count[u] = task.columnsOf(view, rows.first + u * task.lanes);
    if (rows.count[u] > 0)
      (take(std::integral_constant<int, static_cast<int>(I)>(), u), ...);
  }
}

/// Whole groups of FusedWalk<F>::vector columns. Sums are added in the order of streamedTask().
template <typename F>
__device__ inline void queuedTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                  const FusedPointers<F> &p) {
  using Stream = FusedStream<F>;
  using Inputs = std::make_index_sequence<F::inputs>;
  constexpr int vector = FusedWalk<F>::vector;
  alignas(16) __shared__ typename Stream::Vectors shared;
  alignas(16) __shared__ typename FusedQueue<F>::Slots slots;
  static_assert(sizeof slots >= sizeof(double) * Cut::threads * vector, "partial sums take the place of rows");
  const FusedTask<F> task(view);
  Element element = firstElement<F>(p);
  typename FusedWalk<F>::Sums run = {};
  FusedQueue<F> queue(slots);
  int64_t asked = task.begin + task.lane;
  const int64_t batch = task.lanes * Stream::together;
  for (int b = 0; b < FusedQueue<F>::batches; ++b, asked += batch)
    askForBatch<F>(queue, asked, view, p, task, Inputs());
  if (Stream::vectors > 0) {
    if (task.lane == 0)
      shareVectors<F, vector>(shared, p, task, columnsFrom<F>(task.column, view.rowExtent), Inputs());
    __syncthreads();
  }
  HeldRows<F, Inputs, std::make_index_sequence<F::outputs>> rows;
  for (rows.first = task.begin + task.lane; rows.first < task.end; rows.first += batch, asked += batch) {
    takeBatch<F>(rows, queue, view, task);
    computeRows<F, vector>(f, rows, view, p, task, shared, element, run);
    askForBatch<F>(queue, asked, view, p, task, Inputs());
  }
  storePartials(view, run, p.partials, task.tile, task.chunk, reinterpret_cast<double *>(&slots));
  finishSums<F::sums, vector>(view, p.partials, p.sum, p.counters, task.tile, task.chunk);
}

} // namespace sluice::detail
