// SPDX-License-Identifier: Apache-2.0
// What no plan can beat: memory floor and lower bounds of the makespan. "Floor" is a bound below every plan, "smallest"
// (Infeasible::smallestMemory) what one strategy needs.
#pragma once

#include "passes/planner/Abilities.h"

#include <utility>
#include <vector>

namespace sluice::planner {

/// No plan of whole tensors fits a smaller budget, in bytes: the largest op's inputs, outputs and workspace, plus
/// base; what a backward op may read in encoded form counts with its smallest such form.
Bytes memoryFloor(const Problem &problem);

/// Seconds that no schedule with these actions can beat. At every position where the program that keeps everything
/// exceeds `memory`, the excess must be away: what an op there touches cannot be, encodings remove theirs for nothing,
/// the others cross the link or are packed before the position and come back after it, or cost re-runs of their
/// producers or inversions, cheapest first. Infinite when the actions cannot make room.
Seconds actionBound(const Problem &problem, Bytes memory, Abilities actions);

/// Bytes that can leave the device before a moment and return after it, beside the compute stream; rates in seconds per
/// byte.
struct Removal {
  double bytes = 0, out = 0, in = 0;
};

/// Smallest makespan of a step that computes for `before` seconds until some moment and for `after` seconds from it on,
/// when `missing` bytes must be away at that moment: each of `streams` carries some of them out before and back after,
/// and the rest costs re-runs after it: `parts` are (bytes, seconds), taken by least seconds per byte. Infinite when
/// all together are too little.
Seconds splitBound(Seconds before, Seconds after, double missing, const std::vector<Removal> &streams,
                   std::vector<std::pair<double, Seconds>> parts);

} // namespace sluice::planner
