// SPDX-License-Identifier: Apache-2.0
// split-batch, for each step and its evaluation:
//  1. split train.batch_norm, whose statistics alone are of all samples;
//  2. find where samples stand in each value (SampleAxes.h);
//  3. make the ops anew, once for each part or once for all (PartedStep.h).
// No plan of whole tensors goes below what one op reads and writes, or keeps less than a layer for the whole batch.
#include "passes/PartedStep.h"
#include "passes/Passes.h"
#include "passes/SplitBatchNorms.h"

#include "ir/Buckets.h"
#include "ir/TensorName.h"

namespace sluice {
#define GEN_PASS_DEF_SPLITBATCH
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

struct SplitBatch : sluice::impl::SplitBatchBase<SplitBatch> {
  using SplitBatchBase::SplitBatchBase;

  void runOnOperation() override {
    if (parts <= 1)
      return;
    ModuleOp module = getOperation();
    if (failed(checkRunsBefore(module, "sluice-split-batch", "sluice-fuse", llvm::IsaPred<FusedOp>)))
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
    const auto refused = [&](const Twine &why) {
      return function.emitError() << "@" << function.getName() << " cannot be computed in " << parts.getValue()
                                  << " parts of the batch: " << why;
    };
    if (parts > samples)
      return refused("it has " + Twine(samples) + (samples == 1 ? " sample" : " samples"));
    splitBatchNorms(function);
    const SampleAxes axes(function, samples, isSame, above);
    PartedStep step(function, axes, samples, parts);
    if (step.partedOps() == 0)
      return refused("no op whose samples are apart reads and writes " + Twine(above.getValue()) + " bytes of them");
    partedOps += step.partedOps();
    step.run();
    ModuleOp module = getOperation();
    module->setAttr(partsAttribute, StringAttr::get(module.getContext(), "a batch of " + Twine(samples) + " in " +
                                                                             Twine(parts.getValue()) + " parts"));
    return success();
  }
};

} // namespace
