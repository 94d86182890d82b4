// SPDX-License-Identifier: Apache-2.0
// Cuda side of Fused<F>. A thread holds up to four neighbouring columns and walks down the rows of its chunk, so that
// per-channel operands are read once and sums stay in registers: short runs of rows are added in float, the rest in
// double. Blocks write partial sums to scratch, a second kernel adds them in order; no atomics, so the bits depend on
// shapes alone.
#pragma once

#include "runtime/common/FusedGeometry.h"
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Launch.h"

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

template <typename F> struct FusedPointers {
  const float *in[F::inputs + 1];
  float *out[F::outputs + 1];
  double *partials;
  const DeviceState *state;
};

/// Four columns of one operand in one row; `count` of them exist.
template <bool Whole> __device__ inline void loadColumns(float (&to)[Cut::vector], const float *from, int count) {
  if constexpr (Whole) {
    const float4 four = *reinterpret_cast<const float4 *>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    for (int i = 0; i < Cut::vector; ++i)
      to[i] = i < count ? from[i] : 0.0f;
  }
}
/// The same of a mask, whose element `first` is the first of the four.
template <bool Whole> __device__ inline void loadMask(float (&to)[Cut::vector], const uint32_t *words, int64_t first, int count) {
  const uint32_t nibble = Whole ? words[first / 32] >> (first % 32) : 0;
  for (int i = 0; i < Cut::vector; ++i) {
    const int64_t at = first + i;
    const uint32_t bit = Whole ? nibble >> i : i < count ? words[at / 32] >> (at % 32) : 0;
    to[i] = static_cast<float>(bit & 1);
  }
}
template <bool Whole> __device__ inline void storeColumns(float *to, const float (&from)[Cut::vector], int count) {
  if constexpr (Whole) {
    *reinterpret_cast<float4 *>(to) = make_float4(from[0], from[1], from[2], from[3]);
  } else {
    for (int i = 0; i < Cut::vector; ++i)
      if (i < count)
        to[i] = from[i];
  }
}

template <typename F, size_t... I>
__device__ inline Values<F::outputs + F::sums> callFused(const F &f, const float (&in)[F::inputs + 1][Cut::vector],
                                                         int i, const Element &element, std::index_sequence<I...>) {
  if constexpr (IsRandom<F>::value)
    return f(element, in[I][i]...);
  else
    return f(in[I][i]...);
}

/// Adds the lanes of a block in order; partials of this task. `shared` has a double for every column of every thread.
template <int Sums, typename View>
__device__ inline void storePartials(const View &view, const double (&totals)[Sums][Cut::vector], double *partials,
                                     int64_t tile, int64_t chunk, double *shared) {
  const int across = view.width * Cut::vector, lanes = Cut::threads / view.width;
  const int column = static_cast<int>(threadIdx.x) % view.width, lane = static_cast<int>(threadIdx.x) / view.width;
  for (int s = 0; s < Sums; ++s) {
    double *to = partials + s * view.chunks * view.rowExtent;
    __syncthreads();
    for (int i = 0; i < Cut::vector; ++i)
      shared[lane * across + column * Cut::vector + i] = totals[s][i];
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

template <typename F, bool Whole, size_t... I>
__device__ inline void fusedTask(const F &f, const FusedView<F::inputs + F::outputs, F::sums> &view,
                                 const FusedPointers<F> &p, std::index_sequence<I...> inputs) {
  constexpr int sums = F::sums > 0 ? F::sums : 1, block = 32;
  const int64_t tile = blockIdx.x % view.tiles, chunk = blockIdx.x / view.tiles;
  const int lanes = Cut::threads / view.width;
  const int64_t column = (tile * view.width + threadIdx.x % view.width) * Cut::vector;
  const int64_t begin = chunk * view.rowsPerChunk, end = min(view.rows, begin + view.rowsPerChunk);
  Element element{0, 0, 0};
  if constexpr (IsRandom<F>::value)
    element = {p.state->seed, p.state->step, 0};

  float in[F::inputs + 1][Cut::vector];
  auto load = [&](int input, bool steps, bool mask, int64_t row, int count) {
    if (mask)
      return loadMask<Whole>(in[input], reinterpret_cast<const uint32_t *>(p.in[input]), view.offset(input, row) + column, count);
    const float *from = p.in[input] + view.offset(input, row);
    if (steps)
      return loadColumns<Whole>(in[input], from + column, count);
    for (int i = 0; i < Cut::vector; ++i)
      in[input][i] = *from;
  };
  float run[sums][Cut::vector] = {};
  double totals[sums][Cut::vector] = {};
  int inRun = 0;
  bool first = true;
  for (int64_t row = begin + threadIdx.x / view.width; row < end; row += lanes) {
    const int64_t length = row + 1 == view.rows ? view.lastRow : view.rowExtent;
    const int count = static_cast<int>(min(static_cast<int64_t>(Cut::vector), max(static_cast<int64_t>(0), length - column)));
    if (count == 0)
      continue;
    (((first || !view.fixed[I]) ? load(static_cast<int>(I), stepOf<F>(static_cast<int>(I)), maskOf<F>(static_cast<int>(I)), row, count) : void()), ...);
    first = false;
    float out[F::outputs + 1][Cut::vector];
#pragma unroll
    for (int i = 0; i < Cut::vector; ++i) {
      element.index = static_cast<uint64_t>(row * view.rowExtent + column + i);
      const Values<F::outputs + F::sums> value = callFused(f, in, i, element, inputs);
      for (int o = 0; o < F::outputs; ++o)
        out[o][i] = value.v[o];
      for (int s = 0; s < F::sums; ++s)
        run[s][i] += Whole || i < count ? value.v[F::outputs + s] : 0.0f;
    }
    for (int o = 0; o < F::outputs; ++o)
      storeColumns<Whole>(p.out[o] + view.offset(F::inputs + o, row) + column, out[o], count);
    if (F::sums > 0 && ++inRun == block) {
      inRun = 0;
      for (int s = 0; s < F::sums; ++s)
        for (int i = 0; i < Cut::vector; ++i)
          totals[s][i] += static_cast<double>(run[s][i]), run[s][i] = 0;
    }
  }
  if constexpr (F::sums > 0) {
    __shared__ double shared[Cut::threads * Cut::vector];
    for (int s = 0; s < F::sums; ++s)
      for (int i = 0; i < Cut::vector; ++i)
        totals[s][i] += static_cast<double>(run[s][i]);
    storePartials<F::sums>(view, totals, p.partials, tile, chunk, shared);
  }
}

template <typename F, bool Whole>
__global__ void __launch_bounds__(Cut::threads)
    fusedKernel(F f, FusedView<F::inputs + F::outputs, F::sums> view, FusedPointers<F> p) {
  fusedTask<F, Whole>(f, view, p, std::make_index_sequence<F::inputs>());
}

inline bool aligned(const void *address) { return reinterpret_cast<size_t>(address) % 16 == 0; }

} // namespace detail

template <typename F> class Fused : public Kernel {
  static_assert(F::inputs + F::outputs + F::sums <= FusedGeometry::maxOperands, "too many operands in one region");
  using View = detail::FusedView<F::inputs + F::outputs, F::sums>;

public:
  Fused(const char *node, Shape shape, Layout layout, std::initializer_list<Tensor> inputs,
        std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> sums, F f = {})
      : Kernel(node), f(f), geometry(node, shape, layout, inputs, stepArray().at, outputs, sums),
        cut(geometry.rows, geometry.rowExtent, F::sums > 0 ? Cut::sumTasks : Cut::elementTasks, F::sums > 0 ? 8 : 2) {
    detail::checkOperands<F>(node, inputs, outputs, sums);
    if (F::sums > 0)
      workspace = static_cast<size_t>(sumScratch(cut, F::sums));
    describe();
  }

  void run(Stream &stream, std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outputs,
           std::initializer_list<Tensor> sums, const Tensor &scratch) const {
    detail::FusedPointers<F> p{};
    SumResults results{};
    bool vectors = whole;
    for (int i = 0; i < F::inputs && i < static_cast<int>(inputs.size()); ++i) {
      p.in[i] = stream.data<const float>(inputs.begin()[i]);
      vectors &= !detail::stepOf<F>(i) || detail::aligned(p.in[i]);
    }
    for (int i = 0; i < F::outputs && i < static_cast<int>(outputs.size()); ++i) {
      p.out[i] = stream.data<float>(outputs.begin()[i]);
      vectors &= detail::aligned(p.out[i]);
    }
    for (int i = 0; i < F::sums && i < static_cast<int>(sums.size()); ++i) {
      results.target[i] = stream.data<float>(sums.begin()[i]);
      results.vector[i] = geometry.vectorSum[i];
    }
    results.sums = F::sums;
    if (F::sums > 0)
      p.partials = stream.data<double>(scratch);
    if (detail::IsRandom<F>::value)
      p.state = deviceState(stream);
    if (geometry.rows == 0 || geometry.rowExtent == 0)
      return;
    stream.launch(node, "fused", [&] {
      const auto kernel = vectors ? detail::fusedKernel<F, true> : detail::fusedKernel<F, false>;
      kernel<<<static_cast<unsigned>(cut.tasks()), Cut::threads, 0, native(stream)>>>(f, view, p);
      if (F::sums > 0)
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
    whole = view.rowExtent % Cut::vector == 0 && view.lastRow % Cut::vector == 0;
    for (int operand = 0; operand < F::inputs + F::outputs; ++operand) {
      view.fixed[operand] = true;
      const bool steps = operand >= F::inputs || detail::stepOf<F>(operand);
      for (int d = 0; d < geometry.outer; ++d) {
        view.stride[operand][d] = geometry.stride[operand][d];
        view.fixed[operand] &= geometry.stride[operand][d] == 0;
        whole &= !steps || geometry.stride[operand][d] % Cut::vector == 0;
      }
    }
    for (int s = 0; s < F::sums; ++s)
      view.vectorSum[s] = geometry.vectorSum[s];
  }

  F f;
  FusedGeometry geometry;
  Cut cut;
  View view{};
  bool whole = true; ///< all rows of all operands split into aligned groups of four
};

} // namespace sluice
