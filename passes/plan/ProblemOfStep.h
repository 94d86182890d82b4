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

/// What the problem depends on beside the step and the profile.
struct ProblemOptions {
  Target target = Target::Host; ///< whose copies they are
  /// The base counts the staging slots of batches, too, which are all that the host arena then holds.
  bool oneMemory = false;
  int rate = 0; ///< of zfp forms that have none; 0: zfp's own
  /// With it buffers have packed forms of all rates unless one is given, and the errors of each: as the profile
  /// measured them, or else usual ones.
  std::optional<double> errorBudget = {};
  Space home = Space::Host; ///< of what is offloaded; the profile has a link to it
  /// Of a program for several: how many the plan is made for, and between what; empty: processes of the profile's
  /// machine.
  int ranks = 2;
  std::optional<planner::Interconnect> between = {};
};

/// Ops carry `train.cost` and `train.stage`. Buffer::id is the storage's index in `buffers`; base is everything that
/// outlives the step. Tensors below 4 KiB stay on the device or run again.
planner::Problem problemOfStep(mlir::ModuleOp module, mlir::func::FuncOp step, const Storages &storages,
                               const planner::Profile &profile, const ProblemOptions &options);

} // namespace sluice
