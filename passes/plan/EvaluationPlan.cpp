// SPDX-License-Identifier: Apache-2.0
// Plans evaluations, see EvaluationPlan.h.
#include "passes/plan/EvaluationPlan.h"

#include "passes/planner/Simulate.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

// An op of no time that reads the outputs comes last: they are read when the program has run, so that nothing else may
// have their bytes before.
std::optional<EvaluationPlan> EvaluationPlan::make(ModuleOp module, const std::string &name,
                                                   const planner::Profile &profile, const ProblemOptions &options,
                                                   llvm::function_ref<planner::Answer(const planner::Problem &)> keep) {
  auto evaluate = module.lookupSymbol<func::FuncOp>(name);
  if (!evaluate)
    return std::nullopt;
  Storages storages(evaluate);
  planner::Problem problem = problemOfStep(module, evaluate, storages, profile, options);
  planner::Op reader; // of what is kept until the batch is done
  for (auto [index, buffer] : llvm::enumerate(problem.buffers))
    if (storages[buffer.id].kept)
      reader.reads.push_back(static_cast<int>(index));
  if (!reader.reads.empty())
    problem.ops.push_back(std::move(reader));
  planner::Answer answer = keep(problem);
  auto *plan = std::get_if<planner::Plan>(&answer);
  return plan ? std::optional(EvaluationPlan(evaluate, std::move(problem), std::move(*plan))) : std::nullopt;
}

/// An evaluation keeps everything, so that its bound and its actions say nothing.
void EvaluationPlan::note(PlanSummary summary, int64_t enough) {
  const planner::Timeline timeline = simulate(problem, plan);
  summary.seconds = summary.keepSeconds = timeline.makespan;
  summary.longest = longestTask(timeline);
  summary.lowerBound = 0;
  const std::vector<std::string> nodes(problem.buffers.size());
  attr::set<attr::Plan>(function,
                        planAttribute(function.getContext(), problem, plan, placeLives(problem, plan, enough), summary,
                                      actionCosts(problem, plan, timeline), nodes, [](Codec codec) { return codec; }));
}
