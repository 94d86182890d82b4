// SPDX-License-Identifier: Apache-2.0
// The ops of UpdateOps.td: verifiers, the form that is printed and read, costs, kernels.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// C3 of an update. Of a parameter that is a share itself all is of its length.
static LogicalResult checkShares(UpdateOp op, SymbolTableCollection &table) {
  if (op.getRule() == UpdateRule::Lamb || op.getAveraged())
    return op.emitOpError() << "has no shares of " << (op.getAveraged() ? "averages" : "what lamb takes norms of");
  auto parameter = table.lookupNearestSymbolFrom<VariableOp>(op, variableOf(op.getParameter()));
  const int64_t whole = parameter ? parameter.wholeType().getNumElements() : elements(op.getParameter().getType());
  if (parameter && parameter.isShare())
    for (Value other : op->getOperands())
      if (other != op.getNorm() && other.getType() != parameter.getType())
        return op.emitOpError() << "takes " << other.getType() << " for the share of '" << parameter.getSymName()
                                << "', which is " << parameter.getType();
  for (Value state : op.getStates())
    if (const auto type = ranked(state); type.getRank() != 1 || type.getDimSize(0) > std::max<int64_t>(1, whole - 1))
      return op.emitOpError() << "keeps " << type << " as a share of " << whole << " elements; it is a shorter vector";
  return success();
}

/// C4 of an update: rows of the parameter, all other extents being its.
static LogicalResult checkRows(UpdateOp op) {
  const RankedTensorType rows = ranked(op.getGradient()), whole = ranked(op.getParameter());
  const auto first = static_cast<int64_t>(*op.getFirst());
  if (op.getSharded() || op.getRule() == UpdateRule::Lamb)
    return op.emitOpError() << "has no rows of " << (op.getSharded() ? "shares" : "what lamb takes norms of");
  if (rows.getRank() == 0 || rows.getRank() != whole.getRank() || rows.getElementType() != whole.getElementType() ||
      rows.getShape().drop_front() != whole.getShape().drop_front() || first < 0 ||
      first > whole.getDimSize(0) - rows.getDimSize(0))
    return op.emitOpError() << "has a gradient of " << rows << " for the rows from " << first << " on of " << whole;
  if (op.changedPiece(0)->first % slotAlignment != 0)
    return op.emitOpError() << "begins at byte " << op.changedPiece(0)->first << " of " << whole
                            << "; rows begin at a multiple of " << slotAlignment;
  return success();
}

/// C5 of an update: everything is at home, or nothing.
static LogicalResult checkHome(UpdateOp op) {
  for (Value operand : op.getOperands())
    if (isa<HostHandleType>(operand.getType()) != op.isAtHome())
      return op.emitOpError() << "has a parameter of " << op.getParameter().getType() << " and takes "
                              << operand.getType() << "; at home, all are handles";
  if (op.isAtHome() && (op.getSharded() || op.getFirst() || op.getRule() == UpdateRule::Lamb))
    return op.emitOpError() << "has no "
                            << (op.getSharded() ? "shares"
                                : op.getFirst() ? "rows"
                                                : "rule lamb")
                            << " at home";
  return success();
}

// Not in verify(): MLIR asks this when the ops of the module are verified, so that symbols may be looked up.
LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &table) {
  const size_t wanted = stateSuffixes(getRule()).size() + (getAveraged() ? 1 : 0);
  if (getStates().size() != wanted) // C2
    return emitOpError() << "has " << getStates().size() << " states, rule " << stringifyUpdateRule(getRule())
                         << (getAveraged() ? " with an average keeps " : " keeps ") << wanted;
  if (getNumResults() != wanted + 1) // C2
    return emitOpError() << "makes " << getNumResults() << " values of a parameter and " << wanted << " states";
  if (failed(checkHome(*this)) || (getSharded() && failed(checkShares(*this, table))))
    return failure();
  if (getFirst() && failed(checkRows(*this))) // C4
    return failure();
  // Of a share the gradient, too, may be one, as the states are.
  const bool isShare = getSharded() && !getStates().empty() && getGradient().getType() == getStates()[0].getType();
  const Type whole = getFirst() || isShare ? getParameter().getType() : getGradient().getType();
  for (Value changed : getOperands().take_back(wanted + 1)) // C1, C2
    if (changed.getType() != whole && !(getSharded() && changed != getParameter()))
      return emitOpError() << "has a gradient of " << getGradient().getType() << " for '"
                           << variableOf(changed).getValue() << "', which is " << changed.getType();
  return success(succeeded(checkRoles(*this, table, getParameter(), Role::Parameter)) &&
                 succeeded(checkRoles(*this, table, getStates(), Role::Optimizer)));
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &table) { // C1
  return checkRoles(*this, table, getSum(), Role::Gradient);
}

LogicalResult CheckGradientsOp::verifySymbolUses(SymbolTableCollection &table) { // C1
  return checkRoles(*this, table, {getScale(), getGood(), getSkipped()}, Role::Optimizer);
}

LogicalResult UpdateStatisticsOp::verifySymbolUses(SymbolTableCollection &table) { // C1
  return checkRoles(*this, table, {getRunningMean(), getRunningVar()}, Role::State);
}

unsigned CheckGradientsOp::changedOperand(unsigned result) { return result; }

std::optional<VariablePiece> UpdateOp::changedPiece(unsigned) {
  if (!getFirst() || isAtHome())
    return std::nullopt;
  const RankedTensorType rows = ranked(getGradient());
  return VariablePiece{static_cast<int64_t>(*getFirst()) * (bytes(rows) / rows.getDimSize(0)), rows};
}

int64_t UpdateOp::flops() {
  int64_t changed = 0;
  for (OpResult result : getResults())
    changed += elements(heldTensor(getFirst() ? getGradient().getType() : result.getType()));
  return changed;
}

/// The gradient is read, the rest as well as written.
int64_t UpdateOp::bytesMoved() {
  int64_t moved = bytes(heldTensor(getGradient().getType())) + (getNorm() ? bytes(heldTensor(getNorm().getType())) : 0);
  for (OpResult result : getResults())
    moved += 2 * bytes(heldTensor(getFirst() ? getGradient().getType() : result.getType()));
  return moved;
}

// All are of one type, but states that are shares, and gradients of rows: (%gradient, %parameter, %states...)
// norm(%norm) rule(name) attributes : type [of type] [keeping type]
void UpdateOp::print(OpAsmPrinter &printer) {
  printer << "(" << getGradient() << ", " << getParameter();
  for (Value state : getStates())
    printer << ", " << state;
  printer << ")";
  if (getNorm())
    printer << " norm(" << getNorm() << ")";
  printer << " rule(" << stringifyUpdateRule(getRule()) << ")";
  printer.printOptionalAttrDict((*this)->getAttrs(), {getRuleAttrName(), getOperandSegmentSizesAttrName()});
  printer << " : " << getGradient().getType();
  if (getParameter().getType() != getGradient().getType())
    printer << " of " << getParameter().getType();
  if (getSharded())
    printer << " keeping " << getStates()[0].getType();
}

// By hand, since one type is written for a number of results that the states give: one more than there are of them.
ParseResult UpdateOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> values;
  OpAsmParser::UnresolvedOperand norm;
  StringRef rule;
  Type type, whole, kept;
  const SMLoc start = parser.getCurrentLocation();
  if (parser.parseOperandList(values, OpAsmParser::Delimiter::Paren))
    return failure();
  if (values.size() < 2)
    return parser.emitError(start, "needs a gradient and a parameter, has ") << values.size() << " operands";
  const bool clips = succeeded(parser.parseOptionalKeyword("norm"));
  if ((clips && (parser.parseLParen() || parser.parseOperand(norm) || parser.parseRParen())) ||
      parser.parseKeyword("rule") || parser.parseLParen())
    return failure();
  const SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword(&rule) || parser.parseRParen())
    return failure();
  const std::optional<UpdateRule> known = symbolizeUpdateRule(rule);
  if (!known)
    return parser.emitError(at, "no update rule: ") << rule;
  const SMLoc typed = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(heldTensor(type));
  if (!tensor)
    return parser.emitError(typed, "needs a tensor, or a handle of one, not ") << type;
  whole = type;
  if (succeeded(parser.parseOptionalKeyword("of")) && parser.parseType(whole))
    return failure();
  kept = whole;
  if (succeeded(parser.parseOptionalKeyword("keeping")) && parser.parseType(kept))
    return failure();
  const auto number = RankedTensorType::get({}, tensor.getElementType());
  const Type scalar = tensor == type ? Type(number) : HostHandleType::get(parser.getContext(), number);
  if (parser.resolveOperand(values[0], type, result.operands) ||
      (clips && parser.resolveOperand(norm, scalar, result.operands)) ||
      parser.resolveOperand(values[1], whole, result.operands) ||
      parser.resolveOperands(ArrayRef(values).drop_front(2), kept, result.operands))
    return failure();
  const auto states = static_cast<int32_t>(values.size()) - 2;
  result.addAttribute(getRuleAttrName(result.name), UpdateRuleAttr::get(parser.getContext(), *known));
  result.addAttribute(getOperandSegmentSizesAttrName(result.name),
                      parser.getBuilder().getDenseI32ArrayAttr({1, clips ? 1 : 0, 1, states}));
  result.addTypes(whole);
  result.addTypes(SmallVector<Type>(static_cast<size_t>(states), kept));
  return success();
}

/// Names of PyTorch's optimizer states, in the order of the update's operands; checkpoints and exports know them by
/// these.
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
    return calls.function("updateSgd", {parameterSlot, out(0), in(0), norm, out(1)});
  case UpdateRule::Adam:
  case UpdateRule::AdamW: {
    const Enumerator decay{"WeightDecay", op.getRule() == UpdateRule::AdamW ? "Decoupled" : "Coupled"};
    return calls.function("updateAdam", {parameterSlot, out(0), in(0), norm, out(1), out(2)}, decay);
  }
  case UpdateRule::Adagrad:
    return calls.function("updateAdagrad", {parameterSlot, out(0), in(0), norm, out(1)});
  case UpdateRule::RmsProp:
    return calls.function("updateRmsProp", {parameterSlot, out(0), in(0), norm, out(1), out(2)});
  case UpdateRule::Lamb:
    return calls.object(arguments::Lamb{calls.shape(in(0))}, "update",
                        {parameterSlot, out(0), in(0), norm, out(1), out(2), scratchSlot});
  case UpdateRule::Lion:
    return calls.function("updateLion", {parameterSlot, out(0), in(0), norm, out(1)});
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

KERNEL(AccumulateOp) { return KernelCalls(*this).function("accumulateGradient", {in(0), out(0)}); }

KERNEL(CheckGradientsOp) {
  SmallVector<Slot> gradients;
  for (size_t i = 3; i < 3 + getGradients().size(); ++i) // after what it changes
    gradients.push_back(in(static_cast<int64_t>(i)));
  return KernelCalls(*this).function("checkGradients", {out(0), out(1), out(2)}, ArrayRef<Slot>(gradients));
}

KERNEL(GradientNormOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::GradientNorm{calls.shape(in(0))}, "run",
                      {in(0), getBefore() ? in(1) : noSlot, out(0), scratchSlot});
}
