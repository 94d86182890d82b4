// SPDX-License-Identifier: Apache-2.0
// See Patterns.h.
#include "passes/Patterns.h"

#include "passes/Reshapes.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Views do not matter, as the numbers are the same in every shape. Large constants have no value in the IR.
DenseFPElementsAttr Patterns::constantOf(Value value) const {
  auto read = withoutReshapes(value).getDefiningOp<ReadOp>();
  auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
  return variable && variable.getRole() == Role::Constant
             ? dyn_cast_or_null<DenseFPElementsAttr>(variable.getValueAttr())
             : DenseFPElementsAttr();
}

std::optional<double> Patterns::number(Value value) const {
  DenseFPElementsAttr constant = elements(value.getType()) == 1 ? constantOf(value) : DenseFPElementsAttr();
  return constant ? std::optional(constant.getSplatValue<APFloat>().convertToDouble()) : std::nullopt;
}

/// A scale may be written as a product with a constant, or a quotient by one, as well.
Value Patterns::unscaled(Value value, double &factor) const {
  factor = 1;
  if (auto scale = value.getDefiningOp<ScaleOp>()) {
    factor = scale.getFactor().convertToDouble();
    return scale.getX();
  }
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<MulOp, DivOp>(op) || op->getOperand(0).getType() != value.getType())
    return value;
  if (std::optional<double> constant = number(op->getOperand(1))) {
    factor = isa<MulOp>(op) ? *constant : 1 / *constant;
    return op->getOperand(0);
  }
  return value;
}

// Bounded, as it is asked of every mask of every layer: those that exporters compute are small, and one that is not
// stays as it is.
bool Patterns::hasNoParameters(Value value, int ops) const {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> waiting{value};
  while (!waiting.empty()) {
    Operation *op = waiting.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    auto read = dyn_cast<ReadOp>(op);
    auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
    if (static_cast<int>(seen.size()) > ops || (read && (!variable || variable.getRole() != Role::Constant)))
      return false;
    llvm::append_range(waiting, op->getOperands());
  }
  return true;
}

Value Patterns::addedRow(Operation *op, Value rows) {
  auto add = dyn_cast<AddOp>(op);
  if (!add || add.getType() != rows.getType())
    return {};
  Value row = add.getA() == rows ? add.getB() : add.getA();
  const auto shape = cast<RankedTensorType>(row.getType()).getShape();
  const bool fits = row != rows && !shape.empty() && elements(row.getType()) == shape.back() &&
                    shape.back() == cast<RankedTensorType>(rows.getType()).getShape().back();
  return fits ? row : Value();
}

Value Patterns::reshaped(OpBuilder &b, Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(value.getType()).getElementType());
  return value.getType() == type ? value : ReshapeOp::create(b, value.getLoc(), type, value).getY();
}

/// And whatever only it read, from readers to what they read.
void Patterns::eraseUnused(Operation *op) {
  llvm::SmallSetVector<Operation *, 8> waiting;
  waiting.insert(op);
  while (!waiting.empty()) {
    Operation *next = waiting.pop_back_val();
    if (!next || !isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      waiting.insert(operand.getDefiningOp());
    next->erase();
  }
}

bool Patterns::isAbout(std::optional<double> number, double wanted) {
  return number && std::fabs(*number - wanted) < 1e-5 * wanted;
}
