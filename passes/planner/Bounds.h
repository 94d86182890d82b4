// SPDX-License-Identifier: Apache-2.0
// What no plan can beat: memory floor and lower bounds of the makespan.
#pragma once

#include "passes/planner/Problem.h"

namespace sluice::planner {

/// The budget that no plan of whole tensors can pass, in bytes: the largest op's inputs, outputs and workspace, plus base;
/// what a backward op may read in encoded form counts with its smallest form.
Bytes memoryFloor(const Problem &problem);

/// Seconds that no schedule which only keeps and offloads can beat in `memory` bytes (base included): all compute, or what must cross the
/// link (Beaumont et al., Euro-Par 2020, Proposition 3, with one term a direction on a duplex link).
Seconds offloadBound(const Problem &problem, Bytes memory);

} // namespace sluice::planner
