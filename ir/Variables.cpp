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
  size_t wanted = stateSuffixes(getRule()).size() + (getAveraged() ? 1 : 0);
  if (getStates().size() != wanted) // C2
    return emitOpError() << "has " << getStates().size() << " state variables, rule " << stringifyUpdateRule(getRule())
                         << (getAveraged() ? " with an average keeps " : " keeps ") << wanted;
  for (Attribute symbol : getStates()) {
    auto state = lookup(*this, table, cast<FlatSymbolRefAttr>(symbol));
    if (failed(state) || failed(checkType(*this, *state, getGradient().getType())))
      return failure();
  }
  return checkType(*this, *variable, getGradient().getType());
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &table) {
  auto sum = lookup(*this, table, getSumAttr());
  if (failed(sum))
    return failure();
  if (sum->getRole() != Role::Gradient) // C1
    return emitOpError() << "adds to '" << sum->getSymName() << "', whose role is " << stringifyRole(sum->getRole());
  return checkType(*this, *sum, getGradient().getType());
}

LogicalResult CheckGradientsOp::verifySymbolUses(SymbolTableCollection &table) {
  for (FlatSymbolRefAttr symbol : {getScaleAttr(), getGoodAttr(), getSkippedAttr()}) { // C1
    auto state = lookup(*this, table, symbol);
    if (failed(state) || failed(checkType(*this, *state, getValue().getType())))
      return failure();
    if (state->getRole() != Role::Optimizer)
      return emitOpError() << "updates '" << state->getSymName() << "', whose role is "
                           << stringifyRole(state->getRole());
  }
  return success();
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

SmallVector<StringRef> AccumulateOp::changedVariables() { return {getSum()}; }

SmallVector<StringRef> CheckGradientsOp::changedVariables() { return {getScale(), getGood(), getSkipped()}; }

ArrayRef<StringRef> sluice::train::stateSuffixes(UpdateRule rule) {
  static constexpr StringRef momentum[] = {"/momentum"}, moments[] = {"/exp_avg", "/exp_avg_sq"}, sum[] = {"/sum"},
                             square[] = {"/square_avg", "/momentum_buffer"}, average[] = {"/exp_avg"};
  switch (rule) {
  case UpdateRule::Sgd:
    return momentum;
  case UpdateRule::Adam:
  case UpdateRule::AdamW:
  case UpdateRule::Lamb:
    return moments;
  case UpdateRule::Adagrad:
    return sum;
  case UpdateRule::RmsProp:
    return square;
  case UpdateRule::Lion:
    return average;
  }
  return {};
}

/// The calls of the rule alone. In: gradient, norm if there is one, parameter, states; out: parameter, states.
static KernelCalls updateCalls(UpdateOp op) {
  KernelCalls calls(op);
  const Slot norm = op.getNorm() ? in(1) : noSlot;
  switch (op.getRule()) {
  case UpdateRule::Sgd:
    return calls.function("updateSgd", {out(0), in(0), norm, out(1)});
  case UpdateRule::Adam:
  case UpdateRule::AdamW: {
    const Enumerator decay{"WeightDecay", op.getRule() == UpdateRule::AdamW ? "Decoupled" : "Coupled"};
    return calls.function("updateAdam", {out(0), in(0), norm, out(1), out(2)}, decay);
  }
  case UpdateRule::Adagrad:
    return calls.function("updateAdagrad", {out(0), in(0), norm, out(1)});
  case UpdateRule::RmsProp:
    return calls.function("updateRmsProp", {out(0), in(0), norm, out(1), out(2)});
  case UpdateRule::Lamb:
    return calls.object(arguments::Lamb{calls.shape(in(0))}, "update",
                        {out(0), in(0), norm, out(1), out(2), scratchSlot});
  case UpdateRule::Lion:
    return calls.function("updateLion", {out(0), in(0), norm, out(1)});
  }
  return calls;
}

KERNEL(UpdateOp) {
  KernelCalls calls = updateCalls(*this);
  if (getAveraged())
    calls.function("averageWeights", {out(0), out(static_cast<int64_t>(getStates().size()))});
  return calls;
}

std::string UpdateOp::launchName() { return "update_" + stringifyUpdateRule(getRule()).str(); }

// The parameter and its states are read and written besides the gradient.
int64_t UpdateOp::bytesMoved() {
  return bytes(getGradient().getType()) * (3 + 2 * static_cast<int64_t>(getStates().size()));
}
int64_t AccumulateOp::bytesMoved() { return 3 * bytes(getGradient().getType()); }

KERNEL(AccumulateOp) { return KernelCalls(*this).function("accumulateGradient", {in(0), out(0)}); }

KERNEL(CheckGradientsOp) {
  SmallVector<Slot> gradients;
  for (size_t i = 1; i <= getGradients().size(); ++i)
    gradients.push_back(in(static_cast<int64_t>(i)));
  return KernelCalls(*this).function("checkGradients", {out(0), out(1), out(2)}, ArrayRef<Slot>(gradients));
}

KERNEL(GradientNormOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::GradientNorm{calls.shape(in(0))}, "run",
                      {in(0), getBefore() ? in(1) : noSlot, out(0), scratchSlot});
}
