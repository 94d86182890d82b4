// SPDX-License-Identifier: Apache-2.0
// Runs the compiler as far as the linearized program and hands its problem out, or to the end for its plan.
#include "tools/PlanModel.h"

#include "frontend/Identity.h"
#include "ir/Sched.h"
#include "passes/Passes.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/plan/PlanRequest.h"
#include "passes/plan/ProblemOfStep.h"
#include "passes/planner/Check.h"
#include "passes/planner/Profile.h"
#include "passes/planner/Program.h"
#include "tools/Destinations.h"
#include "tools/MachineProfile.h"

using namespace mlir;

namespace sluice {

/// Puts the exit status into the result.
Status PlannedModel::linearize(ModelProblem &result) {
  result.status = 1;
  Result<OnnxFile> read = OnnxFile::read(options.model, options.spec.limits);
  if (!read)
    return read.takeError();
  file = std::move(*read);
  result.inputs = inputsOf(options, modelFiles(file->path(), file->model()));
  if (Status imported = compilation.import(*file, options.spec, options.buckets); !imported)
    return imported;
  if (compilation.run(Level::Linearized, options.pipeline)) {
    result.status = 0;
    return Success{};
  }
  result.status = compilation.exitStatus();
  result.notes = compilation.notes();
  return Error{options.model + ": " + compilation.error()};
}

/// The problem is made of the same step and the same profile as the pass plan-memory makes its own, so that plan() can
/// compare the two.
ModelProblem PlannedModel::problem() {
  ModelProblem result;
  auto fail = [&](int status, const std::string &error) {
    result.status = status;
    result.error = error;
    return result;
  };
  if (Status linear = linearize(result); !linear)
    return fail(result.status, linear.error());
  const Result<planner::Profile> profile =
      planner::loadDevice(options.pipeline.device, options.pipeline.profile, options.pipeline.home);
  if (!profile)
    return fail(1, options.model + ": " + profile.error());
  auto step = compilation.module().lookupSymbol<func::FuncOp>("step");
  if (!step)
    return fail(4, options.model + ": the module has no function @step");
  const Result<PlanRequest> request =
      parsePlanRequest(options.pipeline.strategy, options.pipeline.allowLossy, options.pipeline.oneMemory,
                       options.pipeline.errorBudget, options.pipeline.home);
  if (!request)
    return fail(2, request.error());
  Storages storages(step);
  ProblemOptions asks{options.pipeline.target,
                      options.pipeline.oneMemory,
                      request->rate,
                      request->errorBudget,
                      options.pipeline.home,
                      options.pipeline.ranks,
                      {}};
  if (const std::string &name = options.pipeline.interconnect; !name.empty()) {
    Result<planner::Interconnect> between = planner::loadInterconnect(name);
    if (!between)
      return fail(1, between.error());
    asks.between = std::move(*between);
  }
  result.problem = problemOfStep(compilation.module(), step, storages, *profile, asks);
  result.options = request->options;
  result.device = profile->device;
  result.memory = profile->memory;
  for (auto variable : compilation.module().getOps<train::VariableOp>()) {
    auto parameter = variable->getAttrOfType<FlatSymbolRefAttr>(train::shareOfAttribute);
    auto whole = parameter ? compilation.module().lookupSymbol<train::VariableOp>(parameter.getAttr()) : variable;
    if (parameter || variable.isShare())
      result.shared.push_back(whole.wholeType().getNumElements());
  }
  return result;
}

/// The problem's forms do not name the rate that a strategy was given, and no pool.
static Result<planner::Plan> planOfProblem(train::PlanAttr attribute, const planner::Problem &problem) {
  Result<planner::Plan> plan = planOfAttribute(attribute, storageNames(problem));
  if (!plan)
    return plan;
  for (size_t b = 0; b < plan->decisions.size(); ++b)
    if (Codec &codec = plan->decisions[b].codec; !encodingOf(problem.buffers[b], codec))
      codec.rate = 0, codec.pool = 0;
  plan->peakBytes = peakBytes(problem, expand(problem, *plan));
  return plan;
}

/// The module's plan in terms of `problem`, checked once more: a report must not draw what the program does not do.
CompiledPlan PlannedModel::plan(const planner::Problem &problem) {
  CompiledPlan result;
  auto fail = [&](int status, const std::string &error) {
    result.status = status;
    result.error = error;
    return result;
  };
  if (!compilation.run(Level::Placed, options.pipeline)) {
    result.smallestBudget = compilation.smallestBudget();
    result.notes = compilation.notes();
    return fail(compilation.exitStatus(), options.model + ": " + compilation.error());
  }
  train::PlanAttr attribute = planOfStep(compilation.module());
  if (!attribute)
    return fail(4, options.model + ": the placed program has no plan");
  Result<planner::Plan> plan = planOfProblem(attribute, problem);
  if (!plan)
    return fail(4, options.model + ": " + plan.error());
  result.plan = std::move(*plan);
  result.budget = attribute.getBudget();
  result.bound = attribute.getLowerBound().getValueAsDouble();
  if (Status status = checkPlan(problem, result.plan, result.budget); !status)
    return fail(4, options.model + ": the compiled plan fails the checker: " + status.error());
  return result;
}

ModelProblem problemOfModel(const std::string &model, const std::vector<std::string> &flags) {
  std::vector<std::string> words = {model};
  words.insert(words.end(), flags.begin(), flags.end());
  ModelProblem result;
  DriverOptions options;
  if (auto status = parseCommandLine(words, options)) {
    result.status = *status;
    return result;
  }
  chooseDevice(options);
  return PlannedModel(options).problem();
}

} // namespace sluice
