// SPDX-License-Identifier: Apache-2.0
// Cuda side of Fused<F>. A thread holds up to four neighbouring columns, eight of halves, which is 16 bytes either way,
// and walks down the rows of its chunk, so that per-channel operands are read once and sums stay in registers: short
// runs of rows are added in float, the rest in double. Blocks write partial sums, the last ones add them in order
// (Finish.h), or a second kernel where some are scalars: the bits depend on shapes alone. Most regions of halves are
// walked as FusedStream.h says.
#pragma once

#include "runtime/cuda/FusedQueue.h"
#include "runtime/cuda/FusedRows.h"

namespace sluice {

/// Adds up the partials of a region's sums, see FusedView: vectors column by column, scalars over all tiles too.
struct SumResults {
  float *target[FusedGeometry::maxOperands];
  bool vector[FusedGeometry::maxOperands];
  int sums;
};
void finishFusedSums(cudaStream_t stream, const Cut &cut, const double *partials, const SumResults &results);

namespace detail {

/// Row by row. Group: what all rows of all operands split into, see loadColumns().
template <typename F, int Group, size_t... I>
__device__ inline void fusedTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                 const FusedPointers<F> &p, std::index_sequence<I...>) {
  using Walk = FusedWalk<F>;
  constexpr int block = 32, vector = Walk::vector;
  const FusedTask<F> task(view);
  Element element = firstElement<F>(p);
  typename Walk::Inputs in;
  typename Walk::Sums run = {};
  typename Walk::Total totals[F::sums > 0 ? F::sums : 1][vector] = {};
  int inRun = 0;
  bool first = true;
  for (int64_t row = task.begin + task.lane; row < task.end; row += task.lanes) {
    const int count = task.columnsOf(view, row);
    if (count == 0)
      continue;
    ((first || !view.fixed[I] ? loadOperand<F, static_cast<int>(I), Group>(
                                    in[I], p, view.offset(static_cast<int>(I), row), task.column, count)
                              : void()),
     ...);
    first = false;
    fusedRow<F, Group>(f, view, p, in, {row, task.column, count}, element, run);
    if (F::sums > 0 && !Walk::narrow && ++inRun == block) {
      inRun = 0;
      drain(run, totals);
    }
  }
  if constexpr (F::sums > 0) {
    drain(run, totals);
    __shared__ double shared[Cut::threads * vector];
    storePartials(view, totals, p.partials, task.tile, task.chunk, shared);
    finishSums<F::sums, vector>(view, p.partials, p.sum, p.counters, task.tile, task.chunk);
  }
}

/// Streamed: every isVector() operand is the same in all rows, see FusedStream.h.
template <typename F, int Group, bool Streamed>
__global__ void __launch_bounds__(Cut::threads, HasMeans<F>::value ? 2
                                                : Streamed         ? FusedStream<F>::blocks
                                                                   : 1)
    fusedKernel(F f, FusedView<F::inputs + F::outputs, F::sums> view, FusedPointers<F> p) {
  if constexpr (HasMeans<F>::value)
    rowsTask<F, Group>(f, view, p, std::make_index_sequence<F::inputs>());
  else if constexpr (Streamed && Group == FusedWalk<F>::vector && FusedStream<F>::queues())
    queuedTask<F>(f, view, p);
  else if constexpr (Streamed)
    streamedTask<F, Group>(f, view, p);
  else
    fusedTask<F, Group>(f, view, p, std::make_index_sequence<F::inputs>());
}

} // namespace detail

template <typename F> class Fused : public Kernel {
  static_assert(F::inputs + F::outputs + F::sums <= FusedGeometry::maxOperands, "too many operands in one region");
  using View = detail::FusedView<F::inputs + F::outputs, F::sums>;
  using Walk = detail::FusedWalk<F>;

public:
  Fused(Node node, Shape shape, Layout layout, std::initializer_list<Tensor> inputs,
        std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> sums, F f = {})
      : Kernel(node), f(f), geometry(node, shape, layout, inputs, stepArray().at, outputs, sums), cut(cutOf(geometry)) {
    detail::checkOperands<F>(node, inputs, outputs, sums);
    if (detail::HasMeans<F>::value && (geometry.rowExtent != shape[1] || geometry.rowExtent > Cut::mostRowColumns))
      throw std::invalid_argument(std::string("a region of '") + node.name + "' takes means of rows of " +
                                  std::to_string(shape[1]) + " elements, which are not whole to its kernel");
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
  static Cut cutOf(const FusedGeometry &geometry) {
    if (detail::HasMeans<F>::value)
      return Cut::ofWholeRows(geometry.rows, geometry.rowExtent);
    constexpr bool sums = F::sums > 0;
    return Cut(geometry.rows, geometry.rowExtent, sums ? Cut::sumTasks : Cut::elementTasks,
               sums           ? 8
               : Walk::narrow ? 16
                              : 2);
  }

  /// Half groups are rare enough to have no kernel of their own where rows do not stream.
  auto kernelFor(int together) const {
    constexpr bool mayStream = Walk::narrow && !detail::HasMeans<F>::value;
    const bool streamed = mayStream && streams;
    if (together == Walk::vector)
      return streamed ? detail::fusedKernel<F, Walk::vector, mayStream> : detail::fusedKernel<F, Walk::vector, false>;
    return streamed && together > 1 ? detail::fusedKernel<F, Cut::vector, mayStream> : detail::fusedKernel<F, 1, false>;
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
