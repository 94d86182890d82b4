// SPDX-License-Identifier: Apache-2.0
// See AttentionHidden.h.
#include "runtime/cuda/AttentionHidden.h"

#include "runtime/cuda/Device.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

/// Halves of either type, eight at a time, as engines have them.
__global__ void copyVisibleRows(AttentionGeometry g, const uint16_t *dy, const float *logsumexp, int64_t first,
                                int64_t members, uint16_t *to, float *sums) {
  const int64_t length = g.columns / 8;
  SLUICE_GRID_LOOP(i, members * g.rows * length) {
    const int64_t row = i / length % g.rows, member = first + i / length / g.rows;
    const float sum = logsumexp[member * g.rows + row];
    const bool hidden = hidesRow(sum);
    if (i % length == 0)
      sums[i / length] = hidden ? __builtin_huge_valf() : sum;
    const uint16_t *from = dy + g.start(g.y, member) + row * g.y.row + i % length * 8;
    reinterpret_cast<uint4 *>(to)[i] = hidden ? make_uint4(0, 0, 0, 0) : *reinterpret_cast<const uint4 *>(from);
  }
}

} // namespace

void copyVisible(cudaStream_t stream, const AttentionProblem &problem, const AttentionOperands &o, int64_t first,
                 int64_t members, void *to, float *sums) {
  const AttentionGeometry &g = problem.g;
  copyVisibleRows<<<blocksFor(members * g.rows * g.columns / 8, blockThreads), blockThreads, 0, stream>>>(
      g, static_cast<const uint16_t *>(o.dy), o.logsumexp, first, members, static_cast<uint16_t *>(to), sums);
}

void computeHidden(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state,
                   const AttentionOperands &o) {
  const int64_t rows = problem.g.members * problem.g.rows;
  if (problem.pass == AttentionPass::Backward)
    return tiledAttentionGradient(stream, problem, state, o, true);
  checkCuda(cudaMemsetAsync(o.logsumexp + rows, 0, static_cast<size_t>(rows) * sizeof(float), stream),
            "cannot clear sums of an attention");
  tiledAttention(stream, problem, state, o, true);
}

} // namespace sluice
