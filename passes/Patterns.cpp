// SPDX-License-Identifier: Apache-2.0
// See Patterns.h.
#include "passes/Patterns.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

DenseFPElementsAttr Patterns::constantOf(Value value) const {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  auto read = value.getDefiningOp<ReadOp>();
  auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
  return variable && variable.getRole() == Role::Constant
             ? dyn_cast_or_null<DenseFPElementsAttr>(variable.getValueAttr())
             : DenseFPElementsAttr();
}

std::optional<double> Patterns::number(Value value) const {
  DenseFPElementsAttr constant = elements(value.getType()) == 1 ? constantOf(value) : DenseFPElementsAttr();
  return constant ? std::optional(constant.getSplatValue<APFloat>().convertToDouble()) : std::nullopt;
}

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
