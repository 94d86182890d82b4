// SPDX-License-Identifier: Apache-2.0
// What no plan can beat: memory floor and lower bounds of the makespan.
#pragma once

#include "passes/planner/Problem.h"

#include <utility>
#include <vector>

namespace sluice::planner {

/// The budget that no plan of whole tensors can pass, in bytes: the largest op's inputs, outputs and workspace, plus
/// base; what a backward op may read in encoded form counts with its smallest form.
Bytes memoryFloor(const Problem &problem);

/// Seconds that no schedule which only keeps and offloads can beat in `memory` bytes (base included): all compute, or
/// what must cross the link (Beaumont et al., Euro-Par 2020, Proposition 3, with one term a direction on a duplex
/// link).
Seconds offloadBound(const Problem &problem, Bytes memory);

/// What a bound counts on.
struct BoundActions {
  bool offload = true, recompute = true, encode = true;
};

/// Seconds that no schedule with these actions can beat: at the peak of the program that keeps everything `memory` is
/// exceeded by some bytes; encodings remove theirs for nothing, the others cross the link or cost re-runs of their
/// producers, cheapest first. Infinite when the actions cannot make room there.
Seconds exactBound(const Problem &problem, Bytes memory, BoundActions actions);

/// Smallest T with T >= compute + (cost of making `missing - moved` bytes again) and T >= moved * secondsPerByte, over
/// all `moved` up to `movable`. `parts` are (bytes, seconds) that can be made again, taken by least seconds per byte.
Seconds splitBound(Seconds compute, double missing, double movable, double secondsPerByte,
                   std::vector<std::pair<double, Seconds>> parts);

} // namespace sluice::planner
