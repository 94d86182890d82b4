// SPDX-License-Identifier: Apache-2.0
// The passes in order, and how the compiler runs them: planning may take several tries, see Replanning.h.
#include "passes/Pipeline.h"

#include "passes/Passes.h"
#include "passes/Replanning.h"

using namespace mlir;
using namespace sluice;

LogicalResult sluice::checkRunsBefore(ModuleOp module, StringRef pass, StringRef later,
                                      function_ref<bool(Operation *)> isAsItLeaves) {
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.getOps())
      if (isAsItLeaves(&op))
        return op.emitOpError() << "is as " << later << " leaves it; run " << pass << " before that";
  return success();
}

static void addLinearizing(OpPassManager &pm, const PipelineOptions &options) {
  // Kernels that round otherwise leave signs as exact as they were; what comes back rounded does not.
  SmallVector<StringRef> lossy;
  StringRef(options.allowLossy).split(lossy, ',', -1, /*KeepEmpty=*/false);
  const bool alternatives = llvm::is_contained(lossy, "algorithms"),
             roundsTensors = lossy.size() > (alternatives ? 1 : 0) || options.errorBudget > 0;
  if (options.fuseEpilogues)
    pm.addPass(createFuseEpilogues());
  pm.addPass(createFuse({!roundsTensors}));
  pm.addPass(createAssignLayouts());
  pm.addPass(createAssignPrecision({options.target == Target::Cuda ? 8 : 1}));
  pm.addPass(createLinearize());
  pm.addPass(createEstimateCost({options.device, options.profile, options.workspaceLimit, alternatives, options.target,
                                 options.threads, options.level}));
  if (options.stateHome != Space::Device)
    pm.addPass(createHomeVariables({options.stateHome, options.device, options.profile}));
}

void sluice::addPasses(OpPassManager &pm, Level from, Level until, const PipelineOptions &options, int64_t shrink,
                       PlanningFailure *cause) {
  const auto reaches = [&](Level level) { return from < level && level <= until; };
  if (reaches(Level::Training)) {
    pm.addPass(createRecompose());
    pm.addPass(createBuildBackward());
  }
  if (reaches(Level::Linearized))
    addLinearizing(pm, options);
  if (reaches(Level::Planned)) {
    pm.addPass(createPlanMemory({options.strategy, options.budget, options.device, options.profile, options.allowLossy,
                                 options.target, shrink, options.hostBudget, options.oneMemory, options.errorBudget,
                                 options.home},
                                cause));
    pm.addPass(createApplyPlan());
  }
  if (reaches(Level::Scheduled))
    pm.addPass(createScheduleStreams());
  if (reaches(Level::Scheduled) && options.groupLaunches)
    pm.addPass(createGroupLaunches());
  if (reaches(Level::Placed))
    pm.addPass(createAssignSlots({0, options.hostBudget}, cause));
}

void sluice::addGrouping(OpPassManager &pm, Level reached) {
  pm.addPass(createGroupLaunches());
  if (reached == Level::Placed)
    pm.addPass(createAssignSlots());
}

void sluice::addProof(OpPassManager &pm, int64_t budget, const PipelineOptions &options) {
  pm.addPass(createVerifySchedule({budget, options.hostBudget, options.oneMemory}));
}

LogicalResult sluice::runPipeline(ModuleOp module, Level from, Level until, const PipelineOptions &options,
                                  PlanningFailure &cause) {
  PassManager pm(module.getContext());
  addPasses(pm, from, std::min(until, Level::Linearized), options);
  if (failed(pm.run(module)))
    return failure();
  return until < Level::Planned ? success() : planWithinBudget(module, until, options, cause);
}
