// SPDX-License-Identifier: Apache-2.0
// fuse-epilogues, where the module says train.precision = "bf16" or "fp16", for each function:
//  1. train.conv whose result train.batch_norm reads becomes train.conv_statistics;
//  2. train.conv_backward_data whose result, with or without another gradient added, only goes through ReLU's gradient
//     to that of train.batch_norm becomes train.conv_backward_norm, unless an activation would live longer for it;
//  3. products beside train.gelu by tanh and its gradient become one op with these, see GeluEpilogues.h.
// What of train.batch_norm and its gradient is left is elementwise. Nothing depends on a plan or a budget.
// BatchNorm's sums read an activation for two numbers a channel, right after the convolution had each element of it in
// registers. Has to come before fuse, which takes the ops apart that are looked for here.
#include "passes/GeluEpilogues.h"
#include "passes/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether cuDNN's kernels with epilogues are for such a convolution: of images, ungrouped, with whole rows of 16
/// bytes. They compute as those of the processor generation before did, so that they are worth it where memory is what
/// they wait for: weights of one tap.
template <typename Op> bool takesEpilogue(Op op, Value x) {
  auto w = typeOf(op.getW());
  auto allAre = [](ArrayRef<int64_t> list, int64_t value) { return llvm::all_equal(list) && list.front() == value; };
  return w.getRank() == 4 && allAre(w.getShape().drop_front(2), 1) && allAre(op.getPads(), 0) && op.getGroup() == 1 &&
         w.getDimSize(0) % 8 == 0 && w.getDimSize(1) % 8 == 0 && typeOf(x).getRank() == 4;
}

/// The first op of this kind in the program whose operand 0 is `value`.
template <typename Op> Op firstReader(Value value) {
  Op first;
  for (Operation *user : value.getUsers())
    if (auto op = dyn_cast<Op>(user); op && op->getOperand(0) == value && (!first || op->isBeforeInBlock(first)))
      first = op;
  return first;
}

/// Step 1.
bool fuseStatistics(ConvOp conv) {
  BatchNormOp norm = firstReader<BatchNormOp>(conv.getY());
  if (!norm || conv.getBias() || !takesEpilogue(conv, conv.getX()))
    return false;
  OpBuilder b(conv);
  auto both =
      ConvStatisticsOp::create(b, conv.getLoc(), conv.getX(), conv.getW(), conv.getStridesAttr(), conv.getPadsAttr(),
                               conv.getDilationsAttr(), conv.getGroupAttr(), norm.getEpsilonAttr());
  copyOrdinal(conv, both);
  b.setInsertionPoint(norm);
  auto normalize = NormalizeOp::create(b, norm.getLoc(), norm.getY().getType(), both.getY(), both.getMean(),
                                       both.getRstd(), norm.getScale(), norm.getBias());
  copyOrdinal(norm, normalize);
  conv.getY().replaceAllUsesWith(both.getY());
  norm.replaceAllUsesWith(ValueRange{normalize.getY(), both.getMean(), both.getRstd()});
  norm.erase();
  conv.erase();
  return true;
}

/// A gradient that becomes one op.
struct Chain {
  ConvBackwardDataOp conv;
  AddOp add; ///< null: no other gradient is added
  ReluBackwardOp relu;
  BatchNormBackwardOp norm;

  explicit operator bool() const { return conv && relu && norm; }
  Value addend() { return !add ? Value() : add.getA() == conv.getDx() ? add.getB() : add.getA(); }
};

Operation *onlyUser(Value value) { return value.hasOneUse() ? *value.getUsers().begin() : nullptr; }

/// The ops from the convolution's gradient down, as far as each is the only reader of the one before. Null ops: no
/// chain.
Chain chainOf(ConvBackwardDataOp conv) {
  Chain chain{conv, {}, {}, {}};
  Operation *user = onlyUser(conv.getDx());
  if (auto add = dyn_cast_or_null<AddOp>(user); add && typeOf(add.getA()) == typeOf(add.getB())) {
    chain.add = add;
    user = onlyUser(add.getY());
  }
  const Value gradient = chain.add ? chain.add.getY() : conv.getDx();
  chain.relu = dyn_cast_or_null<ReluBackwardOp>(user);
  if (chain.relu && chain.relu.getDy() == gradient)
    chain.norm = firstReader<BatchNormBackwardOp>(chain.relu.getDx());
  return chain;
}

/// Whether fuse takes the sign of z from what BatchNorm read, as z is ReLU of its result alone: z is read no more by
/// then, and would live longer.
bool isSignOf(Value z, Value x) {
  auto relu = z.getDefiningOp<ReluOp>();
  Operation *norm = relu ? relu.getX().getDefiningOp() : nullptr;
  return isa_and_nonnull<NormalizeOp, BatchNormOp>(norm) && norm->getOperand(0) == x;
}

/// Step 2. The op comes where all gradients that it adds are there, before the weights' update.
bool fuseGradient(ConvBackwardDataOp conv) {
  Chain chain = chainOf(conv);
  auto allOne = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t i) { return i == 1; }); };
  if (!chain || !takesEpilogue(conv, conv.getDx()) || !allOne(conv.getStrides()) ||
      isSignOf(chain.relu.getY(), chain.norm.getX()))
    return false;
  BatchNormBackwardOp norm = chain.norm;
  OpBuilder b(chain.add ? chain.add.getOperation() : conv.getOperation());
  auto all = ConvBackwardNormOp::create(
      b, conv.getLoc(), chain.relu.getDx().getType(), norm.getDscale().getType(), norm.getDbias().getType(),
      conv.getDy(), conv.getW(), chain.relu.getY(), norm.getX(), norm.getMean(), norm.getRstd(), chain.addend(),
      conv.getStridesAttr(), conv.getPadsAttr(), conv.getDilationsAttr(), conv.getGroupAttr());
  copyOrdinal(conv, all);
  // The sums are computed beside the convolution; what they correct is an op of its own, as they are only known then.
  if (!norm.getDx().use_empty()) {
    auto type = typeOf(norm.getX());
    b.setInsertionPoint(norm);
    auto backward = NormalizeBackwardOp::create(b, norm.getLoc(), type, all.getDz(), norm.getX(), norm.getMean(),
                                                norm.getRstd(), norm.getScale(), all.getDscale(), all.getDbias(),
                                                type.getNumElements() / type.getDimSize(1));
    copyOrdinal(norm, backward);
    norm.getDx().replaceAllUsesWith(backward.getDx());
  }
  norm.getDscale().replaceAllUsesWith(all.getDscale());
  norm.getDbias().replaceAllUsesWith(all.getDbias());
  chain.relu.getDx().replaceAllUsesWith(all.getDz());
  norm.erase();
  chain.relu.erase();
  if (chain.add)
    chain.add.erase();
  conv.erase();
  return true;
}

struct FuseEpilogues : sluice::impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  /// Only where products are narrow: the kernels that compute sums beside a convolution exist in half precision alone.
  /// A sum of scaled gradients over many rows may be more than F16 holds.
  void runOnOperation() override {
    const FloatType half = halfOf(getOperation());
    if (!half)
      return;
    if (failed(checkRunsBefore(getOperation(), "sluice-fuse-epilogues", "sluice-fuse",
                               [](Operation *op) { return isa<FusedOp>(op); })))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (convolutions)
        fuseConvolutions(function);
      if (products) {
        slopesMade += fuseGeluGradients(function, half.isBF16());
        gelusMade += fuseGelus(function);
      }
    }
  }

private:
  void fuseConvolutions(func::FuncOp function) {
    for (ConvOp conv : llvm::to_vector(function.getOps<ConvOp>()))
      statisticsMade += fuseStatistics(conv);
    for (ConvBackwardDataOp conv : llvm::to_vector(function.getOps<ConvBackwardDataOp>()))
      gradientsMade += fuseGradient(conv);
  }
};

} // namespace
