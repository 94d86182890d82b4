// SPDX-License-Identifier: Apache-2.0
// Runs the passes in order. What depends on the plan runs on a copy of the module, so that it can be run again with a
// smaller budget when packing costs more than the plan thought.
#include "passes/Pipeline.h"

#include "ir/Sched.h"
#include "passes/Passes.h"
#include "passes/PlanAttribute.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sluice;

/// After this many tighter plans the placed arena should have fitted: each gives back what the last one was too large
/// by.
static constexpr int maxReplans = 12;

static void addUntilLinearized(OpPassManager &pm, Stage until, const PipelineOptions &options) {
  if (until >= Stage::Training) {
    pm.addPass(createRecompose());
    pm.addPass(createBuildBackward());
  }
  if (until < Stage::Linearized)
    return;
  // Kernels that round otherwise leave signs as exact as they were; what comes back rounded does not.
  SmallVector<StringRef> lossy;
  StringRef(options.allowLossy).split(lossy, ',', -1, /*KeepEmpty=*/false);
  const bool alternatives = llvm::is_contained(lossy, "algorithms"),
             roundsTensors = lossy.size() > (alternatives ? 1 : 0);
  pm.addPass(createFuse({!roundsTensors}));
  pm.addPass(createAssignLayouts());
  pm.addPass(createAssignPrecision());
  pm.addPass(createLinearize());
  pm.addPass(
      createEstimateCost({options.device, options.profile, options.workspaceLimit, alternatives, options.target}));
}

static void addFromPlanned(OpPassManager &pm, Stage until, const PipelineOptions &options, int64_t shrink,
                           PlanningFailure &cause) {
  pm.addPass(createPlanMemory({options.strategy, options.budget, options.device, options.profile, options.allowLossy,
                               options.target, shrink, options.hostBudget},
                              &cause));
  pm.addPass(createApplyPlan());
  if (until >= Stage::Scheduled)
    pm.addPass(createScheduleStreams());
  if (until >= Stage::Placed)
    pm.addPass(createAssignSlots({0, options.hostBudget}, &cause));
}

/// Size of the placed device arena; 0 before it is placed.
static int64_t deviceBytes(ModuleOp module) {
  int64_t bytes = 0;
  for (auto program : module.getOps<sched::ProgramOp>())
    bytes = std::max<int64_t>(bytes, program.getDevice().value_or(0));
  return bytes;
}

static int64_t budgetOf(ModuleOp module) {
  for (auto program : module.getOps<sched::ProgramOp>())
    if (train::PlanAttr plan = train::attr::get<train::attr::Plan>(program))
      return plan.getBudget();
  return 0;
}

/// What is given out was verified against the budget that was asked for.
static LogicalResult verify(ModuleOp module, const PipelineOptions &options) {
  PassManager pm(module.getContext());
  pm.addPass(createVerifySchedule({options.budget.empty() ? 0 : budgetOf(module), options.hostBudget}));
  return pm.run(module);
}

/// Gives `module` the body and attributes of `result`.
static void replaceContents(ModuleOp module, ModuleOp result) {
  module->setAttrs(result->getAttrDictionary());
  module.getBodyRegion().takeBody(result.getBodyRegion());
}

LogicalResult sluice::runPipeline(ModuleOp module, Stage until, const PipelineOptions &options,
                                  PlanningFailure &cause) {
  PassManager first(module.getContext());
  addUntilLinearized(first, until, options);
  if (failed(first.run(module)))
    return failure();
  if (until < Stage::Planned)
    return success();
  int64_t shrink = 0;
  for (int attempt = 0;; ++attempt) {
    OwningOpRef<ModuleOp> copy(module.clone());
    PassManager pm(module.getContext());
    addFromPlanned(pm, until, options, shrink, cause);
    if (failed(pm.run(*copy)))
      return failure();
    int64_t excess = until >= Stage::Placed && !options.budget.empty() ? deviceBytes(*copy) - budgetOf(*copy) : 0;
    if (excess <= 0) {
      if (until >= Stage::Placed && failed(verify(*copy, options)))
        return failure();
      replaceContents(module, *copy);
      return success();
    }
    if (attempt == maxReplans)
      return module.emitError() << "the placed arena of " << deviceBytes(*copy) << " bytes stays above the budget of "
                                << budgetOf(*copy) << " bytes";
    shrink += excess;
  }
}
