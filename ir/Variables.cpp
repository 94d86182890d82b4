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
  if (!type.getElementType().isF32() && !type.getElementType().isInteger(64) &&
      !attr::has<attr::Quantized>(*this)) // C1
    return emitOpError() << "needs f32 or i64 elements, has " << type;
  auto value = getValue() ? cast<ShapedType>(getValue()->getType()) : type;
  if (value.getShape() != type.getShape() || value.getElementType() != type.getElementType()) // C2
    return emitOpError() << "has a value of type " << getValue()->getType() << " but is " << type;
  if (getHome() && !factsOf(arena()).isHome) // C3
    return emitOpError() << "cannot be at home in the arena '" << *getHome() << "'";
  return success();
}

Space VariableOp::arena() { return getHome() ? homeOf(*getHome()) : Space::Device; }

LogicalResult DequantizeOp::verify() {
  SmallVector<int64_t> shape(getForm().getShape());
  if (getIds()) {
    shape.assign(extents(getIds()).begin(), extents(getIds()).end());
    shape.push_back(getForm().getShape().back());
  }
  if (getForm().getBits() == 16 || getX().getType() != getForm().heldType() || extents(getY()) != ArrayRef(shape)) // C1
    return emitOpError() << "makes " << getY().getType() << " of " << getX().getType() << ", which " << getForm()
                         << " does not";
  return success();
}

KERNEL(DequantizeOp) {
  const Quantization form = getForm().form();
  const arguments::Dequantize kernel{{form.rows, form.columns}, form.bits, form.group, form.dimension, form.coding};
  return getIds() ? KernelCalls(*this).object(kernel, "rows", {in(0), in(1), out(0)})
                  : KernelCalls(*this).object(kernel, "run", {in(0), out(0)});
}

sched::IdsAttr DequantizeOp::ids() {
  return getIds() ? sched::IdsAttr::get(getContext(), 1, getForm().getShape().front(), {}) : sched::IdsAttr();
}

PrecisionPreference DequantizeOp::precisionPreference() { return PrecisionPreference::Mixed; }

// With ids no more of the form than the rows that are read.
int64_t DequantizeOp::bytesMoved() {
  return bytes(getY().getType()) +
         (getIds() ? bytes(getIds().getType()) + bytes(getY().getType()) / 4 : bytes(getX().getType()));
}

/// A variable that is at home elsewhere is read by a handle, since no kernel can touch it there.
LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &table) {
  auto variable = lookup(*this, table, getVariableAttr());
  if (failed(variable))
    return failure();
  auto handle = dyn_cast<HostHandleType>(getResult().getType());
  if (static_cast<bool>(handle) != (variable->arena() != Space::Device)) // C2
    return emitOpError() << "reads '" << variable->getSymName() << "', which is at home "
                         << (handle ? "on the device, by a handle" : "elsewhere, without a train.prefetch");
  return checkType(*this, *variable, handle ? Type(handle.getTensor()) : getResult().getType()); // C1
}

/// One that brings a variable home must bring that variable's own value, as it is, to where it is at home.
LogicalResult OffloadOp::verifySymbolUses(SymbolTableCollection &table) {
  if (!getVariable())
    return success();
  auto variable = lookup(*this, table, getVariableAttr());
  if (failed(variable) || failed(checkType(*this, *variable, getX().getType())))
    return failure();
  if (variableOf(getX()) != getVariableAttr() || getCodec() || variable->arena() != homeOf(getHome())) // C4
    return emitOpError() << "brings '" << getHome() << "' a value of "
                         << (variableOf(getX()) ? variableOf(getX()).getValue() : StringRef("no variable"))
                         << (getCodec() ? ", packed," : "") << " for '" << variable->getSymName()
                         << "', which is at home in '" << factsOf(variable->arena()).name << "'";
  return success();
}

// Back along the chain of new values to the train.read, in place or through a home elsewhere. It ends: each turn goes
// to an earlier op of the block, or stops.
FlatSymbolRefAttr sluice::train::variableOf(Value value) {
  while (auto result = dyn_cast<OpResult>(value)) {
    if (auto read = dyn_cast<ReadOp>(result.getOwner()))
      return read.getVariableAttr();
    if (auto prefetch = dyn_cast<PrefetchOp>(result.getOwner())) {
      if (auto stored = prefetch.getHandle().getDefiningOp<OffloadOp>())
        return stored.getVariableAttr();
      value = prefetch.getHandle();
      continue;
    }
    auto changes = dyn_cast<ChangesVariables>(result.getOwner());
    if (!changes)
      break;
    value = changes->getOperand(changes.changedOperand(result.getResultNumber()));
    // Verifiers ask this before dominance is verified: an op may read itself, or what comes after it.
    Operation *before = value.getDefiningOp();
    if (!before || before->getBlock() != changes->getBlock() || !before->isBeforeInBlock(changes))
      break;
  }
  return {};
}

/// Results of ops that change variables are new values in the same bytes, so that types must be equal and operands must
/// lead to a variable.
LogicalResult sluice::train::verifyChanges(Operation *op) {
  auto changes = cast<ChangesVariables>(op);
  if (op->getNumResults() > op->getNumOperands()) // V1
    return op->emitOpError() << "makes " << op->getNumResults() << " values of " << op->getNumOperands();
  for (OpResult result : op->getResults()) { // V1
    const Value before = op->getOperand(changes.changedOperand(result.getResultNumber()));
    if (!variableOf(before))
      return op->emitOpError() << "changes what is no variable's value: " << before;
    if (before.getType() != result.getType())
      return op->emitOpError() << "makes " << result.getType() << " of the variable '" << variableOf(before).getValue()
                               << "', which is read as " << before.getType();
  }
  return success();
}

LogicalResult sluice::train::checkRoles(Operation *op, SymbolTableCollection &table, ValueRange values, Role role) {
  for (Value value : values) {
    auto variable = lookup(op, table, variableOf(value));
    if (failed(variable))
      return failure();
    if (variable->getRole() != role)
      return op->emitOpError() << "changes '" << variable->getSymName() << "', whose role is "
                               << stringifyRole(variable->getRole()) << ", not " << stringifyRole(role);
  }
  return success();
}

/// C3 of an update.
static LogicalResult checkShares(UpdateOp op) {
  if (op.getRule() == UpdateRule::Lamb || op.getAveraged())
    return op.emitOpError() << "has no shares of " << (op.getAveraged() ? "averages" : "what lamb takes norms of");
  const int64_t whole = elements(op.getParameter().getType());
  for (Value state : op.getStates())
    if (const auto type = ranked(state); type.getRank() != 1 || type.getDimSize(0) > std::max<int64_t>(1, whole - 1))
      return op.emitOpError() << "keeps " << type << " as a share of " << whole << " elements; it is a shorter vector";
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
  if (getSharded() && failed(checkShares(*this)))
    return failure();
  for (Value changed : getOperands().take_back(wanted + 1)) // C1, C2
    if (changed.getType() != getGradient().getType() && !(getSharded() && changed != getParameter()))
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

// All are of one type, but states that are shares: (%gradient, %parameter, %states...) norm(%norm) rule(name)
// attributes : type keeping type
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
  if (getSharded())
    printer << " keeping " << getStates()[0].getType();
}

// By hand, since one type is written for a number of results that the states give: one more than there are of them.
ParseResult UpdateOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> values;
  OpAsmParser::UnresolvedOperand norm;
  StringRef rule;
  RankedTensorType type, kept;
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
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type))
    return failure();
  kept = type;
  if (succeeded(parser.parseOptionalKeyword("keeping")) && parser.parseType(kept))
    return failure();
  const auto scalar = RankedTensorType::get({}, type.getElementType());
  if (parser.resolveOperand(values[0], type, result.operands) ||
      (clips && parser.resolveOperand(norm, scalar, result.operands)) ||
      parser.resolveOperand(values[1], type, result.operands) ||
      parser.resolveOperands(ArrayRef(values).drop_front(2), kept, result.operands))
    return failure();
  const auto states = static_cast<int32_t>(values.size()) - 2;
  result.addAttribute(getRuleAttrName(result.name), UpdateRuleAttr::get(parser.getContext(), *known));
  result.addAttribute(getOperandSegmentSizesAttrName(result.name),
                      parser.getBuilder().getDenseI32ArrayAttr({1, clips ? 1 : 0, 1, states}));
  result.addTypes(type);
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
