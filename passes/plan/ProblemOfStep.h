// SPDX-License-Identifier: Apache-2.0
// From @step to the planner's problem: ops with a kernel become planner ops in program order, transient storages become
// planner buffers.
#pragma once

#include "passes/analysis/Storages.h"
#include "passes/planner/Problem.h"
#include "passes/planner/Profile.h"
#include "runtime/TargetTable.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace sluice {

/// Ops carry `train.cost` and `train.stage`. Buffer::id is the storage's index in `buffers`; base is everything that
/// outlives the step. What copies can do is the target's. Forms of zfp without a rate have the sizes of
/// `rate`, 0: zfp's own. Tensors below 4 KiB stay on the device or run again. With `oneMemory` base counts the staging
/// slots of batches, too, which are all that the host arena then holds. With an error budget buffers have packed forms
/// of all rates unless one is given, and the errors of each: as the profile measured them, or else usual ones. What is
/// offloaded goes to `home`, to which the profile has a link.
planner::Problem problemOfStep(mlir::ModuleOp module, mlir::func::FuncOp step, const Storages &storages,
                               const planner::Profile &profile, Target target, bool oneMemory, int rate = 0,
                               std::optional<double> errorBudget = {}, Space home = Space::Host);

} // namespace sluice
