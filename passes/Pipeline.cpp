// SPDX-License-Identifier: Apache-2.0
// The passes in order, and how the compiler runs them: planning may take several tries, see Replanning.h.
#include "passes/Pipeline.h"

#include "passes/ChooseHomes.h"
#include "passes/ChooseParts.h"
#include "passes/Passes.h"
#include "passes/Replanning.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/plan/PlanRequest.h"

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

static constexpr const char *algorithms = "algorithms";

/// Whether plans may change kernels' algorithms, and whether they may bring tensors back rounded.
static std::pair<bool, bool> roundings(const PipelineOptions &options) {
  SmallVector<StringRef> lossy;
  StringRef(options.allowLossy).split(lossy, ',', -1, /*KeepEmpty=*/false);
  const bool alternatives = llvm::is_contained(lossy, algorithms);
  return {alternatives, lossy.size() > (alternatives ? 1 : 0) || options.errorBudget > 0};
}

/// From the training step to the linearized one. Nothing here depends on a budget, so that replanning begins behind it.
static void addLinearizing(OpPassManager &pm, const PipelineOptions &options) {
  // Kernels that round otherwise leave signs as exact as they were; what comes back rounded does not.
  const auto [alternatives, roundsTensors] = roundings(options);
  if (options.convEpilogues || options.productEpilogues)
    pm.addPass(createFuseEpilogues({options.convEpilogues, options.productEpilogues}));
  pm.addPass(createFuse({!roundsTensors, options.target == Target::Cuda}));
  pm.addPass(createAssignLayouts());
  pm.addPass(createQuantizeFrozen({options.target}));
  pm.addPass(createAssignPrecision({options.target == Target::Cuda ? 8 : 1, options.target == Target::Cuda}));
  if (options.target == Target::Cuda) {
    pm.addPass(createPadProducts());
    pm.addPass(createJoinLosses());
  }
  pm.addPass(createLinearize());
  pm.addPass(createEstimateCost({options.device, options.profile, options.workspaceLimit, alternatives, options.target,
                                 options.threads, options.level}));
  // Does nothing where neither a flag nor the module asks for it.
  pm.addPass(createHomeVariables({options.stateHome, options.parameterHome, options.stateShare, options.parameterShare,
                                  options.device, options.profile, options.updatesAtHome && options.hostBudget != 0}));
}

void sluice::addPasses(OpPassManager &pm, Level from, Level until, const PipelineOptions &options, int64_t shrink,
                       PlanningFailure *cause) {
  const auto reaches = [&](Level level) { return from < level && level <= until; };
  if (reaches(Level::Training)) {
    pm.addPass(createRecompose());
    if (options.keyCache)
      pm.addPass(createBuildDecode());
    pm.addPass(createBuildBackward());
    pm.addPass(createSplit({options.parts}));
    pm.addPass(createSplitStep({options.partsAlong, options.stepParts, options.partsAbove}));
    pm.addPass(createSplitUpdates({options.weightsAbove, !options.choosesParts}));
    pm.addPass(createReduceGradients());
  }
  if (reaches(Level::Linearized))
    addLinearizing(pm, options);
  if (reaches(Level::Planned)) {
    pm.addPass(createPlanMemory({options.strategy, options.budget, options.device, options.profile, options.allowLossy,
                                 options.target, shrink, options.hostBudget, options.oneMemory, options.errorBudget,
                                 options.home, options.ranks, options.interconnect, options.sketch},
                                cause));
    pm.addPass(createApplyPlan());
  }
  if (reaches(Level::Scheduled))
    pm.addPass(createScheduleStreams());
  if (reaches(Level::Scheduled) && options.groupLaunches)
    pm.addPass(createGroupLaunches());
  if (reaches(Level::Placed))
    pm.addPass(createAssignSlots({0, options.hostBudget, options.sketch}, cause));
}

void sluice::addGrouping(OpPassManager &pm, Level reached) {
  pm.addPass(createGroupLaunches());
  if (reached == Level::Placed)
    pm.addPass(createAssignSlots());
}

void sluice::addProof(OpPassManager &pm, int64_t budget, const PipelineOptions &options) {
  pm.addPass(createVerifySchedule({budget, options.hostBudget, options.oneMemory}));
}

static LogicalResult runOnce(ModuleOp module, Level from, Level until, const PipelineOptions &options,
                             PlanningFailure &cause) {
  PassManager pm(module.getContext());
  addPasses(pm, from, std::min(until, Level::Linearized), options);
  if (failed(pm.run(module)))
    return failure();
  return until < Level::Planned ? success() : planWithinBudget(module, until, options, cause);
}

/// Where the compiler chooses the actions, and nobody asked for some by a knob: it may leave alone those that round.
static bool mayStayExact(const PipelineOptions &options) {
  const Result<PlanRequest> request =
      parsePlanRequest(options.strategy, options.allowLossy, options.oneMemory, options.errorBudget, options.home);
  return request && request->codec == Codec::None && request->options.knobs.empty() &&
         (request->name == "mixed" || request->name == "auto");
}

/// The program whose plans may round keeps more: no op of it repeats another one whose signs it needs. `exact` is the
/// other one, not linearized yet; takes it where it is planned faster, or alone has a plan. It gets no more than the
/// rounding one had, in bytes, so that the two are compared within one memory.
static LogicalResult takeFaster(ModuleOp module, LogicalResult rounding, ModuleOp exact, Level from, Level until,
                                PipelineOptions options, PlanningFailure &cause) {
  if (failed(rounding) && !cause.smallestBudget)
    return rounding; // not for want of memory: it is the same with the other one
  options.allowLossy = roundings(options).first ? algorithms : "";
  options.errorBudget = 0;
  if (!options.budget.empty()) // percentages are of a keep of its own
    options.budget = std::to_string(succeeded(rounding) ? planOfStep(module).getBudget() : cause.budget);
  PlanningFailure other;
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  if (failed(runOnce(exact, from, until, options, other))) {
    if (other.smallestBudget && cause.smallestBudget)
      cause.smallestBudget = std::min(*cause.smallestBudget, *other.smallestBudget);
    return rounding;
  }
  const auto seconds = [](ModuleOp planned) { return planOfStep(planned).getSeconds().getValueAsDouble(); };
  if (succeeded(rounding) && seconds(module) <= seconds(exact))
    return success();
  module->setAttrs(exact->getAttrDictionary());
  module.getBodyRegion().takeBody(exact.getBodyRegion());
  cause = {};
  return success();
}

/// Allowed roundings need not pay: where plans may round, the exact plan is made of a copy as well, and the faster one
/// stays.
static LogicalResult runAllowed(ModuleOp module, Level from, Level until, const PipelineOptions &options,
                                PlanningFailure &cause) {
  OwningOpRef<ModuleOp> exact;
  if (from < Level::Linearized && until >= Level::Planned && roundings(options).second && mayStayExact(options))
    exact = module.clone();
  if (!exact)
    return runOnce(module, from, until, options, cause);
  // What is wrong with a plan that rounds is nobody's business where the other one is taken.
  std::vector<Diagnostic> complaints;
  LogicalResult rounding = failure();
  {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      complaints.push_back(std::move(diagnostic));
      return success();
    });
    rounding = runOnce(module, from, until, options, cause);
  }
  LogicalResult result = takeFaster(module, rounding, *exact, from, until, options, cause);
  for (Diagnostic &complaint : complaints)
    if (failed(result) || complaint.getSeverity() != DiagnosticSeverity::Error)
      module->getContext()->getDiagEngine().emit(std::move(complaint));
  return result;
}

/// Homes, parts, or both: either alone, parts for the homes of the whole, then homes for these parts.
static PlanTry compare(ModuleOp module, PipelineOptions options, PlanModule plan, bool mayCutRows) {
  if (!options.choosesHomes())
    return chooseParts(module, options, plan, mayCutRows);
  PlanTry best = chooseHomes(module, options, plan);
  if (!options.choosesParts || best.isSettled())
    return best;
  options.budget = std::to_string(best.budget()); // percentages are of the keep of the whole, all on the device
  const PipelineOptions here = allOnDevice(options);
  PlanTry parts = chooseParts(module, here, plan, mayCutRows);
  if (best.options.stateShare != here.stateShare || best.options.parameterShare != here.parameterShare)
    best.improve(chooseParts(module, best.options, plan, mayCutRows));
  best.improve(std::move(parts));
  if (best.options.hasPartsOfStep())
    best.improve(chooseHomes(module, best.options, plan));
  return best;
}

/// As many ways are compared by sketches of their plans, and the best one is planned, beside the whole on the device if
/// that fits. Without one that has a plan, near what is needed at least, all are planned for good, and a refusal names
/// what the best of them needs.
static PlanTry choose(ModuleOp module, const PipelineOptions &options, PlanModule plan) {
  const auto planned = [&](PipelineOptions with, bool sketch) {
    with.sketch = sketch;
    return PlanTry(module, with, plan);
  };
  const PipelineOptions whole = allOnDevice(options);
  std::optional<PlanTry> best;
  if (planned(whole, true).mayFit()) {
    best.emplace(planned(whole, false));
    if (best->isSettled())
      return std::move(*best);
  }
  PipelineOptions sketch = options;
  sketch.sketch = true;
  const bool fits = best && succeeded(best->result);
  PlanTry sketched = compare(module, sketch, plan, !fits);
  if (failed(sketched.result))
    return compare(module, options, plan, true);
  PlanTry chosen = planned(sketched.options, false);
  if (succeeded(chosen.result))
    chosen.improve(std::move(sketched)); // which may have been packed where the other was not
  if (fits)
    best->improve(std::move(chosen));
  else if (succeeded(chosen.result))
    best.emplace(std::move(chosen));
  else
    return compare(module, options, plan, true);
  return std::move(*best);
}

LogicalResult sluice::runPipeline(ModuleOp module, Level from, Level until, const PipelineOptions &options,
                                  PlanningFailure &cause) {
  const auto plan = [&](ModuleOp copy, const PipelineOptions &with, PlanningFailure &failure) {
    return runAllowed(copy, from, until, with, failure);
  };
  const bool chooses =
      (options.choosesParts && from < Level::Training) || (options.choosesHomes() && from < Level::Linearized);
  if (!chooses || until < Level::Planned)
    return plan(module, options, cause);
  const LogicalResult result = choose(module, options, plan).put(module, cause);
  if (succeeded(result) && options.choosesHomes())
    tellHomes(module);
  return result;
}
