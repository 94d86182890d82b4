// SPDX-License-Identifier: Apache-2.0
// V9 of verify-schedule: sums over ranks in a placed program.
#pragma once

#include "ir/Sched.h"

namespace sluice {

/// In a module for several ranks, whatever updates parameters or running statistics, and what prepares it, reads what
/// all ranks have summed, once, of the size that they had; where ranks update shares, all that was updated is gathered
/// once, after which nothing reads or changes it; where they have shares of gradients, updates and norms read these,
/// and nothing else does; a parameter of which they have shares is read by its update, and gathered before that for
/// whatever else reads it. Elsewhere nothing sums or gathers. Nothing else touches the room of sums. All ranks meet in
/// one order: these runs have one stream of their own, as the verifier of sched.run sees to, nothing in a program is
/// under a condition, and all ranks have the same one.
llvm::LogicalResult checkReductions(mlir::ModuleOp module, sched::ProgramOp program);

} // namespace sluice
