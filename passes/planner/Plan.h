// SPDX-License-Identifier: Apache-2.0
// A strategy's answer in a form that can be executed: one action per buffer with positions in program order, so that
// memory follows from the order of the program alone and never from timing. The compiler's apply-plan pass consumes it.
#pragma once

#include "passes/planner/Problem.h"

#include <string>
#include <variant>
#include <vector>

namespace sluice::planner {

enum class Action { Keep, Offload, Compress, Encode, Invert, Recompute };

/// What happens to one buffer between its last forward access and its first later access.
/// Position k of the program is op k together with the recomputed ops that stand just before it. The device bytes are
/// live
///   - from the first writer up to and including position `freeBefore - 1`: position `freeBefore` is the first that may
///   reuse them, and
///     waits for the copy out, then
///   - again from position `prefetchAfter + 1` on: the copy back is issued when op `prefetchAfter` has ended (and when
///   the bytes that it
///     reuses have left), and position `neededBy` waits for it.
/// Offload: both copies run on the copy engines, the one out beside the forward ops that still read the content. Codecs
/// pack while they copy, so nothing of it is on the device. Compress: the same with device memory
/// instead of the host's: the codec stream packs after `offloadAfter` and unpacks from `prefetchAfter` on. The packed
/// form is live from op `offloadAfter` up to and including the first step of position `neededBy`; where the last
/// readers take its mask, to the last of them, and the bytes that came back end with the last access before. Invert: as
/// Compress without packing. The compute stream rebuilds the content just before position `neededBy`, ahead of the
/// recomputed ops that stand there, from the inversion's sources, which must be on the device then; `prefetchAfter` is
/// `neededBy - 1`, no op need read the content at `neededBy`, and the side slot is live like a packed form. Encode: the
/// raw bytes are gone from `freeBefore` on and never return; the encoded form lives from op `offloadAfter` to the last
/// access. Recompute: positions stay -1; the first life ends at the last access before the re-execution that writes the
/// buffer again.
struct Decision {
  Action action = Action::Keep;
  std::string
      codec; ///< of codecTable: of copies for offload ("": raw), of the device for compress, read directly for encode
  /// The copy out is issued when this op has ended: the last forward writer or a later one; -1 for content from outside
  /// the step: at its start. Encode, compress, invert: the last forward access.
  int offloadAfter = -1;
  int freeBefore =
      -1; ///< first position that runs with the device bytes gone; offloadAfter < freeBefore <= prefetchAfter
  int prefetchAfter = -1; ///< the copy back (decode, invert) is issued when this op has ended
  int neededBy = -1;      ///< first position that may read the content again; prefetchAfter < neededBy
  std::string reason;     ///< one line for --explain
};

/// Forward ops that run again just before op `before`, in this order. An op that writes a buffer without reading it
/// starts a new life of the buffer, which ends at its last reader; every later access means that new life.
struct Recompute {
  int before = -1;
  std::vector<int> ops;
};

struct Plan {
  std::string strategy;
  std::vector<Decision> decisions;   ///< one per buffer of the Problem
  std::vector<Recompute> recomputes; ///< by increasing `before`
  std::vector<int> alternatives;     ///< chosen alternative per op (empty: all as in the Problem)
  Bytes peakBytes = 0;               ///< most bytes live at once by program order, base included
  Bytes arenaBytes = 0;              ///< base + packed height; what the device arena needs
};

/// No plan of this strategy fits; planning again with `smallestMemory` succeeds.
struct Infeasible {
  Bytes smallestMemory = 0;
  std::string reason;
};

/// The request makes no sense: unknown strategy or knob, an action that the target cannot execute, missing data. Names
/// the culprit.
struct Refused {
  std::string reason;
};

using Answer = std::variant<Plan, Infeasible, Refused>;

} // namespace sluice::planner
