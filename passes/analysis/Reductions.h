// SPDX-License-Identifier: Apache-2.0
// V9 of verify-schedule: sums over ranks in a placed program.
#pragma once

#include "ir/Sched.h"

namespace sluice {

/// In a module for several ranks, whatever updates parameters or running statistics, and what prepares it, reads what
/// all ranks have summed, once. Elsewhere nothing sums. All ranks meet in one order: these runs are compute's, as the
/// verifier of sched.run sees to, nothing in a program is under a condition, and all ranks have the same one.
llvm::LogicalResult checkReductions(mlir::ModuleOp module, sched::ProgramOp program);

} // namespace sluice
