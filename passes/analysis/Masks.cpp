// SPDX-License-Identifier: Apache-2.0
// Looks at every use of a storage in the backward half, see Masks.h.
#include "passes/analysis/Masks.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

SmallVector<Value> sluice::forwardContents(func::FuncOp step, const Storages &storages) {
  SmallVector<Value> contents(storages.all().size());
  for (Operation &op : step.getOps())
    if (isForward(&op) && !isFree(&op))
      for (Value result : op.getResults())
        contents[storages.of(result)] = result;
  return contents;
}

/// The one predicate by which `argument` is compared with 0; none when it is used otherwise.
static std::optional<arith::CmpFPredicate> onlyComparison(Value argument) {
  std::optional<arith::CmpFPredicate> found;
  for (Operation *user : argument.getUsers()) {
    auto compare = dyn_cast<arith::CmpFOp>(user);
    if (!compare || compare.getLhs() != argument || !matchPattern(compare.getRhs(), m_AnyZeroFloat()) ||
        (found && *found != compare.getPredicate()))
      return std::nullopt;
    found = compare.getPredicate();
  }
  return found;
}

/// The one predicate by which a backward op compares `content` with 0, where it needs no more of it; else none.
static std::optional<arith::CmpFPredicate> onlyQuestion(OpOperand &use, Value content) {
  auto fused = dyn_cast<FusedOp>(use.getOwner());
  auto type = cast<RankedTensorType>(content.getType());
  if (!fused || use.get() != content || fused.isChannel(use.getOperandNumber()) || !isReal(type) ||
      fused.domain().getShape() != type.getShape() || layoutOf(fused.domain()) != layoutOf(type))
    return std::nullopt;
  return onlyComparison(fused.getBody().getArgument(use.getOperandNumber()));
}

/// All readers of the backward half must ask the same question, for a mask has one bit an element. Nothing where one
/// asks for more than the sign, or two differ.
std::optional<bool> sluice::maskIsPositive(Value content, const Storages &storages) {
  int storage = storages.of(content);
  std::optional<arith::CmpFPredicate> predicate;
  for (Value value : storages[storage].values) {
    Operation *producer = value.getDefiningOp();
    if (!producer || (!isForward(producer) && !isFree(producer)))
      return std::nullopt;
    for (OpOperand &use : value.getUses()) {
      Operation *reader = use.getOwner();
      if (isForward(reader) || isFree(reader))
        continue;
      auto here = onlyQuestion(use, content);
      if (!here || (predicate && *predicate != *here))
        return std::nullopt;
      predicate = here;
    }
  }
  if (predicate == arith::CmpFPredicate::OLE)
    return false;
  if (predicate == arith::CmpFPredicate::OGT)
    return true;
  return std::nullopt;
}

/// Asks about `x <= 0` alone, which masks answer; an op that writes the storage needs its bytes.
bool sluice::readsMaskOnly(Operation *reader, Value content, const Storages &storages) {
  const int storage = storages.of(content);
  if (isForward(reader) || isFree(reader) || llvm::is_contained(storages.writes(reader), storage))
    return false;
  bool reads = false;
  for (OpOperand &operand : reader->getOpOperands())
    if (storages.of(operand.get()) == storage) {
      if (onlyQuestion(operand, content) != arith::CmpFPredicate::OLE)
        return false;
      reads = true;
    }
  return reads;
}

/// Whether a comparison of `argument` asks whether it is above 0, or whether it is not.
static bool asksAboveZero(arith::CmpFOp compare, Value argument) {
  using Predicate = arith::CmpFPredicate;
  return compare.getLhs() == argument && matchPattern(compare.getRhs(), m_AnyZeroFloat()) &&
         llvm::is_contained({Predicate::OGT, Predicate::UGT, Predicate::OLE, Predicate::ULE}, compare.getPredicate());
}

/// What one backward op compares the tensor with that it reads.
static sluice::Comparison comparisonBy(OpOperand &use) {
  using sluice::Comparison;
  Operation *reader = use.getOwner();
  if (isa<ClipBackwardOp>(reader))
    return Comparison::Otherwise;
  if (isa<ReluBackwardOp, LeakyReluBackwardOp>(reader))
    return Comparison::AboveZero;
  auto fused = dyn_cast<FusedOp>(reader);
  if (!fused)
    return Comparison::None;
  Comparison found = Comparison::None;
  Value argument = fused.getBody().getArgument(use.getOperandNumber());
  for (Operation *user : argument.getUsers())
    if (auto compare = dyn_cast<arith::CmpFOp>(user))
      found = std::max(found, asksAboveZero(compare, argument) ? Comparison::AboveZero : Comparison::Otherwise);
  return found;
}

sluice::Comparison sluice::comparisonOf(Value content, const Storages &storages) {
  auto found = sluice::Comparison::None;
  for (Value value : storages[storages.of(content)].values)
    for (OpOperand &use : value.getUses())
      if (!isForward(use.getOwner()) && !isFree(use.getOwner()))
        found = std::max(found, comparisonBy(use));
  return found;
}
