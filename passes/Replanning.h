// SPDX-License-Identifier: Apache-2.0
// From the linearized program to a plan that fits the budget once it is placed.
#pragma once

#include "passes/Pipeline.h"

namespace sluice {

/// Takes a linearized module to `until`, which is Planned at least. The placed program may take more than its plan,
/// whose places it has: then planning is repeated with less, at last with the least that the strategy can do with, and
/// what is given out fits the budget at every level. A budget for which none of that helps is refused with the smallest
/// one for which it does; it is the same whatever was asked for.
mlir::LogicalResult planWithinBudget(mlir::ModuleOp module, Level until, const PipelineOptions &options,
                                     PlanningFailure &cause);

} // namespace sluice
