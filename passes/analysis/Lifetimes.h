// SPDX-License-Identifier: Apache-2.0
// When the buffers of a sched.program hold something: what assign-slots places by, and group-launches measures.
// verify-schedule does not use it; its clocks are those of Replay.h. Time is what the compute stream sees: a kernel
// takes its own step; what runs beside it, copies and codecs, takes all steps from where compute released it to where
// compute waited for it. Steps are runs and copies in issue order, numbered from 1.
#pragma once

#include "ir/Sched.h"

#include "llvm/ADT/DenseMap.h"

#include <array>
#include <vector>

namespace sluice {

/// Steps, both ends included; planner::Life is what was planned.
struct Life {
  int64_t first = 0, last = 0;
  bool empty() const { return first == 0; }
  void cover(int64_t from, int64_t to) {
    first = empty() ? from : std::min(first, from);
    last = std::max(last, to);
  }
};

/// Of one program, which need not be placed.
class Lifetimes {
public:
  explicit Lifetimes(sched::ProgramOp program);
  /// Empty where nothing uses the buffer. What outlives the step has a life, too, which says when it is used.
  Life of(mlir::Value buffer) const { return lives.lookup(buffer); }
  int64_t stepCount() const { return steps; }

private:
  /// Ops done on each stream, and the number of steps that compute had issued.
  struct Clock {
    std::array<int64_t, streamCount> done{};
    int64_t steps = 0;
    void merge(const Clock &other) {
      for (int s = 0; s < streamCount; ++s)
        done[s] = std::max(done[s], other.done[s]);
      steps = std::max(steps, other.steps);
    }
  };
  /// A use on another stream that compute has not waited for yet.
  struct Access {
    mlir::Value buffer;
    int stream;
    int64_t position;
  };
  void compute(mlir::ValueRange buffers);
  void launch(sched::RunOp run);
  void beside(sched::Stream stream, mlir::ValueRange buffers);
  void wait(sched::WaitOp op);

  Clock clocks[streamCount];
  int64_t steps = 0, launchedFrom = 0;
  llvm::SmallVector<mlir::Value> launched; ///< used by the launch at hand, which began with step `launchedFrom`
  llvm::DenseMap<mlir::Value, Clock> events;
  std::vector<Access> pending; ///< beside compute, which has not waited for them
  llvm::DenseMap<mlir::Value, Life> lives;
};

} // namespace sluice
