// SPDX-License-Identifier: Apache-2.0
// Cuda side of Fused<F>. A thread holds up to four neighbouring columns and walks down the rows of its chunk, so that
// per-channel operands are read once and sums stay in registers: short runs of rows are added in float, the rest in
// double. Blocks write partial sums, the last ones add them in order (Finish.h), or a second kernel where some are
// scalars: the bits depend on shapes alone. Of halves four columns are 8 bytes only: threads load four rows at a time,
// as much as the memory's latency asks for, and add in float alone, whose registers that takes; a value has 8 or 11
// bits.
#pragma once

#include "runtime/cuda/Finish.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/FusedGeometry.h"

#include <utility>

namespace sluice {

/// Adds up the partials of a region's sums, see FusedView: vectors column by column, scalars over all tiles too.
struct SumResults {
  float *target[FusedGeometry::maxOperands];
  bool vector[FusedGeometry::maxOperands];
  int sums;
};
void finishFusedSums(cudaStream_t stream, const Cut &cut, const double *partials, const SumResults &results);

namespace detail {

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

template <DataType Type>
using StoredOf =
    std::conditional_t<Type == DataType::BF16, BFloat16, std::conditional_t<Type == DataType::F16, Float16, float>>;

/// How a thread walks a region's operands.
template <typename F> struct FusedWalk {
  static constexpr bool narrow = halvesOf<F>(F::inputs + F::outputs) > 0;
  static constexpr int streamedRows = 4;
  using Total = std::conditional_t<narrow, float, double>;
  /// What streamed rows share: among halves, f32 that advances along columns stands for [C] vectors.
  static constexpr bool isVector(int input) { return narrow && stepOf<F>(input) && typeOf<F>(input) == DataType::F32; }
};

template <typename F> struct FusedPointers {
  const void *in[F::inputs + 1];
  void *out[F::outputs + 1];
  float *sum[F::sums + 1];
  double *partials;
  unsigned *counters; ///< null: sums are finished by another launch
  const DeviceState *state;
};

/// Neighbouring columns of one operand in one row; `count` of them exist, all where the region is Whole.
template <bool Whole, int Count, typename T>
__device__ inline void loadColumns(float (&to)[Count], const T *from, int count) {
  if constexpr (Whole) {
    loadVector(to, from);
  } else {
    for (int i = 0; i < Count; ++i)
      to[i] = i < count ? widened(from[i]) : 0.0f;
  }
}
/// The same of a mask, whose element `first` is the first of them.
template <bool Whole, int Count>
__device__ inline void loadMask(float (&to)[Count], const uint32_t *words, int64_t first, int count) {
  const uint32_t together = Whole ? words[first / 32] >> (first % 32) : 0;
  for (int i = 0; i < Count; ++i) {
    const int64_t at = first + i;
    const uint32_t bit = Whole ? together >> i : i < count ? words[at / 32] >> (at % 32) : 0;
    to[i] = static_cast<float>(bit & 1);
  }
}
template <bool Whole, int Count, typename T>
__device__ inline void storeColumns(T *to, const float (&from)[Count], int count) {
  if constexpr (Whole) {
    storeVector(to, from);
  } else {
    for (int i = 0; i < Count; ++i)
      if (i < count)
        store(to + i, from[i]);
  }
}

template <typename F, int Number, bool Whole>
__device__ inline void loadOperand(float (&to)[Cut::vector], const FusedPointers<F> &p, int64_t offset, int64_t column,
                                   int count) {
  if constexpr (typeOf<F>(Number) == DataType::Bit) {
    loadMask<Whole>(to, static_cast<const uint32_t *>(p.in[Number]), offset + column, count);
  } else {
    const auto *from = static_cast<const StoredOf<typeOf<F>(Number)> *>(p.in[Number]) + offset;
    if constexpr (stepOf<F>(Number))
      loadColumns<Whole>(to, from + column, count);
    else
      for (int i = 0; i < Cut::vector; ++i)
        to[i] = widened(*from);
  }
}
template <typename F, int Number, bool Whole>
__device__ inline void storeOutput(const FusedPointers<F> &p, int64_t offset, const float (&from)[Cut::vector],
                                   int count) {
  storeColumns<Whole>(static_cast<StoredOf<typeOf<F>(F::inputs + Number)> *>(p.out[Number]) + offset, from, count);
}

/// The region of column i; `shared` holds what rows share when they are Streamed.
template <typename F, bool Streamed, size_t... I>
__device__ inline Values<F::outputs + F::sums> callFused(const F &f, const float (&in)[F::inputs + 1][Cut::vector],
                                                         const float (&shared)[F::inputs + 1][Cut::vector], int i,
                                                         const Element &element, std::index_sequence<I...>) {
  if constexpr (IsRandom<F>::value)
    return f(element, (Streamed && FusedWalk<F>::isVector(static_cast<int>(I)) ? shared[I][i] : in[I][i])...);
  else
    return f((Streamed && FusedWalk<F>::isVector(static_cast<int>(I)) ? shared[I][i] : in[I][i])...);
}

/// Adds the lanes of a block in order; partials of this task.
template <int Sums, typename View, typename Total>
__device__ inline void storePartials(const View &view, const Total (&totals)[Sums][Cut::vector], double *partials,
                                     int64_t tile, int64_t chunk) {
  __shared__ double shared[Cut::threads * Cut::vector];
  const int across = view.width * Cut::vector, lanes = Cut::threads / view.width;
  const int column = static_cast<int>(threadIdx.x) % view.width, lane = static_cast<int>(threadIdx.x) / view.width;
  for (int s = 0; s < Sums; ++s) {
    double *to = partials + s * view.chunks * view.rowExtent;
    __syncthreads();
    for (int i = 0; i < Cut::vector; ++i)
      shared[lane * across + column * Cut::vector + i] = static_cast<double>(totals[s][i]);
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

/// Adds what the rows so far gave to the totals, and begins anew.
template <typename Total, int Sums>
__device__ inline void drain(float (&run)[Sums][Cut::vector], Total (&totals)[Sums][Cut::vector]) {
  for (int s = 0; s < Sums; ++s)
    for (int i = 0; i < Cut::vector; ++i)
      totals[s][i] += static_cast<Total>(run[s][i]), run[s][i] = 0;
}

/// The region for `count` neighbouring elements of a row: stores its outputs and adds its sums to `run`.
template <typename F, bool Whole, bool Streamed, size_t... I, size_t... O>
__device__ inline void fusedRow(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                const FusedPointers<F> &p, const float (&in)[F::inputs + 1][Cut::vector],
                                const float (&streamed)[F::inputs + 1][Cut::vector], Element &element, int64_t row,
                                int64_t column, int count, float (&run)[F::sums > 0 ? F::sums : 1][Cut::vector],
                                std::index_sequence<I...> inputs, std::index_sequence<O...>) {
  [[maybe_unused]] float out[F::outputs + 1][Cut::vector];
#pragma unroll
  for (int i = 0; i < Cut::vector; ++i) {
    element.index = static_cast<uint64_t>(row * view.rowExtent + column + i);
    const Values<F::outputs + F::sums> value = callFused<F, Streamed>(f, in, streamed, i, element, inputs);
    for (int o = 0; o < F::outputs; ++o)
      out[o][i] = value.v[o];
    for (int s = 0; s < F::sums; ++s)
      run[s][i] += Whole || i < count ? value.v[F::outputs + s] : 0.0f;
  }
  (storeOutput<F, static_cast<int>(O), Whole>(p, view.offset(F::inputs + static_cast<int>(O), row) + column, out[O],
                                              count),
   ...);
}

/// Streamed: Whole, and every isVector() operand is the same in all rows.
template <typename F, bool Whole, bool Streamed, size_t... I, size_t... O>
__device__ inline void fusedTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                 const FusedPointers<F> &p, std::index_sequence<I...> inputs,
                                 std::index_sequence<O...> outputs) {
  using Walk = FusedWalk<F>;
  using Total = typename Walk::Total;
  constexpr int sums = F::sums > 0 ? F::sums : 1, block = 32, vector = Cut::vector,
                together = Streamed ? Walk::streamedRows : 1;
  const int64_t tile = blockIdx.x % view.tiles, chunk = blockIdx.x / view.tiles;
  const int lanes = Cut::threads / view.width;
  const int64_t column = (tile * view.width + threadIdx.x % view.width) * vector;
  const int64_t begin = chunk * view.rowsPerChunk, end = min(view.rows, begin + view.rowsPerChunk);
  Element element{0, 0, 0};
  if constexpr (IsRandom<F>::value)
    element = {p.state->seed, p.state->draw, 0};

  float in[together][F::inputs + 1][vector];
  float run[sums][vector] = {};
  Total totals[sums][vector] = {};
  int inRun = 0;
  bool first = true;
  if (Streamed && column < view.rowExtent)
    ((Walk::isVector(static_cast<int>(I)) ? loadOperand<F, static_cast<int>(I), Whole>(in[0][I], p, 0, column, vector)
                                          : void()),
     ...);
  for (int64_t firstRow = begin + threadIdx.x / view.width; firstRow < end; firstRow += lanes * together) {
    int count[together]; // columns of each row
#pragma unroll
    for (int u = 0; u < together; ++u) {
      const int64_t row = firstRow + u * lanes, length = row + 1 == view.rows ? view.lastRow : view.rowExtent;
      count[u] =
          row < end ? static_cast<int>(min(static_cast<int64_t>(vector), max(static_cast<int64_t>(0), length - column)))
                    : 0;
      if (count[u] == 0)
        continue;
      (((Streamed ? !Walk::isVector(static_cast<int>(I)) : first || !view.fixed[I])
            ? loadOperand<F, static_cast<int>(I), Whole>(in[u][I], p, view.offset(static_cast<int>(I), row), column,
                                                         count[u])
            : void()),
       ...);
      first = false;
    }
#pragma unroll
    for (int u = 0; u < together; ++u) {
      const int64_t row = firstRow + u * lanes;
      if (count[u] == 0)
        continue;
      fusedRow<F, Whole, Streamed>(f, view, p, in[u], in[0], element, row, column, count[u], run, inputs, outputs);
      if (F::sums > 0 && !Walk::narrow && ++inRun == block) {
        inRun = 0;
        drain(run, totals);
      }
    }
  }
  if constexpr (F::sums > 0) {
    drain(run, totals);
    storePartials<F::sums>(view, totals, p.partials, tile, chunk);
    finishSums<F::sums>(view, p.partials, p.sum, p.counters, tile, chunk);
  }
}

template <typename F, bool Whole, bool Streamed>
__global__ void __launch_bounds__(Cut::threads)
    fusedKernel(F f, FusedView<F::inputs + F::outputs, F::sums> view, FusedPointers<F> p) {
  fusedTask<F, Whole, Streamed>(f, view, p, std::make_index_sequence<F::inputs>(),
                                std::make_index_sequence<F::outputs>());
}

inline bool aligned(const void *address) { return reinterpret_cast<size_t>(address) % 16 == 0; }

} // namespace detail

template <typename F> class Fused : public Kernel {
  static_assert(F::inputs + F::outputs + F::sums <= FusedGeometry::maxOperands, "too many operands in one region");
  using View = detail::FusedView<F::inputs + F::outputs, F::sums>;
  using Walk = detail::FusedWalk<F>;
  static constexpr int vector = Cut::vector;

public:
  Fused(const char *node, Shape shape, Layout layout, std::initializer_list<Tensor> inputs,
        std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> sums, F f = {})
      : Kernel(node), f(f), geometry(node, shape, layout, inputs, stepArray().at, outputs, sums),
        cut(geometry.rows, geometry.rowExtent, F::sums > 0 ? Cut::sumTasks : Cut::elementTasks,
            F::sums > 0    ? 8
            : Walk::narrow ? 2 * Walk::streamedRows
                           : 2) {
    detail::checkOperands<F>(node, inputs, outputs, sums);
    if (F::sums > 0)
      workspace = static_cast<size_t>(sumScratch(cut, F::sums));
    describe();
  }

  void run(Stream &stream, std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outputs,
           std::initializer_list<Tensor> sums, const Tensor &scratch) const {
    detail::FusedPointers<F> p{};
    SumResults results{};
    bool vectors = whole, scalars = false;
    for (int i = 0; i < F::inputs && i < static_cast<int>(inputs.size()); ++i) {
      p.in[i] = stream.address(inputs.begin()[i]);
      vectors &= !detail::stepOf<F>(i) || detail::aligned(p.in[i]);
    }
    for (int i = 0; i < F::outputs && i < static_cast<int>(outputs.size()); ++i) {
      p.out[i] = stream.address(outputs.begin()[i]);
      vectors &= detail::aligned(p.out[i]);
    }
    for (int i = 0; i < F::sums && i < static_cast<int>(sums.size()); ++i) {
      results.target[i] = p.sum[i] = stream.data<float>(sums.begin()[i]);
      results.vector[i] = geometry.vectorSum[i];
      scalars |= !results.vector[i];
    }
    results.sums = F::sums;
    if (F::sums > 0)
      p.partials = stream.data<double>(scratch), p.counters = scalars ? nullptr : finishCounters();
    if (detail::IsRandom<F>::value)
      p.state = deviceState(stream);
    if (geometry.rows == 0 || geometry.rowExtent == 0)
      return;
    stream.launch(node, "fused", [&] {
      const auto kernel = !vectors                  ? detail::fusedKernel<F, false, false>
                          : Walk::narrow && streams ? detail::fusedKernel<F, true, Walk::narrow>
                                                    : detail::fusedKernel<F, true, false>;
      kernel<<<static_cast<unsigned>(cut.tasks()), Cut::threads, 0, native(stream)>>>(f, view, p);
      if (scalars)
        finishFusedSums(native(stream), cut, p.partials, results);
    });
  }

private:
  struct Steps {
    bool at[F::inputs + 1];
  };
  static Steps stepArray() {
    Steps steps{};
    for (int i = 0; i < F::inputs; ++i)
      steps.at[i] = detail::stepOf<F>(i);
    return steps;
  }

  void describe() {
    view.rows = geometry.rows, view.rowExtent = geometry.rowExtent;
    view.lastRow = geometry.lastSingleRow;
    view.tiles = cut.tiles, view.chunks = cut.chunks, view.rowsPerChunk = cut.rowsPerChunk, view.width = cut.width;
    view.outer = geometry.outer;
    std::copy_n(geometry.extent, Shape::maxRank, view.extent);
    whole = view.rowExtent % vector == 0 && view.lastRow % vector == 0;
    for (int operand = 0; operand < F::inputs + F::outputs; ++operand) {
      view.fixed[operand] = true;
      const bool steps = operand >= F::inputs || detail::stepOf<F>(operand);
      for (int d = 0; d < geometry.outer; ++d) {
        view.stride[operand][d] = geometry.stride[operand][d];
        view.fixed[operand] &= geometry.stride[operand][d] == 0;
        whole &= !steps || geometry.stride[operand][d] % vector == 0;
      }
    }
    for (int i = 0; i < F::inputs; ++i)
      streams &= !Walk::isVector(i) || view.fixed[i];
    for (int s = 0; s < F::sums; ++s)
      view.vectorSum[s] = geometry.vectorSum[s];
  }

  F f;
  FusedGeometry geometry;
  Cut cut;
  View view{};
  bool whole = true;   ///< all rows of all operands split into aligned groups of four
  bool streams = true; ///< what Walk takes for vectors is the same in every row
};

} // namespace sluice
