// SPDX-License-Identifier: Apache-2.0
// What runs when, on which stream: the outcome of simulating a plan. Times in seconds from the start of the step, sizes
// in bytes.
#pragma once

#include "passes/planner/Problem.h"
#include "runtime/StreamTable.h"

#include <string>
#include <vector>

namespace sluice::planner {

using Stream = StreamId;

/// One thing that runs on one stream without a break.
struct Event {
  /// Encode and Decode run on the codec stream for Action::Compress, on the compute stream for Action::Encode.
  /// Exchange: what all ranks do together, of an op that runs on compute in no time. Use: of what has gone home, there.
  enum class What { Run, Rerun, CopyOut, CopyIn, Encode, Decode, Invert, Exchange, Use };
  What what = What::Run;
  Stream stream = Stream::Compute;
  int op = -1;     ///< op that runs, or after which the copy was issued
  int buffer = -1; ///< of a copy or codec
  Seconds start = 0, end = 0;
};

/// Compute idles before `op` because the copy or the codec of `buffer` has not ended.
struct Wait {
  int op = -1, buffer = -1;
  Seconds seconds = 0;
  bool forMemory = false; ///< true: for bytes to leave; false: for content to return
};

/// A step, from the first op's start at 0.
struct Timeline {
  std::vector<Event> events; ///< by start
  std::vector<Wait> waits;
  Seconds makespan = 0; ///< end of the last event: a step is over when compute and copies are
  Seconds busy = 0;     ///< compute stream, contention included
  Bytes peakBytes = 0;  ///< by program order, base included
  Bytes hostBytes = 0;  ///< sum of everything that is copied out
};

} // namespace sluice::planner
