// SPDX-License-Identifier: Apache-2.0
// --parts=auto.
#pragma once

#include "passes/PlanTry.h"

namespace sluice {

/// Plans the module whole and, where that has no plan within the budget or a slower one than keeping everything, in
/// parts of the batch and, without any plan so far and where `mayCutRows`, of the largest loss's rows. Returns what is
/// predicted to take the least time; parts that save less than a fiftieth are not worth their rounding. The whole where
/// none has a plan.
PlanTry chooseParts(mlir::ModuleOp module, const PipelineOptions &options, PlanModule plan, bool mayCutRows);

} // namespace sluice
