// SPDX-License-Identifier: Apache-2.0
// Steps 1 and 2 of plan-memory.
#include "passes/plan/WantedStep.h"

#include "ir/Buckets.h"
#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/Registry.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// What percentages refer to, without a budget.
static PlanSummary summaryOfKeep(const planner::Problem &problem, const planner::Plan &keep, int64_t evaluation) {
  PlanSummary summary;
  summary.keepArena = std::max(keep.arenaBytes, evaluation);
  summary.base = problem.base;
  summary.floor = std::max(planner::memoryFloor(problem), evaluation);
  summary.keepSeconds = simulate(problem, keep).makespan;
  summary.budget = planner::noBudget;
  return summary;
}

LogicalResult sluice::planWithoutBudget(
    ModuleOp module, const planner::Profile &profile, const ProblemOptions &options,
    llvm::function_ref<planner::Answer(const planner::Problem &, const std::string &function)> keep,
    std::vector<WantedStep> &all) {
  llvm::StringMap<SmallVector<std::string, 2>> evaluations;
  for (const Bucket &bucket : bucketsOf(module))
    evaluations[bucket.step] = {bucket.evaluate};
  if (const std::optional<DecodeStep> decode = decodeStepOf(module))
    evaluations[bucketsOf(module).back().step].push_back(decode->function);
  int64_t largest = 0;
  for (func::FuncOp step : stepsOf(module)) {
    WantedStep &one = all.emplace_back(step);
    const std::string name = step.getSymName().str();
    one.problem = problemOfStep(module, step, one.storages, profile, options);
    planner::Answer kept = keep(one.problem, name);
    if (auto *refused = std::get_if<planner::Refused>(&kept))
      return module.emitError() << "planning failed: " << refused->reason;
    for (const std::string &evaluate : evaluations[name])
      if (auto plan =
              EvaluationPlan::make(module, evaluate, profile, {options.target, options.oneMemory},
                                   [&](const planner::Problem &evaluated) { return keep(evaluated, evaluate); }))
        one.evaluations.push_back(std::move(*plan));
    one.summary = summaryOfKeep(one.problem, std::get<planner::Plan>(kept), one.evaluationBytes());
    largest = std::max(largest, one.summary.keepArena);
  }
  for (WantedStep &one : all)
    one.summary.keepArena = largest;
  return success();
}
