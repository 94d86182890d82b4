// SPDX-License-Identifier: Apache-2.0
// Verifiers of the gradient ops. One with the attributes of a forward op has the shapes that the forward op has: that
// op's own inference, run from gradient to result, is the check.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// C1 of ops that mirror a forward op: `Forward` with `properties` maps `operands` to results of `wanted`'s shapes.
/// `silent` says nothing.
template <typename Forward>
static LogicalResult mirrors(Operation *op, ValueRange operands, const typename Forward::Properties &properties,
                             ValueRange wanted, bool silent = false) {
  SmallVector<Type> types;
  typename Forward::Adaptor forward(operands, DictionaryAttr::get(op->getContext()), properties);
  if (failed(Forward::inferReturnTypes(op->getContext(), silent ? std::nullopt : std::optional(op->getLoc()), forward,
                                       types)))
    return failure();
  for (auto [type, value] : llvm::zip(types, wanted))
    if (cast<RankedTensorType>(type).getShape() != shapeOf(value))
      return silent ? failure()
                    : op->emitOpError() << "is no gradient of '" << Forward::getOperationName() << "', which gives "
                                        << type << ", not " << value.getType();
  return success();
}

/// C1 of ops whose full tensors have one shape.
static LogicalResult sameShapes(Operation *op, ValueRange values) {
  for (Value value : values)
    if (shapeOf(value) != shapeOf(values.front()))
      return op->emitOpError() << "has tensors of unlike shapes: " << values.front().getType() << " and "
                               << value.getType();
  return success();
}

template <typename Op> static ConvOp::Properties convolutionOf(Op op) {
  ConvOp::Properties p;
  p.strides = op.getStridesAttr(), p.pads = op.getPadsAttr(), p.dilations = op.getDilationsAttr(),
  p.group = op.getGroupAttr();
  return p;
}
LogicalResult ConvBackwardDataOp::verify() {
  return mirrors<ConvOp>(*this, {getDx(), getW()}, convolutionOf(*this), {getDy()});
}
LogicalResult ConvBackwardWeightOp::verify() {
  SmallVector<Value> operands{getX(), getDw()};
  if (getDbias())
    operands.push_back(getDbias());
  return mirrors<ConvOp>(*this, operands, convolutionOf(*this), {getDy()});
}

LogicalResult BatchNormBackwardOp::verify() {
  BatchNormOp::Properties p;
  p.epsilon = FloatAttr::get(Float32Type::get(getContext()), 0);
  if (failed(mirrors<BatchNormOp>(*this, {getX(), getScale(), getScale()}, p, {getDy(), getMean(), getRstd()})))
    return failure();
  return mirrors<BatchNormOp>(*this, {getDx(), getDscale(), getDbias()}, p, {getX(), getScale(), getScale()});
}

/// The backward op does not know whether the forward one rounded up: either result will do.
template <typename Forward, typename Op>
static LogicalResult mirrorsPool(Op op, typename Forward::Properties p, ValueRange wanted) {
  p.kernel = op.getKernelAttr(), p.strides = op.getStridesAttr(), p.pads = op.getPadsAttr();
  p.ceil_mode = BoolAttr::get(op.getContext(), true);
  if (succeeded(mirrors<Forward>(op, {op.getDx()}, p, wanted, /*silent=*/true)))
    return success();
  p.ceil_mode = BoolAttr::get(op.getContext(), false);
  return mirrors<Forward>(op, {op.getDx()}, p, wanted);
}
LogicalResult MaxPoolBackwardOp::verify() {
  MaxPoolOp::Properties p;
  p.dilations = getDilationsAttr();
  return mirrorsPool<MaxPoolOp>(*this, p, {getDy(), getIndices()});
}
LogicalResult AveragePoolBackwardOp::verify() {
  AveragePoolOp::Properties p;
  p.count_include_pad = getCountIncludePadAttr();
  return mirrorsPool<AveragePoolOp>(*this, p, {getDy()});
}

LogicalResult LrnBackwardOp::verify() {
  LrnOp::Properties p;
  p.size = getSizeAttr();
  return failed(sameShapes(*this, {getDy(), getX()})) ? failure() : mirrors<LrnOp>(*this, {getDx()}, p, {getDy()});
}

LogicalResult SoftmaxBackwardOp::verify() {
  SoftmaxOp::Properties p;
  p.axis = getAxisAttr();
  return failed(sameShapes(*this, {getDy(), getY()})) ? failure() : mirrors<SoftmaxOp>(*this, {getDx()}, p, {getDy()});
}

LogicalResult ResizeBackwardOp::verify() {
  ArrayRef<int64_t> dy = shapeOf(getDy());
  if (dy.size() != 4)
    return emitOpError() << "needs rank 4, has " << getDy().getType();
  ResizeOp::Properties p;
  p.size = DenseI64ArrayAttr::get(getContext(), dy.take_back(2));
  p.scale_h = getScaleHAttr(), p.scale_w = getScaleWAttr();
  return mirrors<ResizeOp>(*this, {getDx()}, p, {getDy()});
}

LogicalResult PadSlabOp::verify() {
  ArrayRef<int64_t> dy = shapeOf(getDy());
  if (getAxis() >= dy.size())
    return emitOpError() << "pads dimension " << getAxis() << " of " << getDy().getType();
  SliceOp::Properties p;
  p.axis = getAxisAttr(), p.start = getStartAttr();
  p.length = IntegerAttr::get(getStartAttr().getType(), dy[getAxis()]);
  return mirrors<SliceOp>(*this, {getDx()}, p, {getDy()});
}

LogicalResult LossBackwardOp::verify() {
  if (failed(sameShapes(*this, {getX(), getDx()})))
    return failure();
  ValueRange operands = getOperands();
  if (getLoss() == "softmax_cross_entropy")
    return mirrors<SoftmaxCrossEntropyOp>(*this, operands, {}, {});
  if (getLoss() == "mse")
    return mirrors<MseOp>(*this, operands, {}, {});
  if (getLoss() == "bce_with_logits")
    return mirrors<BceWithLogitsOp>(*this, operands, {}, {});
  return emitOpError() << "knows no loss '" << getLoss() << "'";
}
