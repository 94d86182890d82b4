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

std::optional<bool> sluice::maskIsPositive(Value content, const Storages &storages) {
  int storage = storages.of(content);
  auto type = cast<RankedTensorType>(content.getType());
  std::optional<arith::CmpFPredicate> predicate;
  for (Value value : storages[storage].values) {
    Operation *producer = value.getDefiningOp();
    if (!producer || (!isForward(producer) && !isFree(producer)))
      return std::nullopt;
    for (OpOperand &use : value.getUses()) {
      Operation *reader = use.getOwner();
      if (isForward(reader) || isFree(reader))
        continue;
      auto fused = dyn_cast<FusedOp>(reader);
      if (!fused || value != content || fused.isChannel(use.getOperandNumber()) || !isReal(type) ||
          fused.domain().getShape() != type.getShape() || layoutOf(fused.domain()) != layoutOf(type))
        return std::nullopt;
      auto here = onlyComparison(fused.getBody().getArgument(use.getOperandNumber()));
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

bool sluice::boundsAreRead(Value content, const Storages &storages) {
  for (Value value : storages[storages.of(content)].values)
    for (OpOperand &use : value.getUses()) {
      Operation *reader = use.getOwner();
      if (isForward(reader) || isFree(reader))
        continue;
      if (isa<ReluBackwardOp, LeakyReluBackwardOp, ClipBackwardOp>(reader))
        return true;
      if (auto fused = dyn_cast<FusedOp>(reader))
        for (Operation *user : fused.getBody().getArgument(use.getOperandNumber()).getUsers())
          if (isa<arith::CmpFOp>(user))
            return true;
    }
  return false;
}
