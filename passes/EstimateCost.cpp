// SPDX-License-Identifier: Apache-2.0
// estimate-cost, in order:
//  1. ask the target's kernels in which ways they can compute every op, with which workspaces, and choose one for each;
//  2. ask every op for its arithmetic and traffic, and the profile for the time of such an op;
//  3. sum up the stages of @step.
#include "passes/Buffers.h"
#include "passes/CudaKernels.h"
#include "passes/HostKernels.h"
#include "passes/OpKinds.h"
#include "passes/Passes.h"
#include "passes/planner/Profile.h"

namespace sluice {
#define GEN_PASS_DEF_ESTIMATECOST
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

planner::OpKind sluice::kindOf(Operation *op) {
  using planner::OpKind;
  if (isa<ConvOp, ConvTransposeOp, ConvBackwardDataOp, ConvBackwardWeightOp>(op))
    return OpKind::Conv;
  if (isa<MaxPoolOp, AveragePoolOp, MaxPoolBackwardOp, AveragePoolBackwardOp>(op))
    return OpKind::Pool;
  if (isa<MatmulOp>(op))
    return OpKind::FullyConnected;
  if (isa<ConcatOp>(op))
    return OpKind::Concat;
  if (isa<BatchNormStatisticsOp, LrnOp, LrnBackwardOp>(op))
    return OpKind::Norm;
  if (isa<SoftmaxCrossEntropyOp, MseOp, BceWithLogitsOp, LossBackwardOp>(op))
    return OpKind::Loss;
  if (isa<UpdateOp, UpdateStatisticsOp>(op))
    return OpKind::Update;
  if (auto fused = dyn_cast<FusedOp>(op)) {
    // A normalization has per-channel operands, a join more than one full-shape operand.
    if (!fused.getChannels().empty())
      return OpKind::Norm;
    if (!fused.getBody().getOps<UniformOp>().empty())
      return OpKind::Dropout;
    return fused.getNumOperands() > 1 && isForward(op) ? OpKind::Join : OpKind::Activation;
  }
  return OpKind::Other;
}

/// The rate at which the op's arithmetic runs, as profiles name it: products run on tensor cores unless their factors are f32 and shall stay so.
static std::string rateOf(Operation *op) {
  auto aware = dyn_cast<PrecisionAware>(op);
  if (!aware || aware.precisionWish() != PrecisionWish::Product)
    return "fp32";
  if (cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().isBF16())
    return "bf16";
  auto precision = op->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>("train.precision");
  return precision && precision.getValue() == "tf32" ? "tf32" : "fp32";
}

namespace {

struct EstimateCost : sluice::impl::EstimateCostBase<EstimateCost> {
  using EstimateCostBase::EstimateCostBase;

  void runOnOperation() override {
    planner::Profile device;
    std::string error;
    if (!loadDevice(this->device, profile, device, error)) {
      getOperation().emitError() << error;
      return signalPassFailure();
    }
    if (failed(choose()))
      return signalPassFailure();
    for (const AlgorithmChoice &choice : choices)
      estimate(choice, device);
    if (auto step = getOperation().lookupSymbol<func::FuncOp>("step"))
      summarize(step);
  }

  /// Step 1.
  LogicalResult choose() {
    auto precision = getOperation()->getAttrOfType<StringAttr>("train.precision");
    const bool cuda = target == "cuda";
    const int64_t limit = cuda && workspaceLimit == 0 ? defaultCudaWorkspace(precision ? precision.getValue() : "fp32") : workspaceLimit;
    choices.clear();
    for (auto function : getOperation().getOps<func::FuncOp>())
      llvm::append_range(choices, choicesOf(function, [&](Operation *op) { return cuda ? cudaAlgorithms(op, limit) : hostAlgorithms(op); }));
    return chooseAlgorithms(choices, limit, alternatives);
  }

  /// Step 2.
  void estimate(const AlgorithmChoice &choice, const planner::Profile &device) {
    Operation *op = choice.op;
    int64_t flops = 0, moved = 0;
    if (auto costed = dyn_cast<Costed>(op)) {
      flops = costed.flops();
      moved = costed.bytesMoved();
    }
    // An update reads and writes the parameter and its state besides the gradient.
    if (auto update = dyn_cast<UpdateOp>(op))
      moved = bytes(update.getGradient().getType()) * (3 + 2 * static_cast<int64_t>(update.getStates().size()));
    const KernelAlgorithm &chosen = choice.offered[choice.chosen];
    double seconds = device.estimate(kindOf(op), flops, moved, rateOf(op)) * chosen.slowness / choice.fastest;
    if (auto *measured = device.measured(nodeName(op->getLoc()), op->getName().stripDialect().str()))
      seconds = measured->seconds;
    Builder b(op->getContext());
    auto cost = [&](const KernelAlgorithm &algorithm, bool named) {
      SmallVector<NamedAttribute> entries = {
          b.getNamedAttr("seconds", b.getF64FloatAttr(seconds * algorithm.slowness / chosen.slowness)),
          b.getNamedAttr("workspace", b.getI64IntegerAttr(algorithm.workspace))};
      if (named)
        entries.push_back(b.getNamedAttr("algorithm", algorithm.attribute(op->getContext())));
      return entries;
    };
    SmallVector<NamedAttribute> entries = cost(chosen, false);
    SmallVector<Attribute> others;
    for (int i : alternatives ? choice.unbeaten() : std::vector<int>())
      others.push_back(b.getDictionaryAttr(cost(choice.offered[i], true)));
    if (others.size() > 1)
      entries.push_back(b.getNamedAttr("alternatives", b.getArrayAttr(others)));
    op->setAttr(attr::cost, b.getDictionaryAttr(entries));
    if (!chosen.name.empty() || chosen.granted)
      op->setAttr(attr::algorithm, chosen.attribute(op->getContext()));
  }

  /// Step 3. Saved: activations of the stage that its backward ops read; boundary: what the next stage reads.
  static void summarize(func::FuncOp step) {
    struct Stage {
      double forward = 0, backward = 0;
      int64_t saved = 0, boundary = 0;
    };
    std::vector<Stage> stages;
    auto stageOf = [](Operation *op) {
      auto number = op->getAttrOfType<IntegerAttr>(attr::stage);
      return number ? number.getInt() : int64_t(0);
    };
    for (Operation &op : step.getBody().front().without_terminator()) {
      auto cost = op.getAttrOfType<DictionaryAttr>(attr::cost);
      if (!cost)
        continue;
      size_t number = stageOf(&op);
      stages.resize(std::max(stages.size(), number + 1));
      double seconds = cost.getAs<FloatAttr>("seconds").getValueAsDouble();
      (isForward(&op) ? stages[number].forward : stages[number].backward) += seconds;
      if (!isForward(&op))
        continue;
      for (Value result : op.getResults()) {
        bool saved = false, boundary = false;
        for (Operation *user : result.getUsers()) {
          saved |= !isForward(user) && !user->hasTrait<OpTrait::IsTerminator>();
          boundary |= isForward(user) && stageOf(user) != static_cast<int64_t>(number);
        }
        stages[number].saved += saved && !boundary ? bytes(result.getType()) : 0;
        stages[number].boundary += boundary ? bytes(result.getType()) : 0;
      }
    }
    Builder b(step.getContext());
    SmallVector<Attribute> list;
    for (const Stage &stage : stages)
      list.push_back(b.getDictionaryAttr({b.getNamedAttr("boundary", b.getI64IntegerAttr(stage.boundary)),
                                          b.getNamedAttr("saved", b.getI64IntegerAttr(stage.saved)),
                                          b.getNamedAttr("u_b", b.getF64FloatAttr(stage.backward)),
                                          b.getNamedAttr("u_f", b.getF64FloatAttr(stage.forward))}));
    step->setAttr("train.stages", b.getArrayAttr(list));
  }

  std::vector<AlgorithmChoice> choices;
};

} // namespace
