// SPDX-License-Identifier: Apache-2.0
// estimate-cost, in order:
//  1. ask the target's kernels in which ways they can compute every op, with which workspaces, and choose one for each;
//  2. ask the profile for the time of such an op, by its arithmetic and traffic, or because a program measured it;
//  3. for cuda: keep the engines that the profile recorded, for codegen.
// Plans compare seconds of copies with seconds of kernels; an op without a cost would take no time and hide no copy.
// Workspaces come from the very kernels that run, so that a slot has what its kernel takes.
#include "ir/KernelRecords.h"
#include "passes/Passes.h"
#include "passes/analysis/Storages.h"
#include "passes/kernels/CudaKernels.h"
#include "passes/kernels/HostKernels.h"
#include "passes/kernels/KernelWork.h"
#include "passes/kernels/Touches.h"
#include "passes/planner/Profile.h"
#include "runtime/CpuTable.h"

namespace sluice {
#define GEN_PASS_DEF_ESTIMATECOST
#include "passes/Passes.h.inc"
} // namespace sluice

#include <map>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// What most of cuDNN's engines of the module's precision ask for.
static int64_t cudaLimit(Operation *op) {
  auto precision = op->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>("train.precision");
  return factsOf(Target::Cuda).workspaceLimit(precision ? precision.getValue() : "fp32");
}

/// `limit`: of a workspace, 0 where nobody gave one.
static FailureOr<std::vector<KernelAlgorithm>> kernelAlgorithms(Target target, Operation *op, int64_t limit,
                                                                const HostMachine &machine) {
  switch (target) {
  case Target::Host:
    return hostAlgorithms(op, machine);
  case Target::Cuda:
    return cudaAlgorithms(op, limit ? limit : cudaLimit(op), limit != 0);
  }
  llvm_unreachable("no target");
}

namespace {

struct EstimateCost : sluice::impl::EstimateCostBase<EstimateCost> {
  using EstimateCostBase::EstimateCostBase;

  /// Algorithms are chosen before times are predicted: each has a speed of its own.
  void runOnOperation() override {
    Result<planner::Profile> known = planner::loadDevice(device, profile);
    if (!known) {
      getOperation().emitError() << known.error();
      return signalPassFailure();
    }
    if (failed(checkOptions()) || failed(checkKernels(getOperation())) || failed(choose()))
      return signalPassFailure();
    const std::vector<double> seconds = predict(*known);
    for (auto [choice, predicted] : llvm::zip(choices, seconds))
      setCost(choice, predicted);
    if (target == Target::Cuda)
      keepEngines(*known);
  }

  /// Step 3.
  void keepEngines(const planner::Profile &device) {
    SmallVector<RecordedEngine> engines;
    for (const auto &[convolution, engine] : device.engines)
      engines.push_back({convolution, engine.name, engine.parts});
    if (!engines.empty())
      setEngines(getOperation(), engines);
  }

  LogicalResult checkOptions() {
    if (workspaceLimit < 0)
      return getOperation().emitError() << "workspace-limit=" << workspaceLimit.getValue()
                                        << " is below 0, which stands for no limit of its own";
    if (threads < 0 || threads > mostThreads || (level != 0 && !isCpuLevel(level)))
      return getOperation().emitError() << "threads=" << threads.getValue() << " level=" << level.getValue()
                                        << " are for no machine: threads go to " << mostThreads
                                        << ", levels of processors from " << firstLevel << " to " << lastLevel;
    return success();
  }

  /// Step 1.
  LogicalResult choose() {
    auto precision = getOperation()->getAttrOfType<StringAttr>("train.precision");
    const bool halves = precision && precision.getValue() == "bf16";
    const HostMachine machine{threads, level, halves ? Precision::BF16 : Precision::FP32};
    adoptMachine(machine); // trials run here, too
    choices.clear();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto ofFunction =
          choicesOf(function, [&](Operation *op) { return kernelAlgorithms(target, op, workspaceLimit, machine); });
      if (failed(ofFunction))
        return failure();
      llvm::append_range(choices, std::move(*ofFunction));
    }
    return chooseAlgorithms(choices, workspaceLimit, alternatives);
  }

  /// Step 2. Ops that one name stands for, which a program measured together, share that time as their estimates do.
  std::vector<double> predict(const planner::Profile &device) {
    using Name = std::pair<std::string, std::string>;
    std::map<Name, std::pair<double, int>> ofStep; // estimated seconds and calls
    std::vector<double> seconds;
    std::vector<Name> names;
    const llvm::DenseMap<Operation *, Touches> touches = touchesOfFunctions();
    for (const AlgorithmChoice &choice : choices) {
      auto kernel = cast<HasKernel>(choice.op);
      names.emplace_back(nodeName(choice.op->getLoc()), kernel.launchName());
      seconds.push_back(secondsOf(choice.op, touches.at(choice.op->getParentOp()).of(choice.op), device) *
                        choice.offered[choice.chosen].slowness / choice.fastest);
      if (!isInStep(choice.op))
        continue;
      auto &[sum, count] = ofStep[names.back()];
      sum += seconds.back();
      count += recordedCalls(kernel);
    }
    for (size_t i = 0; i < choices.size(); ++i) {
      const auto *measured = device.measured(names[i].first, names[i].second);
      auto named = ofStep.find(names[i]);
      if (measured && named != ofStep.end() && named->second.first > 0)
        seconds[i] = seconds[i] / named->second.first * measured->seconds * named->second.second / measured->calls;
    }
    return seconds;
  }

  /// What profiles know of how much a kernel finds in caches depends on what runs around it.
  llvm::DenseMap<Operation *, Touches> touchesOfFunctions() {
    llvm::MapVector<Operation *, SmallVector<Operation *>> ops;
    for (const AlgorithmChoice &choice : choices)
      ops[choice.op->getParentOp()].push_back(choice.op);
    llvm::DenseMap<Operation *, Touches> touches;
    for (auto &[function, ofFunction] : ops)
      touches.try_emplace(function, cast<func::FuncOp>(function), ofFunction);
    return touches;
  }

  static bool isInStep(Operation *op) { return op->getParentOfType<func::FuncOp>().getSymName() == "step"; }

  /// Predicted seconds are those of the chosen algorithm; the others take as much longer as their slowness says.
  void setCost(const AlgorithmChoice &choice, double seconds) {
    Operation *op = choice.op;
    const KernelAlgorithm &chosen = choice.offered[choice.chosen];
    Builder b(op->getContext());
    auto cost = [&](const KernelAlgorithm &algorithm, AlgorithmAttr named, ArrayRef<CostAttr> others) {
      return CostAttr::get(op->getContext(), b.getF64FloatAttr(seconds * algorithm.slowness / chosen.slowness),
                           algorithm.workspace, named, others);
    };
    SmallVector<CostAttr> others;
    for (int i : alternatives ? choice.unbeaten() : std::vector<int>())
      others.push_back(cost(choice.offered[i], choice.offered[i].attribute(op->getContext()), {}));
    attr::set<attr::Cost>(op, cost(chosen, {}, others.size() > 1 ? ArrayRef(others) : ArrayRef<CostAttr>()));
    if (!chosen.name.empty() || chosen.granted)
      attr::set<attr::Algorithm>(op, chosen.attribute(op->getContext()));
  }

  std::vector<AlgorithmChoice> choices;
};

} // namespace
