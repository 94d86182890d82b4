// SPDX-License-Identifier: Apache-2.0
// join-losses: each train.softmax_cross_entropy and the train.loss_backward that reads what it reads become one op, in
// the place of the gradient. Comes after pad-products, which looks for both, and before linearize, which says whether
// the gradient takes the bytes of the logits.
#include "passes/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_JOINLOSSES
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// The gradient that one kernel may compute with the loss; null: none.
LossBackwardOp gradientOf(SoftmaxCrossEntropyOp loss) {
  for (Operation *op = loss->getNextNode(); op; op = op->getNextNode()) {
    auto gradient = dyn_cast<LossBackwardOp>(op);
    if (gradient && gradient.getLoss() == LossForm::SoftmaxCrossEntropy && gradient.getX() == loss.getX() &&
        gradient.getTarget() == loss.getTarget() && gradient.getIgnoreIndexAttr() == loss.getIgnoreIndexAttr() &&
        gradient.getClassesAttr() == loss.getClassesAttr() && gradient.getFirstAttr() == loss.getFirstAttr())
      return gradient;
    if (llvm::is_contained(op->getOperands(), loss.getLoss()))
      return {};
  }
  return {};
}

struct JoinLosses : sluice::impl::JoinLossesBase<JoinLosses> {
  using JoinLossesBase::JoinLossesBase;

  void runOnOperation() override {
    if (failed(checkRunsBefore(getOperation(), "sluice-join-losses", "sluice-linearize", attr::has<attr::Stage>)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (auto loss : llvm::to_vector(function.getOps<SoftmaxCrossEntropyOp>()))
        if (LossBackwardOp gradient = gradientOf(loss))
          join(loss, gradient);
  }

private:
  void join(SoftmaxCrossEntropyOp loss, LossBackwardOp gradient) {
    OpBuilder b(gradient);
    auto both = LossAndGradientOp::create(b, loss.getLoc(), gradient.getDx().getType(), loss.getLoss().getType(),
                                          loss.getX(), loss.getTarget(), loss.getIgnoreIndexAttr(),
                                          loss.getClassesAttr(), loss.getFirstAttr());
    copyOrdinal(gradient, both);
    loss.getLoss().replaceAllUsesWith(both.getLoss());
    gradient.getDx().replaceAllUsesWith(both.getDx());
    loss.erase();
    gradient.erase();
    ++joined;
  }
};

} // namespace
