// SPDX-License-Identifier: Apache-2.0
// Normalizations and their gradients. The elementwise parts of batch normalization are in Elementwise.cpp.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

INFER(BatchNormOp) {
  auto x = ranked(op.getX()), scale = ranked(op.getScale());
  if (x.getRank() < 2 || scale.getShape() != ArrayRef<int64_t>{x.getDimSize(1)} || ranked(op.getBias()) != scale) // C1
    return fail(loc, "batch normalization of ", x, " has scale ", scale, " and bias ", ranked(op.getBias()));
  types.append({x, scale, scale});
  return success();
}

INFER(BatchNormStatisticsOp) {
  auto x = ranked(op.getX());
  if (x.getRank() < 2)
    return fail(loc, "batch normalization needs rank 2 or more, has ", x);
  auto channel = RankedTensorType::get({x.getDimSize(1)}, Float32Type::get(context));
  types.append({channel, channel});
  return success();
}

INFER(LrnOp) {
  if (ranked(op.getX()).getRank() != 4 || op.getSize() < 1)
    return fail(loc, "lrn needs rank 4 and a positive size, has ", ranked(op.getX()), " and ", op.getSize());
  types.push_back(op.getX().getType());
  return success();
}

// One op for all three, as dx reads both sums; fuse takes it apart.
GRADIENT(BatchNormOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  auto op = BatchNormBackwardOp::create(b, getLoc(), getX().getType(), getScale().getType(), getBias().getType(), dy,
                                        getX(), getScale(), getMean(), getRstd(), getRanksAttr());
  for (auto [operand, gradient] :
       {std::pair<Value, Value>{getScale(), op.getDscale()}, {getBias(), op.getDbias()}, {getX(), op.getDx()}})
    if (gradients.wanted(operand))
      gradients.add(b, getLoc(), operand, gradient);
  return success();
}

bool BatchNormOp::isWeightOperand(unsigned i) { return i >= 1; }

SINGLE(LrnOp, LrnBackwardOp::create(b, getLoc(), getX().getType(), dy, getX(), getSizeAttr(), getAlphaAttr(),
                                    getBetaAttr(), getBiasAttr()))

// Twice through the forward op: once for what it reads, once for what it makes, which must have the types of its
// operands. The epsilon is in rstd and does not matter here.
LogicalResult BatchNormBackwardOp::verify() {
  BatchNormOp::Properties p;
  p.epsilon = FloatAttr::get(Float32Type::get(getContext()), 0);
  if (failed(mirrors<BatchNormOp>(*this, {getX(), getScale(), getScale()}, p, {getDy(), getMean(), getRstd()})))
    return failure();
  return mirrors<BatchNormOp>(*this, {getDx(), getDscale(), getDbias()}, p, {getX(), getScale(), getScale()});
}

LogicalResult LrnBackwardOp::verify() {
  LrnOp::Properties p;
  p.size = getSizeAttr();
  return failed(sameShapes(*this, {getDy(), getX()})) ? failure() : mirrors<LrnOp>(*this, {getDx()}, p, {getDy()});
}

KERNEL(BatchNormStatisticsOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::BatchNormStatistics{calls.shape(in(0)), getEpsilon().convertToFloat()}, "run",
                      {in(0), out(0), out(1), scratchSlot});
}

KERNEL(UpdateStatisticsOp) { // out: the running vectors
  KernelCalls calls(*this);
  arguments::UpdateStatistics kernel{};
  kernel.channels = calls.shape(in(0))[0], kernel.count = static_cast<int64_t>(getCount());
  kernel.momentum = getMomentum().convertToFloat(), kernel.epsilon = getEpsilon().convertToFloat();
  return calls.object(kernel, "run", {in(0), in(1), out(0), out(1)});
}

template <typename Op> static Calls normalization(Op op, StringRef method, ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  arguments::Lrn kernel{};
  kernel.x = calls.shape(in(0)), kernel.size = static_cast<int64_t>(op.getSize());
  kernel.alpha = op.getAlpha().convertToFloat(), kernel.beta = op.getBeta().convertToFloat();
  kernel.bias = op.getBias().convertToFloat();
  return calls.object(kernel, method, operands);
}

KERNEL(LrnOp) { return normalization(*this, "forward", {in(0), out(0), scratchSlot}); }
KERNEL(LrnBackwardOp) { return normalization(*this, "backward", {in(0), in(1), out(0), scratchSlot}); }

PrecisionPreference BatchNormStatisticsOp::precisionPreference() { return PrecisionPreference::Mixed; }

bool BatchNormStatisticsOp::isResultWide(unsigned) { return true; }

// Layer normalization.

INFER(LayerNormOp) {
  auto x = ranked(op.getX()), scale = ranked(op.getScale()), bias = ranked(op.getBias());
  if (x.getRank() != 2 || scale.getShape() != x.getShape().drop_front() || bias != scale) // C1
    return fail(loc, "layer normalization of ", x, " has scale ", scale, " and bias ", bias);
  auto row = RankedTensorType::get({x.getDimSize(0), 1}, Float32Type::get(context));
  types.append({x, row, row});
  return success();
}

// x is [rows, columns], and mean and rstd are [rows, 1]. normalize_reduce, written for channels, sums over all
// dimensions but 1, here over rows, and takes statistics of rank 2 as what broadcasts.
GRADIENT(LayerNormOp) {
  Value dy = gradients.of(getY());
  if (dy && (gradients.wanted(getScale()) || gradients.wanted(getBias()))) {
    auto sums = NormalizeReduceOp::create(b, getLoc(), getScale().getType(), getBias().getType(), dy, getX(), getMean(),
                                          getRstd());
    for (auto [operand, gradient] :
         {std::pair<Value, Value>{getScale(), sums.getDscale()}, {getBias(), sums.getDbias()}})
      if (gradients.wanted(operand))
        gradients.add(b, getLoc(), operand, gradient);
  }
  if (dy && gradients.wanted(getX()))
    gradients.add(
        b, getLoc(), getX(),
        LayerNormBackwardOp::create(b, getLoc(), getX().getType(), dy, getX(), getScale(), getMean(), getRstd()));
  return success();
}

/// Types do not depend on epsilon, so that any will do for the forward op's inference.
LogicalResult LayerNormBackwardOp::verify() {
  LayerNormOp::Properties p;
  p.epsilon = FloatAttr::get(Float32Type::get(getContext()), 0);
  if (failed(sameShapes(*this, {getDy(), getX(), getDx()})))
    return failure();
  return mirrors<LayerNormOp>(*this, {getX(), getScale(), getScale()}, p, {getDy(), getMean(), getRstd()});
}

KERNEL(LayerNormOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::LayerNorm{calls.shape(in(0)), getEpsilon().convertToFloat()}, "forward",
                      {in(0), in(1), in(2), out(0), out(1), out(2)});
}
KERNEL(LayerNormBackwardOp) { // it reads no epsilon: rstd has it
  KernelCalls calls(*this);
  return calls.object(arguments::LayerNorm{calls.shape(in(0)), 0.0f}, "backward",
                      {in(0), in(1), in(2), in(3), in(4), out(0)});
}

bool LayerNormOp::isWeightOperand(unsigned i) { return i >= 1; }
bool LayerNormOp::isOperandWide(unsigned i) { return i >= 1; }
bool LayerNormOp::isResultWide(unsigned i) { return i >= 1; }
bool LayerNormBackwardOp::isOperandWide(unsigned i) { return i >= 2; }
