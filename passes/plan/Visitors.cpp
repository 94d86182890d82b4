// SPDX-License-Identifier: Apache-2.0
// Moves what stands around a visitor's op, see Visitors.h.
#include "passes/plan/Visitors.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Views stay where they are, in front of their readers, unless that is before what they look at.
static void moveViewsAfter(OpBuilder &b, Value source) {
  for (Operation *user : llvm::to_vector(source.getUsers()))
    if (user->getNumResults() == 1 && viewSource(user->getResult(0)) == source &&
        user->isBeforeInBlock(source.getDefiningOp())) {
      user->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
      moveViewsAfter(b, user->getResult(0));
    }
}

void Visitors::arrive(OpBuilder &b, int storage, int step) const {
  Operation *arrival = arrivalOf(storages[storage].values.front());
  for (Operation *op : {arrival->getOperand(0).getDefiningOp(), arrival})
    if (b.getInsertionPoint() != Block::iterator(op)) // else it stands there
      op->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  moveViewsAfter(b, arrival->getResult(0));
  places.note(arrival, {storages[storage].name}, PlaceForm::Raw, step);
}

/// Null for what is dropped.
static OffloadOp departureOf(const Storage &visitor) {
  for (Value value : visitor.values)
    for (Operation *user : value.getUsers())
      if (auto home = dyn_cast<OffloadOp>(user))
        return home;
  return {};
}

/// The views between what a step has made and what is sent of it stand before the copy.
static void moveViewsBefore(OpBuilder &b, OffloadOp home) {
  SmallVector<Operation *> views;
  for (Value value = home.getX(), root = viewedValue(value); value != root; value = viewSource(value))
    views.push_back(value.getDefiningOp());
  for (Operation *view : llvm::reverse(views))
    if (b.getInsertionPoint() == Block::iterator(view))
      b.setInsertionPointAfter(view);
    else if (b.getInsertionPoint()->isBeforeInBlock(view))
      view->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
}

void Visitors::depart(OpBuilder &b, int storage) const {
  OffloadOp home = departureOf(storages[storage]);
  if (!home)
    return;
  moveViewsBefore(b, home);
  if (b.getInsertionPoint() != Block::iterator(home)) // else it stands there
    home->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  b.setInsertionPointAfter(home);
}

void Visitors::release(OpBuilder &b, int storage) const {
  OffloadOp home = departureOf(storages[storage]);
  for (Operation *await : home ? llvm::to_vector(home->getUsers()) : SmallVector<Operation *>())
    if (isa<AwaitOp>(await)) // an update at home reads the handle, too
      await->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
}

void Visitors::bringForOp(OpBuilder &before, Operation *op, int step) const {
  llvm::SmallSetVector<int, 4> read;
  for (int s : storages.reads(op))
    if (plan.decisions[s].action == planner::Action::Keep && visitorOf(storages[s]))
      read.insert(s);
  for (int s : read)
    arrive(before, s, step);
}

// Operands may be versions that the first run read: NewestValues knows their roots. Others that read the same variable
// have copies of their own, so that nothing of this one is newest afterwards.
int64_t Visitors::readAgain(Operation *clone, NewestValues &newest, int step) const {
  OpBuilder before(clone); // views that it reads are made again in front of it, too
  llvm::SmallSetVector<Value, 4> roots;
  for (Value operand : clone->getOperands())
    if (Value root = viewedValue(operand); arrivalOf(root))
      roots.insert(root);
  int64_t taken = 0;
  for (Value root : roots) {
    Operation *arrival = arrivalOf(root);
    Operation *there = before.clone(*arrival->getOperand(0).getDefiningOp());
    Operation *again = before.clone(*arrival);
    again->setOperand(0, there->getResult(0));
    places.noteInWorkspace(again, taken, step);
    taken += slotBytes(bytes(root.getType()));
    newest.set(root, again->getResult(0));
  }
  newest.read(before, clone);
  for (Value root : roots)
    newest.set(root, Value());
  return taken;
}
