// SPDX-License-Identifier: Apache-2.0
// A strategy's answer in a form that can be executed: one action per buffer with positions in program order, so that
// memory follows from the order of the program alone and never from timing. The compiler's apply-plan pass consumes it.
#pragma once

#include "passes/planner/Problem.h"
#include "runtime/ActionTable.h"

#include <string>
#include <variant>
#include <vector>

namespace sluice::planner {

/// In the IR both Compress and Encode become train.encode, with the role encode: Compress packs bytes that train.decode
/// unpacks, Encode leaves a form that the readers take as it is.
using sluice::Action;

/// A stretch for which a buffer's device bytes are gone. Position k of the
/// program is op k together with the recomputed ops that stand just before it. The device bytes are live up to and
/// including position `freeBefore - 1`: position `freeBefore` is the first that may reuse them, and waits for the copy
/// out; then again from position `returnAfter + 1` on: the copy back is issued when op `returnAfter` has ended (and
/// when the bytes that it reuses have left), and position `neededBy` waits for it.
///
/// That of a buffer which visits the device goes around the end of the step. Its bytes are live
/// from position `returnAfter + 1`, where -1 is the start of the step, to `freeBefore - 1`, where the number of ops
/// stands for the end of the step: returnAfter < neededBy <= leaveAfter < freeBefore. The orders below are of others.
/// The simulator and its checker take the positions as they are, whatever the kind.
struct Absence {
  /// The copy out is issued when this op has ended: the last writer or a later op; -1 for content from outside the
  /// step: at its start; problems of a step have none, and #train.plan cannot say it. An absence with the same op as
  /// the one before it has no copy of its own: the first copy stays until the last return, and nothing may write the
  /// buffer in between (which the checker sees, as each of them repeats the op). Encode, compress, invert: the last
  /// forward access.
  int leaveAfter = -1;
  int freeBefore = -1;  ///< first position that runs with the device bytes gone; leaveAfter < freeBefore <= returnAfter
  int returnAfter = -1; ///< the copy back (decode, invert) is issued when this op has ended; encode: -1
  int neededBy = -1;    ///< first position that may read the content again; returnAfter < neededBy. Encode: the first
                        ///< later access, before which compute takes what decoding costs; -1: none

  AbsenceKind kind() const { return absenceKind(leaveAfter, neededBy); }
};

/// What happens to one buffer. Recompute has no absences: its first life ends at the last access before the
/// re-execution that writes the buffer again. Keep has none either. Offload has one or more, in program order; every
/// other action has one. Before they are placed the list is empty. Offload: both copies run on the copy engines, the
/// one out beside the ops that still read the content. Copies pack and unpack on the fly, so no packed form lies on the
/// device. Compress: the same with device memory instead of the host's: the codec stream packs after `leaveAfter` and
/// unpacks from `returnAfter` on. The packed form lives from op `leaveAfter` up to and including the first step of
/// position `neededBy`. If the last readers read its mask, it lives until the last of them, and the unpacked bytes end
/// at the access before. Invert: as Compress without packing. The compute stream rebuilds the content just before
/// position `neededBy`, ahead of the recomputed ops that stand there, from the inversion's sources, which must be on
/// the device then; `returnAfter` is `neededBy - 1`, `neededBy` need not be a position that reads the content, and the
/// side slot is live like a packed form. Encode: the raw bytes are gone from `freeBefore` on and never return; the
/// encoded form lives from op `leaveAfter` to the last access.
struct Decision {
  Action action = Action::Keep;
  /// Offload: codec of its copies (None: raw). Compress: codec of the packed form in device memory. Encode: codec whose
  /// form readers use as it is. A copy that forward ops read again after its return is raw or exact.
  Codec codec;
  std::vector<Absence> absences;
  std::string reason; ///< one line for --explain

  /// Whether absence `i` begins with a copy out of its own.
  bool departs(size_t i) const { return i == 0 || absences[i].leaveAfter != absences[i - 1].leaveAfter; }
  /// How many copies out the absences before `end` begin with; absence `i` comes back from copy copiesBefore(i + 1)
  /// - 1.
  size_t copiesBefore(size_t end) const {
    size_t copies = 0;
    for (size_t i = 0; i < end; ++i)
      copies += departs(i);
    return copies;
  }
};

/// Forward ops that run again just before op `before`, in this order. An op that writes a buffer without reading it
/// starts a new life of the buffer, which ends at its last reader; every later access means that new life.
struct Recompute {
  int before = -1;
  std::vector<int> ops;
};

/// Positions alone; seconds are simulate()'s. A plan is complete when all absences have their positions.
struct Plan {
  std::string strategy;
  std::vector<Decision> decisions;   ///< one per buffer of the Problem
  std::vector<Recompute> recomputes; ///< by `before`, none less than the one in front of it
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
