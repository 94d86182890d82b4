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

/// What a bound counts on. Lossy ones are off unless named.
struct BoundActions {
  bool offload = true, recompute = true, encode = true;
  bool fp16 = false, compress = false, invert = false;
  static BoundActions all() { return {true, true, true, true, true, true}; }
};

/// Seconds that no schedule with these actions can beat. At every position where the program that keeps everything
/// exceeds `memory`, the excess must be away: what an op there touches cannot be, encodings remove theirs for nothing,
/// compressions as fast as the codec stream packs and unpacks, the others cross the link or cost re-runs of their
/// producers or inversions, cheapest first. Infinite when the actions cannot make room.
Seconds exactBound(const Problem &problem, Bytes memory, BoundActions actions);

/// Bytes that can be removed from the device beside the compute stream, in seconds per byte of their stream.
struct Removal {
  double bytes = 0, secondsPerByte = 0;
};

/// Smallest T within which `missing` bytes can be removed: every stream removes up to T's worth of its bytes, and the
/// compute stream has T - compute for making `parts`, (bytes, seconds), again, least seconds per byte first. Infinite
/// when all together are too little.
Seconds splitBound(Seconds compute, double missing, const std::vector<Removal> &streams,
                   std::vector<std::pair<double, Seconds>> parts);

} // namespace sluice::planner
