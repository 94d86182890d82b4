// SPDX-License-Identifier: Apache-2.0
// What the dropout of an attention keeps, for an engine that reads it: the draws of AttentionTiles.h and of the host.
#pragma once

#include "runtime/cuda/AttentionTiles.h"

namespace sluice {

/// Writes kept [members, rows, keys] of the problem's halves, row-major from a multiple of 16 bytes, of the members
/// from `first` on: 1 where the dropout keeps a probability, 0 where it does not or a causal mask hides the key. Only
/// enqueues; `state` is the step's.
void drawKept(cudaStream_t stream, const AttentionProblem &problem, const DeviceState *state, int64_t first,
              int64_t members, void *kept);

} // namespace sluice
