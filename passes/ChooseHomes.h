// SPDX-License-Identifier: Apache-2.0
// --state-home=auto, --parameter-home=auto.
#pragma once

#include "passes/PlanTry.h"

namespace sluice {

/// Plans the module with everything on the device and, where that has no plan within the budget or a slower one than
/// keeping everything, with states at home elsewhere, then parameters: as many as a plan needs, as many as keeping all
/// activations needs, and numbers between and beyond. Returns what is predicted to take the least time; where nothing
/// has a plan, with all that may leave.
PlanTry chooseHomes(mlir::ModuleOp module, const PipelineOptions &options, PlanModule plan);

/// The same options with nothing that the planner chooses a home for elsewhere.
PipelineOptions allOnDevice(PipelineOptions options);

/// Says how much of a planned module is at home elsewhere, if anything is.
void tellHomes(mlir::ModuleOp module);

} // namespace sluice
