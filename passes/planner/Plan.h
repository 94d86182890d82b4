// SPDX-License-Identifier: Apache-2.0
// A strategy's answer in a form that can be executed: one action per buffer with positions in program order, so that memory follows from
// the order of the program alone and never from timing. The compiler's apply-plan pass consumes it.
#pragma once

#include "passes/planner/Problem.h"

#include <string>
#include <variant>
#include <vector>

namespace sluice::planner {

enum class Action { Keep, Offload, Compress, Encode, Invert, Recompute };

/// What happens to one buffer between its last forward access and its first backward access.
/// Positions are op indices of the Problem. The device bytes are live
///   - up to and including op `freeBefore - 1`: op `freeBefore` is the first that may reuse them, and waits for the copy (or codec), then
///   - again from the end of op `prefetchAfter` on: the copy back is issued there and op `neededBy` waits for it.
struct Decision {
  Action action = Action::Keep;
  std::string codec;      ///< offload: "", "fp16", "zvc"; compress: "zfp", "fp16"; encode: "mask", "argmax", "counter"
  int offloadAfter = -1;  ///< the copy out (encode, compress) is issued when this op has ended: the last forward access, or later
  int freeBefore = -1;    ///< first op that runs with the device bytes gone
  int prefetchAfter = -1; ///< the copy back (decode, invert) is issued when this op has ended
  int neededBy = -1;      ///< first op that reads the content again
  std::string reason;     ///< one line for --explain
};

/// Forward ops that run again just before op `before`, in this order. Their outputs live from there to their last backward reader.
struct Recompute {
  int before = -1;
  std::vector<int> ops;
};

struct Plan {
  std::string strategy;
  std::vector<Decision> decisions; ///< one per buffer of the Problem
  std::vector<Recompute> recomputes;
  std::vector<int> alternatives;   ///< chosen alternative per op (empty: all 0)
};

/// No plan of this strategy fits; `smallestMemory` would do.
struct Infeasible {
  Bytes smallestMemory = 0;
  std::string reason;
};

using Answer = std::variant<Plan, Infeasible>;

} // namespace sluice::planner
