// SPDX-License-Identifier: Apache-2.0
// Cuda side of Fused<F>. A thread holds up to four neighbouring columns, eight of halves, which is 16 bytes either way,
// and walks down the rows of its chunk, so that per-channel operands are read once and sums stay in registers: short
// runs of rows are added in float, the rest in double. Blocks write partial sums, the last ones add them in order
// (Finish.h), or a second kernel where some are scalars: the bits depend on shapes alone. Of halves threads load two
// rows at a time, as the memory's latency asks for, find per-channel operands in shared memory and add in float alone,
// all of which leaves registers for that; a value has 8 or 11 bits.
#pragma once

#include "runtime/FusedGeometry.h"
#include "runtime/cuda/Finish.h"
#include "runtime/cuda/Storage.h"

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

/// How a thread walks a region's operands.
template <typename F> struct FusedWalk {
  static constexpr bool narrow = halvesOf<F>(F::inputs + F::outputs) > 0;
  static constexpr int vector = narrow ? 2 * Cut::vector : Cut::vector; ///< columns of a thread
  static constexpr int streamedRows = 2;
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
  using Vectors = float[vectorsOf(F::inputs) > 0 ? vectorsOf(F::inputs) : 1][Cut::mostColumns];
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

/// The region of column i of a thread, whose first one is `across` of the tile's.
template <typename F, bool Streamed, size_t... I>
__device__ inline Values<F::outputs + F::sums> callFused(const F &f, const typename FusedWalk<F>::Inputs &in,
                                                         const typename FusedWalk<F>::Vectors &vectors, int across,
                                                         int i, const Element &element, std::index_sequence<I...>) {
  using Walk = FusedWalk<F>;
  if constexpr (IsRandom<F>::value)
    return f(element, (Streamed && Walk::isVector(I) ? vectors[Walk::vectorsOf(I)][across + i] : in[I][i])...);
  else
    return f((Streamed && Walk::isVector(I) ? vectors[Walk::vectorsOf(I)][across + i] : in[I][i])...);
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

/// The threads of the first row bring the columns of their block; a barrier is still to come.
template <typename F, int Group, size_t... I>
__device__ inline void shareVectors(typename FusedWalk<F>::Vectors &vectors, const FusedPointers<F> &p, int across,
                                    int64_t column, int count, std::index_sequence<I...>) {
  using Walk = FusedWalk<F>;
  [[maybe_unused]] const auto share = [&](auto input) {
    if constexpr (Walk::isVector(input)) {
      float values[Walk::vector];
      loadOperand<F, input, Group>(values, p, 0, column, count);
      storeVector(&vectors[Walk::vectorsOf(input)][across], values);
    }
  };
  (share(std::integral_constant<int, static_cast<int>(I)>()), ...);
}

/// Neighbouring elements of a row, which one thread computes at a time.
struct FusedPlace {
  int64_t row, column;
  int count;  ///< of them
  int across; ///< column of the first one in its tile
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
template <typename F, int Group, bool Streamed>
__device__ inline void fusedRow(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                const FusedPointers<F> &p, const typename FusedWalk<F>::Inputs &in,
                                const typename FusedWalk<F>::Vectors &vectors, const FusedPlace &at, Element &element,
                                typename FusedWalk<F>::Sums &run) {
  constexpr int vector = FusedWalk<F>::vector;
  [[maybe_unused]] float out[F::outputs + 1][vector];
#pragma unroll
  for (int i = 0; i < vector; ++i) {
    element.index = static_cast<uint64_t>(at.row * view.rowExtent + at.column + i);
    const Values<F::outputs + F::sums> value =
        callFused<F, Streamed>(f, in, vectors, at.across, i, element, std::make_index_sequence<F::inputs>());
    for (int o = 0; o < F::outputs; ++o)
      out[o][i] = value.v[o];
    for (int s = 0; s < F::sums; ++s)
      run[s][i] += Group == vector || i < at.count ? value.v[F::outputs + s] : 0.0f;
  }
  storeOutputs<F, Group>(view, p, at, out, std::make_index_sequence<F::outputs>());
}

/// Group: what all rows of all operands split into, see loadColumns(). Streamed: every isVector() operand is the same
/// in all rows.
template <typename F, int Group, bool Streamed, size_t... I>
__device__ inline void fusedTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                 const FusedPointers<F> &p, std::index_sequence<I...> inputs) {
  using Walk = FusedWalk<F>;
  constexpr int block = 32, vector = Walk::vector, together = Streamed ? Walk::streamedRows : 1;
  constexpr bool shares = Streamed && Walk::vectorsOf(F::inputs) > 0;
  alignas(16) __shared__ typename Walk::Vectors vectors;
  const int64_t tile = blockIdx.x % view.tiles, chunk = blockIdx.x / view.tiles;
  const int lanes = Cut::threads / view.width, lane = static_cast<int>(threadIdx.x) / view.width,
            across = static_cast<int>(threadIdx.x) % view.width * vector;
  const int64_t column = tile * view.width * vector + across;
  const int64_t begin = chunk * view.rowsPerChunk, end = min(view.rows, begin + view.rowsPerChunk);
  Element element{0, 0, 0};
  if constexpr (IsRandom<F>::value)
    element = {p.state->seed, p.state->draw, 0};

  typename Walk::Inputs in[together];
  typename Walk::Sums run = {};
  typename Walk::Total totals[F::sums > 0 ? F::sums : 1][vector] = {};
  int inRun = 0;
  bool first = true;
  if (shares && lane == 0)
    shareVectors<F, Group>(vectors, p, across, column, columnsFrom<F>(column, view.rowExtent), inputs);
  for (int64_t firstRow = begin; firstRow < end; firstRow += lanes * together) {
    int count[together]; // columns of each row
#pragma unroll
    for (int u = 0; u < together; ++u) {
      const int64_t row = firstRow + lane + u * lanes, length = row + 1 == view.rows ? view.lastRow : view.rowExtent;
      count[u] = row < end ? columnsFrom<F>(column, length) : 0;
      if (count[u] == 0)
        continue;
      (((Streamed ? !Walk::isVector(I) : first || !view.fixed[I])
            ? loadOperand<F, static_cast<int>(I), Group>(in[u][I], p, view.offset(static_cast<int>(I), row), column,
                                                         count[u])
            : void()),
       ...);
      first = false;
    }
    if (shares && firstRow == begin)
      __syncthreads();
#pragma unroll
    for (int u = 0; u < together; ++u) {
      if (count[u] == 0)
        continue;
      fusedRow<F, Group, Streamed>(f, view, p, in[u], vectors, {firstRow + lane + u * lanes, column, count[u], across},
                                   element, run);
      if (F::sums > 0 && !Walk::narrow && ++inRun == block) {
        inRun = 0;
        drain(run, totals);
      }
    }
  }
  if constexpr (F::sums > 0) {
    drain(run, totals);
    storePartials(view, totals, p.partials, tile, chunk);
    finishSums<F::sums, vector>(view, p.partials, p.sum, p.counters, tile, chunk);
  }
}

template <typename F, int Group, bool Streamed>
__global__ void __launch_bounds__(Cut::threads)
    fusedKernel(F f, FusedView<F::inputs + F::outputs, F::sums> view, FusedPointers<F> p) {
  fusedTask<F, Group, Streamed>(f, view, p, std::make_index_sequence<F::inputs>());
}

inline bool aligned(const void *address) { return reinterpret_cast<size_t>(address) % 16 == 0; }

} // namespace detail

template <typename F> class Fused : public Kernel {
  static_assert(F::inputs + F::outputs + F::sums <= FusedGeometry::maxOperands, "too many operands in one region");
  using View = detail::FusedView<F::inputs + F::outputs, F::sums>;
  using Walk = detail::FusedWalk<F>;

public:
  Fused(Node node, Shape shape, Layout layout, std::initializer_list<Tensor> inputs,
        std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> sums, F f = {})
      : Kernel(node), f(f), geometry(node, shape, layout, inputs, stepArray().at, outputs, sums),
        cut(geometry.rows, geometry.rowExtent, F::sums > 0 ? Cut::sumTasks : Cut::elementTasks,
            F::sums > 0 || Walk::narrow ? 8 : 2) {
    detail::checkOperands<F>(node, inputs, outputs, sums);
    if (F::sums > 0)
      workspace = static_cast<size_t>(sumScratch(cut, F::sums));
    describe();
  }

  void run(Stream &stream, std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outputs,
           std::initializer_list<Tensor> sums, const Tensor &scratch) const {
    detail::FusedPointers<F> p{};
    SumResults results{};
    bool together = true, scalars = false;
    for (int i = 0; i < F::inputs && i < static_cast<int>(inputs.size()); ++i) {
      p.in[i] = stream.address(inputs.begin()[i]);
      together &= !detail::stepOf<F>(i) || detail::aligned(p.in[i]);
    }
    for (int i = 0; i < F::outputs && i < static_cast<int>(outputs.size()); ++i) {
      p.out[i] = stream.address(outputs.begin()[i]);
      together &= detail::aligned(p.out[i]);
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
      const auto kernel = kernelFor(together ? group : 1);
      kernel<<<static_cast<unsigned>(cut.tasks()), Cut::threads, 0, native(stream)>>>(f, view, p);
      if (scalars)
        finishFusedSums(native(stream), cut, p.partials, results);
    });
    stream.countZeros(outputs);
  }

private:
  /// Half groups are rare enough to have no kernel of their own where rows do not stream.
  auto kernelFor(int together) const {
    const bool streamed = Walk::narrow && streams;
    if (together == Walk::vector)
      return streamed ? detail::fusedKernel<F, Walk::vector, Walk::narrow>
                      : detail::fusedKernel<F, Walk::vector, false>;
    return streamed && together > 1 ? detail::fusedKernel<F, Cut::vector, Walk::narrow>
                                    : detail::fusedKernel<F, 1, false>;
  }

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
    view.tiles = cut.tiles, view.chunks = cut.chunks, view.rowsPerChunk = cut.rowsPerChunk,
    view.width = cut.widthFor(Walk::vector);
    view.outer = geometry.outer;
    std::copy_n(geometry.extent, Shape::maxRank, view.extent);
    const auto split = [this](int64_t extent) {
      while (extent % group)
        group = group > Cut::vector ? Cut::vector : 1;
    };
    split(view.rowExtent), split(view.lastRow);
    for (int operand = 0; operand < F::inputs + F::outputs; ++operand) {
      view.fixed[operand] = true;
      const bool steps = operand >= F::inputs || detail::stepOf<F>(operand);
      for (int d = 0; d < geometry.outer; ++d) {
        view.stride[operand][d] = geometry.stride[operand][d];
        view.fixed[operand] &= geometry.stride[operand][d] == 0;
        split(steps ? geometry.stride[operand][d] : 0);
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
  int group = Walk::vector; ///< neighbours: all rows of all operands split into such groups
  bool streams = true;      ///< what Walk takes for vectors is the same in every row
};

} // namespace sluice
