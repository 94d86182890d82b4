// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: a launch for each step, two for a Gru, whose second product needs what the first made of all units.
// A block has a tile of samples by units; it multiplies through shared memory, then its threads run the cell's rule.
// Sums are float, in the order of the depth.
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/kernels/RecurrenceRules.h"

namespace sluice {

using recurrence::BackwardRow;
using recurrence::ForwardRow;

namespace {

constexpr int side = 16;

/// A left factor [batch, depth] and a right one [depth, units], with the distances between neighbours.
struct Factors {
  const float *left;
  int64_t leftStep;
  const float *right;
  int64_t depthStep, unitStep;
};

/// The element (sample, unit) of the product; all threads of a block call it.
__device__ float product(const Factors &f, int64_t batch, int64_t width, int64_t sample, int64_t unit) {
  __shared__ float left[side * (side + 1)], right[side * (side + 1)];
  const int64_t firstUnit = unit - threadIdx.x;
  float sum = 0;
  for (int64_t first = 0; first < width; first += side) {
    const int64_t k = first + threadIdx.x, column = firstUnit + threadIdx.y; // whose neighbours often lie side by side
    __syncthreads();
    left[threadIdx.y * (side + 1) + threadIdx.x] = sample < batch && k < width ? f.left[sample * f.leftStep + k] : 0.0f;
    if (f.depthStep == 1)
      right[threadIdx.x * (side + 1) + threadIdx.y] =
          k < width && column < width ? f.right[k + column * f.unitStep] : 0.0f;
    else
      right[threadIdx.y * (side + 1) + threadIdx.x] =
          first + threadIdx.y < width && unit < width ? f.right[(first + threadIdx.y) * f.depthStep + unit] : 0.0f;
    __syncthreads();
    for (int i = 0; i < side; ++i)
      sum += left[threadIdx.y * (side + 1) + i] * right[i * (side + 1) + threadIdx.x];
  }
  return sum;
}

/// What the kernels of one step read and write; rows of the sample 0.
template <typename Rule> struct ForwardStep {
  int64_t batch, width;
  const float *weight, *x, *before, *bias;
  float *saved, *hidden, *cell, *reset;

  static constexpr int64_t gates = gatesOf(Rule::cell), kept = savedOf(Rule::cell);
  __device__ ForwardRow row(int64_t sample) const {
    const int64_t at = sample * width;
    return {width,
            x + at * gates,
            before + at,
            bias,
            saved + at * kept,
            hidden + at,
            cell ? cell + at : nullptr,
            reset ? reset + at : nullptr};
  }
  /// The gate's product, in the place where the rule looks for it.
  __device__ void multiply(int gate, const float *from, int64_t sample, int64_t unit) const {
    const float sum = product({from, width, weight + gate * width * width, 1, width}, batch, width, sample, unit);
    float *to = kept ? saved + (sample * kept + Rule::slot(gate)) * width : hidden + sample * width;
    if (sample < batch && unit < width)
      to[unit] = sum;
  }
};

template <typename Rule> struct BackwardStep {
  int64_t batch, width;
  const float *weight, *dy, *saved, *hidden, *before, *cellBefore;
  int64_t cellStep; ///< from one sample's c of the step before to the next one's
  float *carry, *carryCell, *dgates, *reset;
  const float *laterGates, *laterReset; ///< of the step after this one; null where there is none

  static constexpr int64_t gates = gatesOf(Rule::cell), kept = savedOf(Rule::cell);
  __device__ BackwardRow row(int64_t sample) const {
    const int64_t at = sample * width;
    return {width,
            dy + at,
            saved + at * kept,
            hidden + at,
            before + at,
            cellBefore + sample * cellStep,
            carry + at,
            carryCell + (carryCell ? at : 0),
            dgates + at * gates,
            reset + (reset ? at : 0)};
  }
  /// What comes to h of this step through the products of the later one.
  __device__ void addLater(int64_t sample, int64_t unit) const {
    float sum = 0;
    for (int gate = 0; laterGates && gate < Rule::early; ++gate) {
      const bool own = Rule::cell == RecurrentCell::GruLinearBeforeReset && gate == 2;
      sum += product({own ? laterReset : laterGates + gate * width, own ? width : gates * width,
                      weight + gate * width * width, width, 1},
                     batch, width, sample, unit);
    }
    if (sample < batch && unit < width)
      carry[sample * width + unit] = sum + (laterGates && Rule::direct ? carry[sample * width + unit] : 0.0f);
  }
};

/// Calls body(sample, unit) for the tiles of this block, beyond the borders, too.
template <typename Body> __device__ void forTiles(int64_t batch, int64_t width, Body &&body) {
  const int64_t across = (width + side - 1) / side, tiles = across * ((batch + side - 1) / side);
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    body(tile / across * side + threadIdx.y, tile % across * side + threadIdx.x);
}

template <typename Rule> __global__ void stepForward(ForwardStep<Rule> s) {
  forTiles(s.batch, s.width, [&](int64_t sample, int64_t unit) {
    for (int gate = 0; gate < Rule::early; ++gate)
      s.multiply(gate, s.before, sample, unit);
    if (sample < s.batch && unit < s.width)
      Rule::forward(s.row(sample), unit);
  });
}

template <typename Rule> __global__ void stepForwardLate(ForwardStep<Rule> s) {
  forTiles(s.batch, s.width, [&](int64_t sample, int64_t unit) {
    s.multiply(Rule::early, s.reset, sample, unit);
    if (sample < s.batch && unit < s.width)
      Rule::forwardLate(s.row(sample), unit);
  });
}

template <typename Rule> __global__ void stepBackward(BackwardStep<Rule> s) {
  forTiles(s.batch, s.width, [&](int64_t sample, int64_t unit) {
    s.addLater(sample, unit);
    if (sample < s.batch && unit < s.width)
      Rule::backward(s.row(sample), unit);
  });
}

template <typename Rule> __global__ void stepBackwardLate(BackwardStep<Rule> s) {
  constexpr int64_t gates = BackwardStep<Rule>::gates;
  forTiles(s.batch, s.width, [&](int64_t sample, int64_t unit) {
    const float sum = product(
        {s.dgates + Rule::early * s.width, gates * s.width, s.weight + Rule::early * s.width * s.width, s.width, 1},
        s.batch, s.width, sample, unit);
    if (sample < s.batch && unit < s.width) {
      s.dgates[(sample * gates + 1) * s.width + unit] = sum;
      Rule::backwardLate(s.row(sample), unit);
    }
  });
}

template <typename Rule> __global__ void finishBackward(BackwardStep<Rule> s) {
  forTiles(s.batch, s.width, [&](int64_t sample, int64_t unit) { s.addLater(sample, unit); });
}

} // namespace

Recurrence::Recurrence(Node node, RecurrentCell cell, Shape gates, bool reverse)
    : Kernel(node), geometry(recurrenceGeometry(node, cell, gates, reverse)) {
  workspace = static_cast<size_t>(cuda::recurrenceScratch(geometry));
}

static unsigned blocksOf(const Recurrence::Geometry &g) {
  return blocksFor((g.width + side - 1) / side * ((g.batch + side - 1) / side), 1);
}

void Recurrence::forward(Stream &stream, const Tensor &gates, const Tensor &weight, const Tensor &initial,
                         const Tensor &extra, const Tensor &hidden, const Tensor &saved, const Tensor &cell,
                         const Tensor &scratch) const {
  const float *x = stream.data<float>(gates), *w = stream.data<float>(weight), *first = stream.data<float>(initial),
              *other = stream.data<float>(extra);
  float *h = stream.data<float>(hidden), *kept = stream.data<float>(saved), *c = stream.data<float>(cell),
        *pad = stream.data<float>(scratch);
  const Geometry &g = geometry;
  const int64_t state = g.batch * g.width;
  const dim3 block(side, side);
  stream.launch(node, "recurrence", [&] {
    if (c)
      checkCuda(cudaMemcpyAsync(c, other, cell.bytes(), cudaMemcpyDefault, native(stream)), "cannot copy a state");
    recurrence::forCell(g.cell, [&](auto rule) {
      using Rule = decltype(rule);
      for (int64_t step = 0; step < g.steps; ++step) {
        const int64_t t = g.at(step);
        const ForwardStep<Rule> s{g.batch,
                                  g.width,
                                  w,
                                  x + t * state * gatesOf(g.cell),
                                  step ? h + g.at(step - 1) * state : first,
                                  other,
                                  kept + t * state * savedOf(g.cell),
                                  h + t * state,
                                  c,
                                  pad};
        stepForward<<<blocksOf(g), block, 0, native(stream)>>>(s);
        if constexpr (recurrence::isLate<Rule>())
          stepForwardLate<<<blocksOf(g), block, 0, native(stream)>>>(s);
      }
    });
  });
}

void Recurrence::backward(Stream &stream, const Tensor &dy, const Tensor &weight, const Tensor &initial,
                          const Tensor &hidden, const Tensor &saved, const Tensor &initialCell, const Tensor &dcell,
                          const Tensor &dgates, const Tensor &dinitial, const Tensor &rest, const Tensor &) const {
  const float *w = stream.data<float>(weight), *dc = stream.data<float>(dcell), *pdy = stream.data<float>(dy),
              *first = stream.data<float>(initial), *h = stream.data<float>(hidden), *kept = stream.data<float>(saved),
              *firstCell = stream.data<float>(initialCell);
  float *dx = stream.data<float>(dgates), *dh = stream.data<float>(dinitial), *more = stream.data<float>(rest);
  const Geometry &g = geometry;
  const int64_t state = g.batch * g.width, saves = savedOf(g.cell);
  const bool lstm = g.cell == RecurrentCell::Lstm;
  const dim3 block(side, side);
  stream.launch(node, "recurrence_backward", [&] {
    if (lstm && dc)
      checkCuda(cudaMemcpyAsync(more, dc, rest.bytes(), cudaMemcpyDefault, native(stream)), "cannot copy a state");
    else if (lstm)
      checkCuda(cudaMemsetAsync(more, 0, rest.bytes(), native(stream)), "cannot clear a tensor");
    recurrence::forCell(g.cell, [&](auto rule) {
      using Rule = decltype(rule);
      BackwardStep<Rule> s{};
      s.batch = g.batch, s.width = g.width, s.weight = w, s.carry = dh, s.carryCell = lstm ? more : nullptr;
      for (int64_t step = g.steps - 1; step >= 0; --step) {
        const int64_t t = g.at(step), before = step ? g.at(step - 1) : 0;
        s.dy = pdy + t * state, s.saved = kept + t * state * saves, s.hidden = h + t * state;
        s.before = step ? h + before * state : first;
        s.cellBefore = step && lstm ? kept + before * state * saves + 4 * g.width : firstCell;
        s.cellStep = !lstm ? 0 : step ? saves * g.width : g.width;
        s.dgates = dx + t * state * gatesOf(g.cell), s.reset = lstm || !more ? nullptr : more + t * state;
        stepBackward<<<blocksOf(g), block, 0, native(stream)>>>(s);
        if constexpr (recurrence::isLate<Rule>())
          stepBackwardLate<<<blocksOf(g), block, 0, native(stream)>>>(s);
        s.laterGates = s.dgates, s.laterReset = s.reset;
      }
      finishBackward<<<blocksOf(g), block, 0, native(stream)>>>(s);
    });
  });
}

} // namespace sluice
