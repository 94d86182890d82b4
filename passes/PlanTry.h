// SPDX-License-Identifier: Apache-2.0
// Planning a module in several ways, to become the best: --parts=auto, --state-home=auto.
#pragma once

#include "passes/Pipeline.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

#include <vector>

namespace sluice {

/// Takes a module to a level, as runPipeline() does, with what the options say.
using PlanModule = llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp, const PipelineOptions &, PlanningFailure &)>;

/// A copy of a module, planned, with all that was said about it.
struct PlanTry {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::LogicalResult result = mlir::failure();
  PlanningFailure cause;
  std::vector<mlir::Diagnostic> said;
  PipelineOptions options; ///< by which it was planned

  PlanTry(mlir::ModuleOp original, const PipelineOptions &options, PlanModule plan);

  /// Predicted seconds of a step that has a plan.
  double seconds() const;
  /// Whether it takes no more time than keeping everything, but for a share that is worth nothing.
  bool keepsPace() const;
  /// What it needs or was given, in bytes.
  int64_t budget() const;
  /// Whether less memory would do no good: it has a plan that keeps pace, or none for another reason than memory.
  bool isSettled() const;

  /// Of a sketch: whether it has a plan, or its budget is not below the floor, so that a thorough search may find one.
  bool mayFit() const;

  /// Takes `other` in its place where that alone has a plan, or a faster one; with other parts, which round, it must be
  /// faster by a share worth that. Of tries that all fail the smallest budget is known then. Returns whether it was
  /// taken.
  bool improve(PlanTry other);
  /// The module becomes this one, and what was said is told. `cause` is this one's.
  mlir::LogicalResult put(mlir::ModuleOp into, PlanningFailure &cause);
};

} // namespace sluice
