// SPDX-License-Identifier: Apache-2.0
// Gradient rules of the forward ops with kernels of their own: the Differentiable methods, together, one short rule
// each.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

#define GRADIENT(Op) LogicalResult Op::buildGradients(OpBuilder &b, Gradients &gradients)

GRADIENT(ConvOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  bool bias = getBias() && gradients.wanted(getBias());
  if (gradients.wanted(getW()) || bias) {
    auto op = ConvBackwardWeightOp::create(b, getLoc(), getW().getType(), bias ? getBias().getType() : Type(), dy,
                                           getX(), getStridesAttr(), getPadsAttr(), getDilationsAttr(), getGroupAttr());
    if (gradients.wanted(getW()))
      gradients.add(b, getLoc(), getW(), op.getDw());
    if (bias)
      gradients.add(b, getLoc(), getBias(), op.getDbias());
  }
  if (gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(),
                  ConvBackwardDataOp::create(b, getLoc(), getX().getType(), dy, getW(), getStridesAttr(), getPadsAttr(),
                                             getDilationsAttr(), getGroupAttr()));
  return success();
}
bool ConvOp::isWeightOperand(unsigned i) { return i >= 1; }

// y is the data gradient of a convolution that maps y to x: its gradients are that convolution and its weight gradient.
GRADIENT(ConvTransposeOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getW())) {
    auto op = ConvBackwardWeightOp::create(b, getLoc(), getW().getType(), Type(), getX(), dy, getStridesAttr(),
                                           getPadsAttr(), getDilationsAttr(), getGroupAttr());
    gradients.add(b, getLoc(), getW(), op.getDw());
  }
  if (dy && gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(),
                  ConvOp::create(b, getLoc(), dy, getW(), Value(), getStridesAttr(), getPadsAttr(), getDilationsAttr(),
                                 getGroupAttr()));
  return success();
}
bool ConvTransposeOp::isWeightOperand(unsigned i) { return i == 1; }

GRADIENT(BatchNormOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  auto op = BatchNormBackwardOp::create(b, getLoc(), getX().getType(), getScale().getType(), getBias().getType(), dy,
                                        getX(), getScale(), getMean(), getRstd());
  for (auto [operand, gradient] :
       {std::pair<Value, Value>{getScale(), op.getDscale()}, {getBias(), op.getDbias()}, {getX(), op.getDx()}})
    if (gradients.wanted(operand))
      gradients.add(b, getLoc(), operand, gradient);
  return success();
}
bool BatchNormOp::isWeightOperand(unsigned i) { return i >= 1; }

/// For ops with one differentiable operand x: the gradient op `Expression` of dy.
#define SINGLE(Op, Expression)                                                                                         \
  GRADIENT(Op) {                                                                                                       \
    Value dy = gradients.of(getY());                                                                                   \
    if (dy && gradients.wanted(getX()))                                                                                \
      gradients.add(b, getLoc(), getX(), Expression);                                                                  \
    return success();                                                                                                  \
  }

SINGLE(MaxPoolOp, MaxPoolBackwardOp::create(b, getLoc(), getX().getType(), dy, getIndices(), getKernelAttr(),
                                            getStridesAttr(), getPadsAttr(), getDilationsAttr()))
SINGLE(AveragePoolOp, AveragePoolBackwardOp::create(b, getLoc(), getX().getType(), dy, getKernelAttr(),
                                                    getStridesAttr(), getPadsAttr(), getCountIncludePadAttr()))
SINGLE(LrnOp, LrnBackwardOp::create(b, getLoc(), getX().getType(), dy, getX(), getSizeAttr(), getAlphaAttr(),
                                    getBetaAttr(), getBiasAttr()))
SINGLE(SoftmaxOp,
       SoftmaxBackwardOp::create(b, getLoc(), getX().getType(), dy, getY(), getAxisAttr(), getLogarithmAttr()))
SINGLE(SliceOp, PadSlabOp::create(b, getLoc(), getX().getType(), dy, getAxisAttr(), getStartAttr()))
SINGLE(ReshapeOp, ReshapeOp::create(b, getLoc(), getX().getType(), dy))
SINGLE(ReorderOp, ReorderOp::create(b, getLoc(), getX().getType(), dy))
SINGLE(ResizeOp, ResizeBackwardOp::create(b, getLoc(), getX().getType(), dy, getScaleHAttr(), getScaleWAttr(),
                                          getModeAttr(), getCoordinatesAttr(), getNearestAttr()))
SINGLE(BroadcastToOp, SumToOp::create(b, getLoc(), getX().getType(), dy, getFactorAttr()))
SINGLE(SumToOp, BroadcastToOp::create(b, getLoc(), getX().getType(), dy, getFactorAttr()))

GRADIENT(TransposeOp) {
  Value dy = gradients.of(getY());
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = to;
  if (dy && gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(), TransposeOp::create(b, getLoc(), dy, inverse));
  return success();
}

GRADIENT(ConcatOp) {
  Value dy = gradients.of(getY());
  int64_t start = 0;
  for (Value x : getXs()) {
    int64_t length = cast<RankedTensorType>(x.getType()).getDimSize(getAxis());
    if (dy && gradients.wanted(x))
      gradients.add(b, getLoc(), x, SliceOp::create(b, getLoc(), dy, getAxis(), start, length));
    start += length;
  }
  return success();
}

/// alpha * op(a) op(b), summed over broadcast batches to `type`.
static Value product(OpBuilder &b, Location loc, Value x, Value y, bool tx, bool ty, FloatAttr alpha, Type type) {
  Value result =
      MatmulOp::create(b, loc, x, y, Value(), b.getBoolAttr(tx), b.getBoolAttr(ty), alpha, b.getF32FloatAttr(1));
  if (cast<RankedTensorType>(result.getType()).getShape() != cast<RankedTensorType>(type).getShape())
    result = SumToOp::create(b, loc, type, result, b.getF32FloatAttr(1));
  return result;
}

/// [batch..., M, K] as [batch * M, K].
static Value flattenRows(OpBuilder &b, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t columns = type.getShape().back();
  return ReshapeOp::create(
      b, loc, RankedTensorType::get({type.getNumElements() / columns, columns}, type.getElementType()), value);
}

GRADIENT(MatmulOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  Value a = getA(), w = getB();
  bool ta = getTransposeA(), tb = getTransposeB();
  if (gradients.wanted(w)) {
    Value rows = a, rowGradients = dy;
    // One large product instead of a batch of small ones and their sum.
    if (cast<RankedTensorType>(w.getType()).getRank() == 2 && cast<RankedTensorType>(a.getType()).getRank() > 2 &&
        !ta) {
      rows = flattenRows(b, getLoc(), a);
      rowGradients = flattenRows(b, getLoc(), dy);
    }
    gradients.add(b, getLoc(), w,
                  tb ? product(b, getLoc(), rowGradients, rows, true, ta, getAlphaAttr(), w.getType())
                     : product(b, getLoc(), rows, rowGradients, !ta, false, getAlphaAttr(), w.getType()));
  }
  if (getBias() && gradients.wanted(getBias()))
    gradients.add(b, getLoc(), getBias(), SumToOp::create(b, getLoc(), getBias().getType(), dy, getBetaAttr()));
  if (gradients.wanted(a))
    gradients.add(b, getLoc(), a,
                  ta ? product(b, getLoc(), w, dy, tb, true, getAlphaAttr(), a.getType())
                     : product(b, getLoc(), dy, w, false, !tb, getAlphaAttr(), a.getType()));
  return success();
}
bool MatmulOp::isWeightOperand(unsigned) { return true; }

// A loss is the last op: its own upstream gradient is 1.
#define LOSS(Op)                                                                                                       \
  GRADIENT(Op) {                                                                                                       \
    if (gradients.wanted(getX()))                                                                                      \
      gradients.add(b, getLoc(), getX(),                                                                               \
                    LossBackwardOp::create(b, getLoc(), getX().getType(), getX(), getTarget(),                         \
                                           Op::getOperationName().drop_front(6)));                                     \
    return success();                                                                                                  \
  }
LOSS(SoftmaxCrossEntropyOp)
LOSS(MseOp)
LOSS(BceWithLogitsOp)
