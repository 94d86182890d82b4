// SPDX-License-Identifier: Apache-2.0
// Attention on kernels of our own: every type, mask and depth, dropout too.
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

/// y and logsumexp. `state`: of the step, where there is dropout. Only enqueues.
void tiledAttention(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state,
                    const AttentionOperands &operands);
/// dq, dk and dv.
void tiledAttentionGradient(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state,
                            const AttentionOperands &operands);

} // namespace sluice
