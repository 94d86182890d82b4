// SPDX-License-Identifier: Apache-2.0
// --parts=auto.
#pragma once

#include "passes/PlanTry.h"

namespace sluice {

/// Plans the module whole and, where that has no plan within the budget or a slower one than keeping everything, in
/// parts of the batch and, without any plan so far, of the largest loss's rows. The module becomes what is predicted to
/// take the least time; parts that save less than a fiftieth are not worth their rounding. Diagnostics are those of
/// what is taken, or of the whole.
mlir::LogicalResult chooseParts(mlir::ModuleOp module, const PipelineOptions &options, PlanModule plan,
                                PlanningFailure &cause);

} // namespace sluice
