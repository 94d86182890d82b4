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

/// C4
static LogicalResult checkShare(VariableOp variable) {
  const auto said = variable->getAttr(wholeAttribute);
  auto whole = dyn_cast_or_null<TypeAttr>(said);
  auto tensor = whole ? dyn_cast<RankedTensorType>(whole.getValue()) : RankedTensorType();
  const auto type = cast<RankedTensorType>(variable.getType());
  if (said && (!tensor || !tensor.hasStaticShape() || tensor.getElementType() != type.getElementType() ||
               type.getRank() != 1 || type.getDimSize(0) >= tensor.getNumElements() || variable.getHome()))
    return variable.emitOpError() << "is " << type << (variable.getHome() ? " away from the device" : "")
                                  << " as a share of " << said << "; it is a shorter vector on the device";
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
  return checkShare(*this);
}

bool VariableOp::isShare() { return (*this)->hasAttr(wholeAttribute); }

RankedTensorType VariableOp::wholeType() {
  auto whole = (*this)->getAttrOfType<TypeAttr>(wholeAttribute);
  return cast<RankedTensorType>(whole ? whole.getValue() : Type(getType()));
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

// Back along the chain of new values to the train.read, in place, through a home elsewhere or from the shares of all
// ranks. It ends: each turn goes
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
    if (auto gathered = dyn_cast<GatherSharesOp>(result.getOwner())) {
      value = gathered.getShare();
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

std::optional<VariablePiece> sluice::train::changedPieceOf(OpResult result) {
  auto changes = dyn_cast<ChangesVariables>(result.getOwner());
  return changes ? changes.changedPiece(result.getResultNumber()) : std::nullopt;
}

std::optional<VariablePiece> sluice::train::changedPieceOf(OpOperand &operand) {
  if (auto changes = dyn_cast<ChangesVariables>(operand.getOwner()))
    for (OpResult result : operand.getOwner()->getResults())
      if (changes.changedOperand(result.getResultNumber()) == operand.getOperandNumber())
        return changes.changedPiece(result.getResultNumber());
  return std::nullopt;
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
