// SPDX-License-Identifier: Apache-2.0
// How the threads of a Fused<F> cut its matrix among them, and how they load and store what they hold.
#pragma once

#include "runtime/FusedGeometry.h"
#include "runtime/cuda/Finish.h"
#include "runtime/cuda/Storage.h"

#include <utility>

namespace sluice::detail {

/// FusedGeometry as a kernel argument. Partials of sum s begin at s * chunks * columns; a vector has `columns` a chunk,
/// a scalar one a task.
template <int Operands, int Sums> struct FusedView {
  int64_t rows, rowExtent, lastRow, tiles, chunks, rowsPerChunk;
  int width, outer;
  int64_t extent[Shape::maxRank];
  int64_t stride[Operands > 0 ? Operands : 1][Shape::maxRank];
  bool fixed[Operands > 0 ? Operands : 1]; ///< the same in every row
  bool vectorSum[Sums > 0 ? Sums : 1];

  __device__ int64_t offset(int operand, int64_t row) const {
    int64_t offset = 0;
    for (int d = outer - 1; d > 0; --d) {
      offset += row % extent[d] * stride[operand][d];
      row /= extent[d];
    }
    return outer ? offset + row * stride[operand][0] : 0;
  }
};

/// How a thread walks a region's operands.
template <typename F> struct FusedWalk {
  static constexpr bool narrow = halvesOf<F>(F::inputs + F::outputs) > 0;
  static constexpr int vector = narrow || HasMeans<F>::value ? 2 * Cut::vector : Cut::vector; ///< columns of a thread
  using Total = std::conditional_t<narrow, float, double>;
  using Inputs = float[F::inputs + 1][vector];
  using Sums = float[F::sums > 0 ? F::sums : 1][vector];
  /// What streamed rows share: among halves, f32 that advances along columns stands for [C] vectors.
  static constexpr bool isVector(int input) { return narrow && stepOf<F>(input) && typeOf<F>(input) == DataType::F32; }
  /// How many of the first `inputs`.
  static constexpr int vectorsOf(int inputs) {
    int count = 0;
    for (int i = 0; i < inputs; ++i)
      count += isVector(i);
    return count;
  }
  /// Tensors that are read in each row.
  static constexpr int images() {
    int count = 0;
    for (int i = 0; i < F::inputs; ++i)
      count += stepOf<F>(i) && !isVector(i) && typeOf<F>(i) != DataType::Bit;
    return count;
  }
};

template <typename F> struct FusedPointers {
  const void *in[F::inputs + 1];
  void *out[F::outputs + 1];
  float *sum[F::sums + 1];
  double *partials;
  unsigned *counters; ///< null: sums are finished by another launch
  const DeviceState *state;
};

template <typename F, int Number, int Group>
__device__ inline void loadOperand(float (&to)[FusedWalk<F>::vector], const FusedPointers<F> &p, int64_t offset,
                                   int64_t column, int count) {
  if constexpr (typeOf<F>(Number) == DataType::Bit) {
    loadMask<Group>(to, static_cast<const uint32_t *>(p.in[Number]), offset + column, count);
  } else {
    const auto *from = static_cast<const StoredOf<typeOf<F>(Number)> *>(p.in[Number]) + offset;
    if constexpr (stepOf<F>(Number))
      loadColumns<Group>(to, from + column, count);
    else
      for (float &value : to)
        value = widened(*from);
  }
}
template <typename F, int Number, int Group>
__device__ inline void storeOutput(const FusedPointers<F> &p, int64_t offset, const float (&from)[FusedWalk<F>::vector],
                                   int count) {
  storeColumns<Group>(static_cast<StoredOf<typeOf<F>(F::inputs + Number)> *>(p.out[Number]) + offset, from, count);
}

/// The region of column i of a thread; `means`: of its row, where F takes some.
template <typename F, size_t... I, typename... Means>
__device__ inline Values<F::outputs + F::sums> callFused(const F &f, const typename FusedWalk<F>::Inputs &in, int i,
                                                         const Element &element, std::index_sequence<I...>,
                                                         const Means &...means) {
  if constexpr (IsRandom<F>::value)
    return f(element, means..., in[I][i]...);
  else
    return f(means..., in[I][i]...);
}

/// Adds what the rows so far gave to the totals, and begins anew.
template <typename Total, int Sums, int Vector>
__device__ inline void drain(float (&run)[Sums][Vector], Total (&totals)[Sums][Vector]) {
  for (int s = 0; s < Sums; ++s)
    for (int i = 0; i < Vector; ++i)
      totals[s][i] += static_cast<Total>(run[s][i]), run[s][i] = 0;
}

/// Columns of a thread of which rows of this length have some.
template <typename F> __device__ inline int columnsFrom(int64_t column, int64_t length) {
  return static_cast<int>(
      min(static_cast<int64_t>(FusedWalk<F>::vector), max(static_cast<int64_t>(0), length - column)));
}

/// Neighbouring elements of a row, which one thread computes at a time.
struct FusedPlace {
  int64_t row, column;
  int count; ///< of them
};

/// Where a block and a thread begin, and which rows are the block's.
template <typename F> struct FusedTask {
  int64_t tile, chunk, column, begin, end;
  int lanes, lane, place; ///< place: of the thread among those across the tile

  template <typename View>
  __device__ explicit FusedTask(const View &view)
      : tile(blockIdx.x % view.tiles), chunk(blockIdx.x / view.tiles), begin(chunk * view.rowsPerChunk),
        end(min(view.rows, begin + view.rowsPerChunk)), lanes(Cut::threads / view.width),
        lane(static_cast<int>(threadIdx.x) / view.width), place(static_cast<int>(threadIdx.x) % view.width) {
    column = (tile * view.width + place) * FusedWalk<F>::vector;
  }
  template <typename View> __device__ int columnsOf(const View &view, int64_t row) const {
    return row < end ? columnsFrom<F>(column, row + 1 == view.rows ? view.lastRow : view.rowExtent) : 0;
  }
};

template <typename F, int Group, size_t... O>
__device__ inline void storeOutputs(const FusedView<F::inputs + F::outputs, F::sums> &view, const FusedPointers<F> &p,
                                    const FusedPlace &at, const float (&out)[F::outputs + 1][FusedWalk<F>::vector],
                                    std::index_sequence<O...>) {
  (storeOutput<F, static_cast<int>(O), Group>(p, view.offset(F::inputs + static_cast<int>(O), at.row) + at.column,
                                              out[O], at.count),
   ...);
}

/// The region for the elements of one place: stores its outputs and adds its sums to `run`.
template <typename F, int Group, typename... Means>
__device__ inline void fusedRow(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                const FusedPointers<F> &p, const typename FusedWalk<F>::Inputs &in,
                                const FusedPlace &at, Element &element, typename FusedWalk<F>::Sums &run,
                                const Means &...means) {
  constexpr int vector = FusedWalk<F>::vector;
  [[maybe_unused]] float out[F::outputs + 1][vector];
#pragma unroll
  for (int i = 0; i < vector; ++i) {
    element.index = static_cast<uint64_t>(at.row * view.rowExtent + at.column + i);
    const Values<F::outputs + F::sums> value =
        callFused<F>(f, in, i, element, std::make_index_sequence<F::inputs>(), means...);
    for (int o = 0; o < F::outputs; ++o)
      out[o][i] = value.v[o];
    for (int s = 0; s < F::sums; ++s)
      run[s][i] += Group == vector || i < at.count ? value.v[F::outputs + s] : 0.0f;
  }
  storeOutputs<F, Group>(view, p, at, out, std::make_index_sequence<F::outputs>());
}

template <typename F> __device__ inline Element firstElement([[maybe_unused]] const FusedPointers<F> &p) {
  if constexpr (IsRandom<F>::value)
    return {p.state->seed, p.state->draw, 0};
  else
    return {0, 0, 0};
}

} // namespace sluice::detail
