// SPDX-License-Identifier: Apache-2.0
// An evaluation as plan-memory plans it: by keep, since nothing in it waits for a backward half. It lies in the arena
// of the steps, and of a network whose gradients are small it can take the most of it.
#pragma once

#include "passes/plan/PlanAttribute.h"
#include "passes/plan/ProblemOfStep.h"

namespace sluice {

class EvaluationPlan {
public:
  /// `keep` gives keep's plan of a problem. Nothing where the module has no function of this name, or keep no plan.
  static std::optional<EvaluationPlan> make(mlir::ModuleOp module, const std::string &name,
                                            const planner::Profile &profile, const ProblemOptions &options,
                                            llvm::function_ref<planner::Answer(const planner::Problem &)> keep);

  /// Bytes, base included.
  int64_t arena() const { return plan.arenaBytes; }
  /// Gives the function its plan, of which places are all that matters, in an arena that may be as large as `enough`.
  /// `summary` is that of the step's plan.
  void note(PlanSummary summary, int64_t enough);

private:
  EvaluationPlan(mlir::func::FuncOp function, planner::Problem problem, planner::Plan plan)
      : function(function), problem(std::move(problem)), plan(std::move(plan)) {}

  mlir::func::FuncOp function;
  planner::Problem problem;
  planner::Plan plan;
};

} // namespace sluice
