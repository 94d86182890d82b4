// SPDX-License-Identifier: Apache-2.0
// What of steps and evaluations does not depend on the budget: their problems, and keep's plans.
#pragma once

#include "passes/analysis/Storages.h"
#include "passes/plan/EvaluationPlan.h"

#include <vector>

namespace sluice {

/// A step with the evaluation of its bucket, the largest one with the decode step, too, where there is one.
struct WantedStep {
  explicit WantedStep(mlir::func::FuncOp step) : step(step), storages(step) {}

  mlir::func::FuncOp step;
  Storages storages;
  planner::Problem problem;
  std::vector<EvaluationPlan> evaluations;
  PlanSummary summary; ///< without a budget; keepArena is the largest of all steps, as percentages refer to it
  int64_t evaluationBytes() const {
    int64_t most = 0;
    for (const EvaluationPlan &each : evaluations)
      most = std::max(most, each.arena());
    return most;
  }
};

/// Adds the module's steps to `all`, in order of stepsOf(). `keep` gives keep's plan of a problem, which is that of a
/// function of this name. Fails with an error where a step has none.
mlir::LogicalResult
planWithoutBudget(mlir::ModuleOp module, const planner::Profile &profile, const ProblemOptions &options,
                  llvm::function_ref<planner::Answer(const planner::Problem &, const std::string &function)> keep,
                  std::vector<WantedStep> &all);

} // namespace sluice
