// SPDX-License-Identifier: Apache-2.0
// Attention on kernels of our own: every type, mask and depth, dropout too; or what an engine leaves of one.
#pragma once

#include "runtime/Attention.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

struct AttentionProblem {
  AttentionPass pass;
  AttentionGeometry g;
  float scale;
  bool causal;
  float ratio;   ///< of dropout
  uint64_t key;  ///< of its draws
  DataType type; ///< of all but masks and logsumexp, which are F32
};

/// In device memory, row-major; those of the other pass are null.
struct AttentionOperands {
  const void *q, *k, *v;
  const float *mask, *kept; ///< null for none
  void *y;
  float *logsumexp;
  const void *dy = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

/// Whether a row whose scores have this logarithm of their sum sees no key, or sees them beside numbers in which the
/// logarithm of a sum is lost, of scores or of their exponentials.
SLUICE_KERNEL bool hidesRow(float logsumexp) {
  const float most = __builtin_huge_valf();
  return !(logsumexp >= -16384.0f) || logsumexp == most;
}

/// y and logsumexp. `state`: of the step, where there is dropout. `onlyHidden`: of the rows that hidesRow() tells by
/// what is there. Only enqueues.
void tiledAttention(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state,
                    const AttentionOperands &operands, bool onlyHidden = false);
/// dq, dk and dv; `onlyHidden`: dq of those rows alone, and what they add to dk and dv.
void tiledAttentionGradient(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state,
                            const AttentionOperands &operands, bool onlyHidden = false);

} // namespace sluice
