// SPDX-License-Identifier: Apache-2.0
// Element types of mixed precision, and the verifier of the interface PrecisionAware. Where casts go:
// passes/AssignPrecision.cpp.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

bool sluice::train::isReal(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

bool sluice::train::isHalf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<BFloat16Type, Float16Type>(tensor.getElementType());
}

FloatType sluice::train::halfOf(ModuleOp module) {
  auto precision = module->getAttrOfType<StringAttr>("train.precision");
  const StringRef word = precision ? precision.getValue() : "";
  MLIRContext *context = module.getContext();
  return word == "bf16"   ? FloatType(BFloat16Type::get(context))
         : word == "fp16" ? FloatType(Float16Type::get(context))
                          : FloatType();
}

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

// Before assign-precision all are f32, so that every level of the pipeline verifies. The first value that may be narrow
// sets the type, and messages name it beside the one that differs.
LogicalResult sluice::train::verifyPrecision(Operation *op) {
  auto aware = cast<PrecisionAware>(op);
  Value first; // of those that must agree
  auto check = [&](Value value, bool wide, bool mayBeWide, const Twine &name) -> LogicalResult {
    auto quantized = dyn_cast<QuantizedMatmulOp>(op);
    if (!isReal(value.getType()) || (quantized && value == quantized.getB())) // a form's type is none of an activation
      return success();
    if (wide) // P3
      return elementOf(value).isF32() ? success()
                                      : op->emitOpError() << name << " is " << value.getType() << ", it must be f32";
    if (aware.precisionPreference() == PrecisionPreference::Mixed)
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
