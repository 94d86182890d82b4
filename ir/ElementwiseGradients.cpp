// SPDX-License-Identifier: Apache-2.0
// Gradient rules of the elementwise ops, one short rule each. Rules read an op's result where they can, so that its
// operand need not live.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Adds `gradient` to `operand`, summed over the dimensions in which the operand was broadcast.
static void addSummed(OpBuilder &b, Location loc, Gradients &gradients, Value operand, Value gradient) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (type.getShape() != cast<RankedTensorType>(gradient.getType()).getShape())
    gradient = SumToOp::create(b, loc, type, gradient, b.getF32FloatAttr(1));
  gradients.add(b, loc, operand, gradient);
}

SINGLE(ReluOp, ReluBackwardOp::create(b, getLoc(), getX().getType(), dy, getY()))
SINGLE(ClipOp, ClipBackwardOp::create(b, getLoc(), getX().getType(), dy, getY(), getMinAttr(), getMaxAttr()))
SINGLE(SigmoidOp, SigmoidBackwardOp::create(b, getLoc(), getX().getType(), dy, getY()))
SINGLE(TanhOp, TanhBackwardOp::create(b, getLoc(), getX().getType(), dy, getY()))
SINGLE(ErfOp, ErfBackwardOp::create(b, getLoc(), getX().getType(), dy, getX()))
SINGLE(GeluOp, GeluBackwardOp::create(b, getLoc(), getX().getType(), dy, getX(), getTanhAttr()))
SINGLE(ExpOp, MulOp::create(b, getLoc(), dy, getY()))
SINGLE(LogOp, DivOp::create(b, getLoc(), dy, getX()))
SINGLE(SqrtOp, DivOp::create(b, getLoc(), ScaleOp::create(b, getLoc(), dy, b.getF32FloatAttr(0.5f)), getY()))
SINGLE(ReciprocalOp,
       ScaleOp::create(b, getLoc(), MulOp::create(b, getLoc(), dy, MulOp::create(b, getLoc(), getY(), getY())),
                       b.getF32FloatAttr(-1)))
SINGLE(AbsOp, AbsBackwardOp::create(b, getLoc(), getX().getType(), dy, getX()))
SINGLE(SoftplusOp, MulOp::create(b, getLoc(), dy, SigmoidOp::create(b, getLoc(), getX())))
SINGLE(EluOp, EluBackwardOp::create(b, getLoc(), getX().getType(), dy, getY(), getAlphaAttr()))
SINGLE(ScaleOp, ScaleOp::create(b, getLoc(), dy, getFactorAttr()))
// The same draw keeps the same elements, so the gradient of dropout is dropout.
SINGLE(DropoutOp, DropoutOp::create(b, getLoc(), dy, getRatioAttr(), getKeyAttr(), getGroupAttr(), getFirstAttr()))
// With a positive slope the result has the operand's sign.
SINGLE(LeakyReluOp, LeakyReluBackwardOp::create(b, getLoc(), getX().getType(), dy,
                                                getAlpha().convertToDouble() > 0 ? getY() : getX(), getAlphaAttr()))

SINGLE(TrigonometricOp, TrigonometricBackwardOp::create(b, getLoc(), getX().getType(), dy, getX(), getFunctionAttr()))

// a and b may be one value: each contributes then.
GRADIENT(AddOp) {
  Value dy = gradients.of(getY());
  for (Value operand : {getA(), getB()})
    if (dy && gradients.wanted(operand))
      addSummed(b, getLoc(), gradients, operand, dy);
  return success();
}

GRADIENT(SubOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getA()))
    addSummed(b, getLoc(), gradients, getA(), dy);
  if (dy && gradients.wanted(getB()))
    addSummed(b, getLoc(), gradients, getB(), ScaleOp::create(b, getLoc(), dy, b.getF32FloatAttr(-1)));
  return success();
}

GRADIENT(MulOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getA()))
    addSummed(b, getLoc(), gradients, getA(), MulOp::create(b, getLoc(), dy, getB()));
  if (dy && gradients.wanted(getB()))
    addSummed(b, getLoc(), gradients, getB(), MulOp::create(b, getLoc(), dy, getA()));
  return success();
}

// d(a/b)/db = -(a/b)/b
GRADIENT(DivOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getA()))
    addSummed(b, getLoc(), gradients, getA(), DivOp::create(b, getLoc(), dy, getB()));
  if (dy && gradients.wanted(getB())) {
    Value ratio = DivOp::create(b, getLoc(), MulOp::create(b, getLoc(), dy, getY()), getB());
    addSummed(b, getLoc(), gradients, getB(), ScaleOp::create(b, getLoc(), ratio, b.getF32FloatAttr(-1)));
  }
  return success();
}

// d(a - b n)/db = -n
GRADIENT(RemainderOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getA()))
    addSummed(b, getLoc(), gradients, getA(), dy);
  if (dy && gradients.wanted(getB())) {
    Value whole = RoundOp::create(b, getLoc(), DivOp::create(b, getLoc(), getA(), getB()), Rounding::TowardZero);
    Value product = MulOp::create(b, getLoc(), dy, whole);
    addSummed(b, getLoc(), gradients, getB(), ScaleOp::create(b, getLoc(), product, b.getF32FloatAttr(-1)));
  }
  return success();
}

// Step functions: zero wherever they have a gradient.
LogicalResult CompareOp::buildGradients(OpBuilder &, Gradients &) { return success(); }

LogicalResult DetachOp::buildGradients(OpBuilder &, Gradients &) { return success(); }

// Straight-through, as quantized models are trained; without the flag rounding is a step function.
GRADIENT(RoundOp) {
  if (Value dy = gradients.of(getY()); dy && getStraightThrough() && gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(), dy);
  return success();
}

GRADIENT(NoiseOp) {
  if (Value dy = gradients.of(getY()); dy && gradients.wanted(getX()))
    addSummed(b, getLoc(), gradients, getX(), dy);
  return success();
}

// The condition has no gradient; each side has dy where it was taken and zeros elsewhere.
GRADIENT(SelectOp) {
  Value dy = gradients.of(getY());
  for (bool other : {false, true})
    if (Value operand = other ? getB() : getA(); dy && gradients.wanted(operand))
      addSummed(b, getLoc(), gradients, operand,
                SelectBackwardOp::create(b, getLoc(), dy.getType(), dy, getCondition(), other));
  return success();
}

// Mean and variance are running statistics, which no gradient reaches.
GRADIENT(ChannelAffineOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  if (gradients.wanted(getScale()) || gradients.wanted(getBias())) {
    auto sums = ChannelAffineReduceOp::create(b, getLoc(), getScale().getType(), getBias().getType(), dy, getX(),
                                              getMean(), getVariance(), getEpsilonAttr());
    if (gradients.wanted(getScale()))
      gradients.add(b, getLoc(), getScale(), sums.getDscale());
    if (gradients.wanted(getBias()))
      gradients.add(b, getLoc(), getBias(), sums.getDbias());
  }
  if (gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(),
                  ChannelAffineBackwardOp::create(b, getLoc(), getX().getType(), dy, getVariance(), getScale(),
                                                  getEpsilonAttr()));
  return success();
}

bool ChannelAffineOp::isWeightOperand(unsigned i) { return i >= 3; }
