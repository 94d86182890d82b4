// SPDX-License-Identifier: Apache-2.0
// The mark of runs that programs put into one launch with the run before them. Set by group-launches, proved by
// verify-schedule (V7), printed by codegen.
#pragma once

#include "ir/Sched.h"

namespace sluice::sched {

constexpr llvm::StringLiteral togetherAttribute = "sched.together";

inline bool isTogether(RunOp run) { return run->hasAttr(togetherAttribute); }

/// The runs of one launch that begins with `first`.
inline llvm::SmallVector<RunOp> launchOf(RunOp first) {
  llvm::SmallVector<RunOp> runs{first};
  for (mlir::Operation *next = first->getNextNode(); next; next = next->getNextNode()) {
    auto run = mlir::dyn_cast<RunOp>(next);
    if (!run || !isTogether(run))
      break;
    runs.push_back(run);
  }
  return runs;
}

} // namespace sluice::sched
