// SPDX-License-Identifier: Apache-2.0
// split-step, for each step and its evaluation:
//  1. split train.batch_norm, whose statistics alone are of all samples;
//  2. find where each value can be cut (StepCuts.h);
//  3. make the ops anew, once for each part or once for all (PartedStep.h).
// No plan of whole tensors goes below what one op reads and writes, or keeps less than a layer for the whole batch.
#include "passes/PartedStep.h"
#include "passes/Passes.h"
#include "passes/SplitBatchNorms.h"

#include "ir/Buckets.h"
#include "ir/TensorName.h"

namespace sluice {
#define GEN_PASS_DEF_SPLITSTEP
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

struct SplitStep : sluice::impl::SplitStepBase<SplitStep> {
  using SplitStepBase::SplitStepBase;

  void runOnOperation() override {
    if (parts <= 1)
      return;
    ModuleOp module = getOperation();
    if (failed(checkRunsBefore(module, "sluice-split-step", "sluice-fuse", llvm::IsaPred<FusedOp>)))
      return signalPassFailure();
    for (const Bucket &bucket : bucketsOf(module))
      for (StringRef name : {bucket.step, bucket.evaluate})
        if (auto function = module.lookupSymbol<func::FuncOp>(name); function && failed(split(function)))
          return signalPassFailure();
  }

private:
  static bool isSame(BlockArgument argument) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
    return name && isShared(function->getParentOfType<ModuleOp>(), name.getValue());
  }

  /// The first extent of what a batch brings; 0: it brings nothing.
  static int64_t samplesOf(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments())
      if (auto type = cast<RankedTensorType>(argument.getType()); type.getRank() > 0 && !isSame(argument))
        return type.getDimSize(0);
    return 0;
  }

  LogicalResult split(func::FuncOp function) {
    const int64_t samples = samplesOf(function);
    const bool isBatch = along == CutAlong::Batch;
    const auto refused = [&](const Twine &why) {
      return function.emitError() << "@" << function.getName() << " cannot be computed in " << parts.getValue()
                                  << " parts of the " << (isBatch ? "batch" : "images") << ": " << why;
    };
    if (isBatch && parts > samples)
      return refused("it has " + Twine(samples) + (samples == 1 ? " sample" : " samples"));
    splitBatchNorms(function);
    const StepCuts cuts(function, {along, samples, parts, above}, isSame);
    PartedStep step(function, cuts);
    if (step.partedOps() == 0)
      return refused(
          isBatch
              ? "no op whose samples are apart reads and writes " + Twine(above.getValue()) + " bytes of them"
              : "no op of images has as many rows, and reads and writes " + Twine(above.getValue()) + " bytes of them");
    partedOps += step.partedOps();
    step.run();
    ModuleOp module = getOperation();
    module->setAttr(partsAttribute, StringAttr::get(module.getContext(),
                                                    (isBatch ? "a batch of " + std::to_string(samples) : "images") +
                                                        " in " + std::to_string(parts) + " parts"));
    return success();
  }
};

} // namespace
