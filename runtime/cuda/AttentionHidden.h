// SPDX-License-Identifier: Apache-2.0
// Rows that a mask hides entirely, of an attention that an engine computes otherwise. Where a mask's numbers are so
// large that scores are lost beside them, the logarithm of a row's sum cannot say what the sum was; where all of them
// are -infinity there is no sum. Such rows are told by their logarithm as the engine left it. All functions only
// enqueue.
#pragma once

#include "runtime/cuda/AttentionTiles.h"

namespace sluice {

/// Writes to `to` dy's rows of the members from `first` on, [members, rows, columns], those that are hidden as 0, and
/// to `sums` their logsumexp, +infinity for those that are hidden: whatever their scores are, an engine then has
/// probabilities of 0 for them and no gradient from them.
void copyVisible(cudaStream_t stream, const AttentionProblem &problem, const AttentionOperands &operands, int64_t first,
                 int64_t members, void *to, float *sums);

/// After the engine has run, for all members. Forward: y of hidden rows, their two numbers in logsumexp, and the second
/// number of all others, which is 0. Backward: dq of hidden rows, and what they add to dk and dv.
void computeHidden(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state,
                   const AttentionOperands &operands);

} // namespace sluice
