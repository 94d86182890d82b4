// SPDX-License-Identifier: Apache-2.0
// The ops that name variables: verifiers, what they change, kernels.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// The variable that `symbol` names, or an error at `op` that names both.
static FailureOr<VariableOp> lookup(Operation *op, SymbolTableCollection &table, FlatSymbolRefAttr symbol) {
  auto variable = table.lookupNearestSymbolFrom<VariableOp>(op, symbol);
  if (!variable)
    return op->emitOpError() << "names no variable: " << symbol;
  return variable;
}

static LogicalResult checkType(Operation *op, VariableOp variable, Type type) {
  auto declared = cast<RankedTensorType>(variable.getType()), used = cast<RankedTensorType>(type);
  if (declared.getShape() != used.getShape() || declared.getElementType() != used.getElementType())
    return op->emitOpError() << "uses variable '" << variable.getSymName() << "' as " << used << ", but it is "
                             << declared;
  return success();
}

LogicalResult VariableOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.getElementType().isF32() && !type.getElementType().isInteger(64)) // C1
    return emitOpError() << "needs f32 or i64 elements, has " << type;
  auto value = getValue() ? cast<ShapedType>(getValue()->getType()) : type;
  if (value.getShape() != type.getShape() || value.getElementType() != type.getElementType()) // C2
    return emitOpError() << "has a value of type " << getValue()->getType() << " but is " << type;
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &table) {
  auto variable = lookup(*this, table, getVariableAttr());
  if (failed(variable))
    return failure();
  return checkType(*this, *variable, getResult().getType()); // C1
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &table) {
  auto variable = lookup(*this, table, getParameterAttr());
  if (failed(variable))
    return failure();
  if (variable->getRole() != Role::Parameter) // C1
    return emitOpError() << "updates '" << variable->getSymName() << "', whose role is "
                         << stringifyRole(variable->getRole());
  size_t wanted = getRule() == UpdateRule::Sgd ? 1 : 2;
  if (getStates().size() != wanted) // C2
    return emitOpError() << "has " << getStates().size() << " state variables, rule " << stringifyUpdateRule(getRule())
                         << " keeps " << wanted;
  for (Attribute symbol : getStates()) {
    auto state = lookup(*this, table, cast<FlatSymbolRefAttr>(symbol));
    if (failed(state) || failed(checkType(*this, *state, getGradient().getType())))
      return failure();
  }
  return checkType(*this, *variable, getGradient().getType());
}

LogicalResult UpdateStatisticsOp::verifySymbolUses(SymbolTableCollection &table) {
  for (FlatSymbolRefAttr symbol : {getRunningMeanAttr(), getRunningVarAttr()}) { // C1
    auto state = lookup(*this, table, symbol);
    if (failed(state) || failed(checkType(*this, *state, getMean().getType())))
      return failure();
    if (state->getRole() != Role::State)
      return emitOpError() << "updates '" << state->getSymName() << "', whose role is "
                           << stringifyRole(state->getRole());
  }
  return success();
}

SmallVector<StringRef> UpdateOp::changedVariables() {
  SmallVector<StringRef> names = {getParameter()};
  for (Attribute state : getStates())
    names.push_back(cast<FlatSymbolRefAttr>(state).getValue());
  return names;
}

SmallVector<StringRef> UpdateStatisticsOp::changedVariables() { return {getRunningMean(), getRunningVar()}; }

// In: gradient, parameter, states; out: parameter, states.

KERNEL(UpdateOp) {
  if (getRule() == UpdateRule::Sgd)
    return KernelCalls(*this).function("updateSgd", {out(0), in(0), out(1)});
  const Enumerator decay{"WeightDecay", getRule() == UpdateRule::AdamW ? "Decoupled" : "Coupled"};
  return KernelCalls(*this).function("updateAdam", {out(0), in(0), out(1), out(2)}, decay);
}

std::string UpdateOp::launchName() { return "update_" + stringifyUpdateRule(getRule()).str(); }
