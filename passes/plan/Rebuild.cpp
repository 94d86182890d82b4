// SPDX-License-Identifier: Apache-2.0
// Rebuilds what is inverted, see Rebuild.h.
#include "passes/plan/Rebuild.h"

#include "passes/plan/PlannedPlaces.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static void takeBytesOf(Value operand, Value result) {
  Operation *op = result.getDefiningOp();
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (value == operand)
      attr::set<attr::InPlace>(op, DenseI64ArrayAttr::get(op->getContext(), {static_cast<int64_t>(i)}));
}

// What runs again is newest for the clones and the op that is undone alone. Whoever comes after finds what it would
// have found without them (`outside`): the bytes of the clones are not planned for longer.
Rebuilt sluice::rebuild(OpBuilder &b, const StorageInversion &inversion, Value saved, bool fromHalves,
                        NewestValues &newest) {
  llvm::DenseMap<Value, Value> outside;
  for (Operation *op : inversion.reruns) {
    Operation *clone = b.clone(*op);
    OpBuilder beforeClone(clone);
    newest.read(beforeClone, clone);
    PlannedPlaces::forget(clone);
    attr::set<attr::Inverse>(clone, b.getUnitAttr());
    for (auto [first, again] : llvm::zip(op->getResults(), clone->getResults())) {
      outside.try_emplace(first, newest.replacement(first));
      newest.set(first, again);
    }
  }
  Invertible undone = inversion.op;
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(undone->getOperands()))
    operands.push_back(i == inversion.operand ? Value() : newest.of(b, operand));
  Value result =
      undone.buildInverse(b, inversion.operand, operands, newest.of(b, undone->getResult(0)), saved, fromHalves);
  Value first = result;
  // The result takes the bytes of what ran again last, so that both are one buffer.
  if (inversion.inPlace)
    takeBytesOf(first = newest.replacement(inversion.reruns.back()->getResult(0)), result);
  for (auto [value, before] : outside)
    newest.set(value, before);
  return {result, first};
}
