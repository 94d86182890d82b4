// SPDX-License-Identifier: Apache-2.0
// The PrecisionAware methods, together, their verifier and that of train.cast.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

bool sluice::train::isReal(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

PrecisionWish ConvOp::precisionWish() { return PrecisionWish::Product; }
PrecisionWish ConvTransposeOp::precisionWish() { return PrecisionWish::Product; }
PrecisionWish ConvBackwardDataOp::precisionWish() { return PrecisionWish::Product; }
PrecisionWish ConvBackwardWeightOp::precisionWish() { return PrecisionWish::Product; }
PrecisionWish MatmulOp::precisionWish() { return PrecisionWish::Product; }
PrecisionWish BatchNormStatisticsOp::precisionWish() { return PrecisionWish::Mixed; }
PrecisionWish FusedOp::precisionWish() { return PrecisionWish::Mixed; }
PrecisionWish SumToOp::precisionWish() { return PrecisionWish::Mixed; }
PrecisionWish BroadcastToOp::precisionWish() { return PrecisionWish::Mixed; }
PrecisionWish CastOp::precisionWish() { return PrecisionWish::Mixed; }

// Biases are parameters; they join sums that are f32.
bool ConvOp::isOperandWide(unsigned i) { return i >= 2; }
bool MatmulOp::isOperandWide(unsigned i) { return i >= 2; }
bool FusedOp::isOperandWide(unsigned i) { return isChannel(i); }

// The optimizer adds weight gradients to f32 parameters. Sums stand for many values: means, variances, gradients of
// what was broadcast.
bool ConvBackwardWeightOp::isResultWide(unsigned) { return true; }
bool BatchNormStatisticsOp::isResultWide(unsigned) { return true; }
bool FusedOp::isResultWide(unsigned i) { return i >= fullResults(); }
bool SumToOp::isResultWide(unsigned) { return true; }

// cuBLASLt stores sums as they are; cuDNN's engines that do so are few.
bool MatmulOp::mayStoreWide() { return true; }

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

LogicalResult sluice::train::verifyPrecision(Operation *op) {
  auto aware = cast<PrecisionAware>(op);
  Value first; // of those that must agree
  auto check = [&](Value value, bool wide, bool mayBeWide, const Twine &name) -> LogicalResult {
    if (!isReal(value.getType()))
      return success();
    if (wide) // P3
      return elementOf(value).isF32() ? success()
                                      : op->emitOpError() << name << " is " << value.getType() << ", it must be f32";
    if (aware.precisionWish() == PrecisionWish::Mixed)
      return success();
    if (!first)
      first = value;
    if (elementOf(value) == elementOf(first) || (mayBeWide && elementOf(value).isF32())) // P1, P2
      return success();
    return op->emitOpError() << "mixes element types: " << first.getType() << " and " << value.getType() << " as "
                             << name;
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (failed(check(operand, aware.isOperandWide(i), false, "operand " + Twine(i))))
      return failure();
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (failed(check(result, aware.isResultWide(i), aware.mayStoreWide(), "result " + Twine(i))))
      return failure();
  return success();
}

LogicalResult CastOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType()), y = cast<RankedTensorType>(getY().getType());
  if (x.getShape() != y.getShape() || x.getElementType() == y.getElementType()) // C1
    return emitOpError() << "changes no element type, or more than that and the layout: " << x << " to " << y;
  return success();
}
