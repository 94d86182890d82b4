// SPDX-License-Identifier: Apache-2.0
// The program that a plan describes: ops in order with the recomputed ones inserted, and the life of every buffer in
// it. Memory is read off these lives; nothing here knows of time. Strategies, simulator and packing build on it; the
// checker does not.
#pragma once

#include "passes/planner/Plan.h"
#include "runtime/Result.h"

#include <string>
#include <vector>

namespace sluice::planner {

/// One executed op. (Steps of a sched.program count copies as well, from 1.) Position k holds the ops recomputed before
/// op k, then op k itself.
struct Step {
  int op = 0;
  int position = 0;
  bool recomputed = false;
};

/// Bytes on the device over steps first..last, both included, as planned. sluice::Life (analysis/Lifetimes.h) is what
/// becomes of it on streams.
struct Life {
  /// Packed: side slots of inversions, too. Workspace: of the step or of the inversions just
  /// before it, whichever is larger.
  enum class Form : int8_t { Raw, Packed, Workspace };
  int buffer = -1; ///< -1 for a workspace
  int first = 0, last = 0;
  Bytes bytes = 0; ///< rounded up to the problem's alignment
  Form form = Form::Raw;
  int8_t early = 0; ///< moments from the first step to where it begins
  int late = 1;     ///< and from the last one to where it is over

  /// The same by moments, four a step, `end` excluded: an op runs, what leaves is copied or packed, its bytes are free,
  /// what the next step needs comes back.
  int begin() const { return 4 * first + early; }
  int end() const { return 4 * last + late; }
};

struct Program {
  std::vector<Step> steps;
  std::vector<int> firstStep; ///< first step of position k; one past the last position: the number of steps
  std::vector<int> stepOf;    ///< step of the original op k
  std::vector<Life> lives;    ///< raw, encoded and workspace bytes; base is not listed
};

/// Where a buffer is accessed by the original ops. Forward accesses are those by ops of Phase::Forward.
struct Accesses {
  int firstWrite = -1, lastForwardWrite = -1, first = -1, lastForward = -1, firstLater = -1, last = -1;
  bool writtenLater = false; ///< behind the forward half, which needs the raw bytes
  bool hasGap() const { return lastForward >= 0 && firstLater > lastForward + 1; }
};

/// Refuses a problem that is not well formed, by the op or the buffer and the values.
Status checkProblem(const Problem &problem);

/// `bytes` rounded up to the problem's alignment.
Bytes aligned(const Problem &problem, Bytes bytes);

/// One entry per buffer.
std::vector<Accesses> accessesOf(const Problem &problem);

/// Seconds and workspace of a step under the alternative that the plan chose, or of its re-run. The seconds are those
/// of its op, and of the copies of visitors that it waits for whatever runs beside it.
Seconds secondsOf(const Problem &problem, const Plan &plan, const Step &step);
Bytes workspaceOf(const Problem &problem, const Plan &plan, const Step &step);

/// The form of a buffer under a codec; null when it has none.
const Encoding *encodingOf(const Buffer &buffer, Codec codec);

/// Inserts recomputed ops and derives every life. Buffers without absences are taken to stay.
Program expand(const Problem &problem, const Plan &plan);

/// Live bytes during every step, base and workspace included.
std::vector<Bytes> liveBytes(const Problem &problem, const Program &program);

/// The largest of liveBytes() among the steps of each position.
std::vector<Bytes> liveByPosition(const Problem &problem, const Program &program);

/// The largest of liveBytes(); base for a program without steps.
Bytes peakBytes(const Problem &problem, const Program &program);

/// A plan that keeps everything.
Plan keepPlan(const Problem &problem);

} // namespace sluice::planner
