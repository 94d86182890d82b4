// SPDX-License-Identifier: Apache-2.0
// How regions of halves are walked whose [C] vectors are the same in every row. The memory's latency asks for many
// bytes on their way at once, and registers are what limits them: a thread asks for several rows before it computes
// one, holds them as they are stored, and finds vectors in shared memory, four columns at a time for all its rows. Sums
// are added in float alone: a value has 8 or 11 bits.
#pragma once

#include "runtime/cuda/FusedWalk.h"
#include "runtime/cuda/Held.h"

namespace sluice::detail {

template <typename F> struct FusedStream {
  using Walk = FusedWalk<F>;
  static constexpr int parts = Walk::vector / 4; ///< of a thread's columns, four of which are computed at a time
  static constexpr int vectors = Walk::vectorsOf(F::inputs);
  /// Sums of halves alone, whose rows can come through a RowQueue: sums take the registers that rows would.
  static constexpr bool queues() {
    bool all = F::sums > 0 && Walk::images() > 0 && Walk::images() <= 4;
    for (int i = 0; i < F::inputs; ++i)
      all = all && (Walk::isVector(i) || (stepOf<F>(i) && isHalf(typeOf<F>(i))));
    return all;
  }
  /// Rows that are computed at a time.
  static constexpr int together = queues()                                 ? (Walk::images() < 3 ? 2 : 1)
                                  : Walk::images() < (F::sums > 0 ? 3 : 2) ? 4
                                                                           : 2;
  /// That a multiprocessor is to hold at least, which bounds the registers of a thread. Sums have few blocks, and keep
  /// one in registers for each column.
  static constexpr int blocks = queues() ? 3 : F::sums > 0 ? 2 : Walk::images() < 3 ? 4 : 3;
  /// Neighbouring threads read neighbouring 16 bytes of each part, which is what banks are made for.
  using Vectors = float4[vectors > 0 ? vectors : 1][parts][Cut::mostColumns / Walk::vector];
};

/// What a thread holds of operand Number in one row; nothing of a vector.
template <typename F, int Number> struct Held {
  using Walk = FusedWalk<F>;
  static constexpr DataType type = typeOf<F>(Number);
  static constexpr bool steps = Number >= F::inputs || stepOf<F>(Number < F::inputs ? Number : 0);
  using T = StoredOf<type>;

  /// `first`: the element at the row's beginning.
  template <int Group> __device__ void load(const void *data, int64_t first, int64_t column, int count) {
    if constexpr (steps)
      columns.template load<Group>(static_cast<const T *>(data) + first + column, count);
    else
      columns = widened(static_cast<const T *>(data)[first]);
  }
  template <int Group> __device__ void store(void *data, int64_t first, int64_t column, int count) const {
    columns.template store<Group>(static_cast<T *>(data) + first + column, count);
  }
  __device__ float at(int i) const {
    if constexpr (steps)
      return columns.at(i);
    else
      return columns;
  }
  std::conditional_t<steps, HeldColumns<T, Walk::vector>, float> columns;
};

/// A mask's bits.
template <typename F, int Number> struct HeldMask {
  uint32_t bits;

  template <int Group> __device__ void load(const void *data, int64_t first, int64_t column, int count) {
    const auto *words = static_cast<const uint32_t *>(data);
    const int64_t at = first + column;
    bits = words[at / 32] >> (at % 32);
    if constexpr (Group < FusedWalk<F>::vector)
      if (count > 4 && at / 32 != (at + 4) / 32)
        bits = (bits & 0xf) | (words[(at + 4) / 32] >> ((at + 4) % 32)) << 4;
  }
  __device__ float at(int i) const { return static_cast<float>(bits >> i & 1); }
};

struct HeldNothing {
  template <int> __device__ void load(const void *, int64_t, int64_t, int) {}
};

template <typename F, int Number>
using HeldInput =
    std::conditional_t<FusedWalk<F>::isVector(Number), HeldNothing,
                       std::conditional_t<typeOf<F>(Number) == DataType::Bit, HeldMask<F, Number>, Held<F, Number>>>;

/// One operand among those of a row.
template <int Number, typename What> struct HeldSlot : What {};

template <typename F, typename Inputs> struct HeldInputs;
template <typename F, size_t... I>
struct HeldInputs<F, std::index_sequence<I...>> : HeldSlot<static_cast<int>(I), HeldInput<F, static_cast<int>(I)>>... {
  template <int I_> __device__ auto &of() { return static_cast<HeldSlot<I_, HeldInput<F, I_>> &>(*this); }
};
template <typename F, typename Outputs> struct HeldOutputs;
template <typename F, size_t... O>
struct HeldOutputs<F, std::index_sequence<O...>>
    : HeldSlot<static_cast<int>(O), Held<F, F::inputs + static_cast<int>(O)>>... {
  template <int O_> __device__ auto &of() { return static_cast<HeldSlot<O_, Held<F, F::inputs + O_>> &>(*this); }
};

/// The threads of the first row bring the columns of their block, as far as there are some; a barrier is still to come.
template <typename F, int Group, size_t... I>
__device__ inline void shareVectors(typename FusedStream<F>::Vectors &vectors, const FusedPointers<F> &p,
                                    const FusedTask<F> &task, int count, std::index_sequence<I...>) {
  using Stream = FusedStream<F>;
  [[maybe_unused]] const auto share = [&](auto input) {
    if constexpr (FusedWalk<F>::isVector(input)) {
      float values[FusedWalk<F>::vector];
      loadOperand<F, input, Group>(values, p, 0, task.column, count);
#pragma unroll
      for (int part = 0; part < Stream::parts; ++part)
        vectors[FusedWalk<F>::vectorsOf(input)][part][task.place] =
            make_float4(values[4 * part], values[4 * part + 1], values[4 * part + 2], values[4 * part + 3]);
    }
  };
  if (count > 0)
    (share(std::integral_constant<int, static_cast<int>(I)>()), ...);
}

/// The rows that a thread has asked for, `lanes` apart.
template <typename F, typename I, typename O> struct HeldRows {
  int64_t first;
  int count[FusedStream<F>::together]; ///< columns of each
  HeldInputs<F, I> in[FusedStream<F>::together];
  [[maybe_unused]] HeldOutputs<F, O> out[FusedStream<F>::together];
};

template <typename F, int Group, size_t... I, typename O>
__device__ inline void askForRows(HeldRows<F, std::index_sequence<I...>, O> &rows,
                                  const FusedView<F::inputs + F::outputs, F::sums> &view, const FusedPointers<F> &p,
                                  const FusedTask<F> &task) {
#pragma unroll
  for (int u = 0; u < FusedStream<F>::together; ++u) {
    const int64_t row = rows.first + u * task.lanes;
    rows.count[u] = task.columnsOf(view, row);
    if (rows.count[u] > 0)
      (rows.in[u].template of<static_cast<int>(I)>().template load<Group>(
           p.in[I], view.offset(static_cast<int>(I), row), task.column, rows.count[u]),
       ...);
  }
}

/// Operand I of column `part` * 4 + j of a row.
template <typename F, int I, typename Row>
__device__ inline float inputOf(Row &row, const float (&vectors)[FusedStream<F>::vectors + 1][4], int part, int j) {
  if constexpr (FusedWalk<F>::isVector(I))
    return vectors[FusedWalk<F>::vectorsOf(I)][j];
  else
    return row.template of<I>().at(4 * part + j);
}

/// The region for four columns of row u; adds its sums to `run`. `element`: of the row's first column that is the
/// thread's.
template <typename F, int Group, size_t... I, size_t... O>
__device__ inline void computeFour(const F &f, HeldRows<F, std::index_sequence<I...>, std::index_sequence<O...>> &rows,
                                   int u, int part, const float (&vectors)[FusedStream<F>::vectors + 1][4],
                                   Element element, typename FusedWalk<F>::Sums &run) {
  [[maybe_unused]] float results[F::outputs + 1][4];
  [[maybe_unused]] const uint64_t firstIndex = element.index;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int i = 4 * part + j;
    element.index = firstIndex + static_cast<uint64_t>(i);
    const auto value = [&] {
      if constexpr (IsRandom<F>::value)
        return f(element, inputOf<F, static_cast<int>(I)>(rows.in[u], vectors, part, j)...);
      else
        return f(inputOf<F, static_cast<int>(I)>(rows.in[u], vectors, part, j)...);
    }();
    for (int o = 0; o < F::outputs; ++o)
      results[o][j] = value.v[o];
    for (int s = 0; s < F::sums; ++s)
      run[s][i] += Group == FusedWalk<F>::vector || i < rows.count[u] ? value.v[F::outputs + s] : 0.0f;
  }
  (rows.out[u].template of<static_cast<int>(O)>().columns.put(part, results[O]), ...);
}

template <typename F, int Group, typename I, size_t... O>
__device__ inline void storeRows(HeldRows<F, I, std::index_sequence<O...>> &rows,
                                 const FusedView<F::inputs + F::outputs, F::sums> &view, const FusedPointers<F> &p,
                                 const FusedTask<F> &task) {
#pragma unroll
  for (int u = 0; u < FusedStream<F>::together; ++u)
    if (rows.count[u] > 0)
      (rows.out[u].template of<static_cast<int>(O)>().template store<Group>(
           p.out[O], view.offset(F::inputs + static_cast<int>(O), rows.first + u * task.lanes), task.column,
           rows.count[u]),
       ...);
}

/// The region for the rows that a thread has, and its results.
template <typename F, int Group, typename I, typename O>
__device__ inline void computeRows(const F &f, HeldRows<F, I, O> &rows,
                                   const FusedView<F::inputs + F::outputs, F::sums> &view, const FusedPointers<F> &p,
                                   const FusedTask<F> &task, const typename FusedStream<F>::Vectors &shared,
                                   Element &element, typename FusedWalk<F>::Sums &run) {
  using Stream = FusedStream<F>;
#pragma unroll
  for (int part = 0; part < Stream::parts; ++part) {
    [[maybe_unused]] float vectors[Stream::vectors + 1][4];
#pragma unroll
    for (int v = 0; v < Stream::vectors; ++v) {
      const float4 four = shared[v][part][task.place];
      vectors[v][0] = four.x, vectors[v][1] = four.y, vectors[v][2] = four.z, vectors[v][3] = four.w;
    }
#pragma unroll
    for (int u = 0; u < Stream::together; ++u) {
      if (rows.count[u] == 0)
        continue;
      element.index = static_cast<uint64_t>((rows.first + u * task.lanes) * view.rowExtent + task.column);
      computeFour<F, Group>(f, rows, u, part, vectors, element, run);
    }
  }
  storeRows<F, Group>(rows, view, p, task);
}

template <typename F, int Group>
__device__ inline void streamedTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                    const FusedPointers<F> &p) {
  using Stream = FusedStream<F>;
  using Inputs = std::make_index_sequence<F::inputs>;
  alignas(16) __shared__ typename Stream::Vectors shared;
  const FusedTask<F> task(view);
  Element element = firstElement<F>(p);
  typename FusedWalk<F>::Sums run = {};
  HeldRows<F, Inputs, std::make_index_sequence<F::outputs>> rows;
  rows.first = task.begin + task.lane;
  if (rows.first < task.end) // before the block waits for its vectors
    askForRows<F, Group>(rows, view, p, task);
  if (Stream::vectors > 0) {
    if (task.lane == 0)
      shareVectors<F, Group>(shared, p, task, columnsFrom<F>(task.column, view.rowExtent), Inputs());
    __syncthreads();
  }
  while (rows.first < task.end) {
    computeRows<F, Group>(f, rows, view, p, task, shared, element, run);
    rows.first += task.lanes * Stream::together;
    if (rows.first < task.end)
      askForRows<F, Group>(rows, view, p, task);
  }
  if constexpr (F::sums > 0) {
    __shared__ double sums[Cut::threads * FusedWalk<F>::vector];
    storePartials(view, run, p.partials, task.tile, task.chunk, sums);
    finishSums<F::sums, FusedWalk<F>::vector>(view, p.partials, p.sum, p.counters, task.tile, task.chunk);
  }
}

} // namespace sluice::detail
