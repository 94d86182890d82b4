// SPDX-License-Identifier: Apache-2.0
// The clocks of schedule-streams; verify-schedule has its own in Replay.h. Events between the streams of a
// sched.program while it is written, op by op. A wait is left out when a chain of earlier waits implies it, as vector
// clocks tell: one per stream, of how many ops of each stream are known to have run (Fidge, Mattern 1988).
#pragma once

#include "ir/Sched.h"

#include <array>

namespace sluice {

/// Of a program that is written from its first op to its last, in issue order.
class StreamClocks {
public:
  /// How many ops of each stream, in issue order, are known to have run; -1: not even what ran before the program
  /// began.
  using Clock = std::array<int, streamCount>;

  /// A record and what has run once it happens.
  struct Recorded {
    sched::RecordOp op;
    Clock clock{};
  };

  /// Writes where `b` stands; keeps a reference to it.
  explicit StreamClocks(mlir::OpBuilder &b);

  /// A kernel or a copy was written on the stream.
  void issued(sched::Stream stream);
  Recorded record(mlir::Location loc, sched::Stream stream, const llvm::Twine &name);
  /// Makes the stream wait for the record unless it is known to have happened; erases waits directly before it that say
  /// less.
  void wait(mlir::Location loc, sched::Stream stream, Recorded recorded);
  /// For all that was written on compute, with a record of that name unless there is one since the last kernel.
  void waitForCompute(mlir::Location loc, sched::Stream stream, const llvm::Twine &name);
  /// The last record of its stream, and all that the stream knows.
  Recorded now(sched::RecordOp last) const { return {last, known[static_cast<int>(last.getStream())]}; }

private:
  Clock &of(sched::Stream stream) { return known[static_cast<int>(stream)]; }

  mlir::OpBuilder &b;
  Clock known[streamCount];
  llvm::SmallVector<std::pair<sched::WaitOp, Clock>, 2>
      waitsInGap[streamCount]; ///< since the stream's last kernel, copy or record
  Recorded lastCompute;        ///< latest record on compute
};

} // namespace sluice
