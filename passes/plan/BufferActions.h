// SPDX-License-Identifier: Apache-2.0
// What can be done with the buffers of a problem besides keeping and copying them: packed forms, and rebuilding by
// inversion.
#pragma once

#include "passes/analysis/Storages.h"
#include "passes/planner/Problem.h"
#include "passes/planner/Profile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sluice {

/// Where the storages and ops of @step are in a problem.
struct PlannedBuffers {
  const Storages &storages;
  const std::vector<int> &bufferOf; ///< by storage; -1 for what outlives the step
  const llvm::DenseMap<mlir::Operation *, int> &positions;
};

/// Adds the zeros that buffers are expected to have, the forms into which copies and the device can pack them (zfp
/// without a rate at `rate`, 0: its own), and under an error budget what each form does to the gradients.
void addPackedForms(planner::Problem &problem, mlir::func::FuncOp step, const PlannedBuffers &buffers,
                    const planner::Profile &profile, int rate);

/// Adds how buffers can be rebuilt from others. What such an inversion reads besides stays as it is.
void addInversions(planner::Problem &problem, mlir::func::FuncOp step, const PlannedBuffers &buffers,
                   const planner::Profile &profile);

} // namespace sluice
