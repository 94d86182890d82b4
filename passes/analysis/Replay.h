// SPDX-License-Identifier: Apache-2.0
// What verify-schedule knows of a placed program, from its text alone: where every buffer lies, and every access with
// what is known to have run before it. Shares no helper with scheduler, planner and packer.
#pragma once

#include "ir/Sched.h"

#include "llvm/ADT/DenseMap.h"

#include <array>
#include <vector>

namespace sluice {

/// One vector clock; nothing of those that the scheduler and Lifetimes.h have.
struct Clock {
  std::array<int64_t, streamCount> ran = forEachStream<int64_t>(-1); ///< ops of each stream known to have run; -1: not
                                                                     ///< even those before the program
  int64_t released = 0; ///< steps issued when compute last let go of something that is known here
  int64_t &operator[](int stream) { return ran[stream]; }
  int64_t operator[](int stream) const { return ran[stream]; }
  void merge(const Clock &other) {
    for (int s = 0; s < streamCount; ++s)
      ran[s] = std::max(ran[s], other.ran[s]);
    released = std::max(released, other.released);
  }
};

/// Bytes of an arena.
struct Extent {
  sched::Space space;
  int64_t begin, end;
  bool overlaps(const Extent &other) const { return space == other.space && begin < other.end && other.begin < end; }
  bool operator==(const Extent &other) const {
    return space == other.space && begin == other.begin && end == other.end;
  }
};

/// Where a buffer lies, as the program says; planner::Place is where it was planned to.
struct Place : Extent {
  sched::BufferOp op;
  int64_t first, last; ///< steps; 0 for what outlives the step
};

/// One op's use of one buffer, or of a piece of it.
struct Access {
  int place;
  Extent bytes;
  bool writes;
  int64_t step;
  mlir::Operation *op;
  int stream;
  int64_t position;               ///< of the op among those of its stream
  Clock before;                   ///< what has run when it starts
  std::optional<int64_t> version; ///< that the op says it reads or leaves; none: scratch
  bool runsBefore(const Access &later) const { return later.before[stream] >= position; }
};

/// A program in issue order, with one vector clock per stream.
class Replay {
public:
  explicit Replay(sched::ProgramOp program) : program(program) {
    for (int s = 0; s < streamCount; ++s)
      clocks[s][s] = 0;
  }

  /// Checks V1 of places and V5 of streams on the way; the rest below is complete when it succeeds.
  mlir::LogicalResult run();

  std::vector<Place> places;
  std::vector<Access> accesses;    ///< in issue order
  std::vector<Clock> computeAfter; ///< by step: what compute has waited for once the waits after that step are over
  int64_t steps = 0;               ///< runs and copies; numbered from 1

private:
  mlir::LogicalResult checkPlaces();
  mlir::LogicalResult replay();
  mlir::LogicalResult step(mlir::Operation *op, sched::Stream stream);
  mlir::LogicalResult checkEnd();

  sched::ProgramOp program;
  llvm::DenseMap<mlir::Value, int> placeOf;
  llvm::DenseMap<mlir::Value, Clock> events;
  std::array<Clock, streamCount> clocks;
};

/// V7, of a program that was replayed and found without races.
mlir::LogicalResult checkLaunches(const Replay &replay);

/// Of a step, for messages.
std::string describe(mlir::Operation *op);

} // namespace sluice
