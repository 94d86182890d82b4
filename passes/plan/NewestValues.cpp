// SPDX-License-Identifier: Apache-2.0
// Replacements of values in program order, see NewestValues.h.
#include "passes/plan/NewestValues.h"
#include "passes/analysis/InvertedStorages.h"

using namespace mlir;
using namespace sluice;

void NewestValues::replace(Value root, Value now) {
  version[root] = now;
  replaced[now] = root;
}

/// A view of something that was brought back is made again, of the new version: views are free, and the old one would
/// keep the old bytes alive.
Value NewestValues::of(OpBuilder &b, Value value) const {
  Value viewed = viewedValue(value), root = replaced.lookup(viewed);
  Value now = version.lookup(root ? root : viewed); // an op that runs again may have read a version in its first run
  if (!now)
    return value;
  if (viewed == value)
    return now;
  Operation *view = value.getDefiningOp();
  Value source = of(b, view->getOperand(0));
  Operation *copy = b.clone(*view);
  copy->setOperand(0, source);
  return copy->getResult(0);
}

void NewestValues::read(OpBuilder &b, Operation *op) const {
  // What reads one view several times goes on reading one: attention's operands share a gradient then.
  llvm::SmallDenseMap<Value, Value> read;
  for (OpOperand &operand : op->getOpOperands()) {
    const auto [known, isNew] = read.try_emplace(operand.get());
    if (isNew)
      known->second = of(b, operand.get());
    operand.set(known->second);
  }
}
