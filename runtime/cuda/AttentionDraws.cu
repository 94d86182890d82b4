// SPDX-License-Identifier: Apache-2.0
// See AttentionDraws.h. A thread draws eight neighbours and stores them at once.
#include "runtime/cuda/AttentionDraws.h"

#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

struct Draws {
  int64_t rows, keys, elements;
  uint64_t first, key; ///< first: the draw of element 0
  float ratio;
  bool causal;
};

template <typename Half> __global__ void drawKeptKernel(Draws d, const DeviceState *state, Half *kept) {
  constexpr int together = 8;
  const uint64_t draws = randomKey(state->seed, d.key, state->draw);
  SLUICE_GRID_LOOP(eight, (d.elements + together - 1) / together) {
    const int64_t at = eight * together;
    int64_t row = at / d.keys % d.rows, key = at % d.keys;
    float values[together];
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const bool hidden = d.causal && key > row;
      values[i] = !hidden && uniform(draws, d.first + static_cast<uint64_t>(at + i)) >= d.ratio ? 1.0f : 0.0f;
      if (++key == d.keys)
        key = 0, row = row + 1 == d.rows ? 0 : row + 1;
    }
    if (at + together <= d.elements)
      storeVector(kept + at, values);
    else
      for (int i = 0; at + i < d.elements; ++i)
        store(kept + at + i, values[i]);
  }
}

} // namespace

void drawKept(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state, int64_t first,
              int64_t members, void *kept) {
  const AttentionGeometry &g = problem.g;
  const int64_t scores = g.rows * g.keys;
  const Draws draws{g.rows,      g.keys,        members * scores, static_cast<uint64_t>(first * scores),
                    problem.key, problem.ratio, problem.causal};
  const unsigned blocks = blocksFor((draws.elements + 7) / 8, blockThreads);
  if (problem.type == DataType::F16)
    drawKeptKernel<<<blocks, blockThreads, 0, stream>>>(draws, state, static_cast<Float16 *>(kept));
  else
    drawKeptKernel<<<blocks, blockThreads, 0, stream>>>(draws, state, static_cast<BFloat16 *>(kept));
}

} // namespace sluice
