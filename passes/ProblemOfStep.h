// SPDX-License-Identifier: Apache-2.0
// From @step to the planner's problem: ops with a kernel become planner ops in program order, transient storages become buffers.
#pragma once

#include "passes/Buffers.h"
#include "passes/planner/Problem.h"
#include "passes/planner/Profile.h"

#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// Ops carry `train.cost` and `train.stage`. Buffer::id is the storage's index in `buffers`; base is everything that outlives the step.
planner::Problem problemOfStep(mlir::ModuleOp module, mlir::func::FuncOp step, const Buffers &buffers, const planner::Profile &profile);

/// The ops that planner positions count, in program order.
llvm::SmallVector<mlir::Operation *> plannedOps(mlir::func::FuncOp step);

} // namespace sluice
