// SPDX-License-Identifier: Apache-2.0
// Moves what stands around a visitor's op, see Visitors.h.
#include "passes/plan/Visitors.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// The read goes along: its handle must be made before the copy.
PrefetchOp sluice::moveArrival(OpBuilder &b, const Storage &visitor) {
  auto arrival = visitor.values.front().getDefiningOp<PrefetchOp>();
  for (Operation *op : {arrival.getHandle().getDefiningOp(), arrival.getOperation()})
    op->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  return arrival;
}

/// Null for what nobody stores.
static OffloadOp departureOf(const Storage &visitor) {
  for (Value value : visitor.values)
    for (Operation *user : value.getUsers())
      if (auto home = dyn_cast<OffloadOp>(user))
        return home;
  return {};
}

void sluice::moveDeparture(OpBuilder &b, const Storage &visitor) {
  OffloadOp home = departureOf(visitor);
  if (!home)
    return;
  if (b.getInsertionPoint() != Block::iterator(home)) // else it stands there
    home->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  b.setInsertionPointAfter(home);
}

void sluice::moveAwait(OpBuilder &b, const Storage &visitor) {
  OffloadOp home = departureOf(visitor);
  for (Operation *await : home ? llvm::to_vector(home->getUsers()) : SmallVector<Operation *>())
    await->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
}
