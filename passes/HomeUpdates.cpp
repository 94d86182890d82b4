// SPDX-License-Identifier: Apache-2.0
// Turns updates into ones of handles, see HomeUpdates.h.
#include "passes/HomeUpdates.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

HomeUpdates::HomeUpdates(func::FuncOp function, const planner::Profile &profile,
                         llvm::function_ref<bool(StringRef)> isAtHome)
    : profile(profile), isAtHome(isAtHome), storages(function) {
  for (Operation *op : plannedOps(function)) {
    llvm::SmallSetVector<int, 8> touched;
    touched.insert_range(storages.reads(op));
    touched.insert_range(storages.writes(op));
    for (int storage : touched)
      touching[storage].push_back(op);
    for (Value result : op->getResults())
      written[storages.of(result)] = result;
    if (auto update = dyn_cast<UpdateOp>(op); update && mayRun(update))
      largest = std::max(largest, bytes(update.getGradient().getType()));
  }
}

/// Rules that look at whole tensors, shares and rows stay on the device.
bool HomeUpdates::mayRun(UpdateOp update) const {
  if (update.getRule() == UpdateRule::Lamb || update.getSharded() || update.getFirst())
    return false;
  return llvm::all_of(update.getOperands().take_back(update.getNumResults()), [&](Value changed) {
    auto read = changed.getDefiningOp<ReadOp>();
    return read && isAtHome(read.getVariable());
  });
}

/// What the step makes, whole and as the last content of its bytes, by an op of this device alone.
bool HomeUpdates::mayLeave(Value gradient) const {
  const Piece piece = storages.pieceOf(gradient);
  const Storage &storage = storages[piece.storage];
  const Value made = viewedValue(gradient);
  auto maker = dyn_cast_or_null<HasKernel>(made.getDefiningOp());
  return maker && !sched::factsOf(maker.role()).together && storage.kind == Storage::Kind::Transient && !storage.kept &&
         !piece.first && storage.bytes == bytes(gradient.getType()) && written.lookup(piece.storage) == made &&
         !sent.contains(piece.storage);
}

/// The last planned op that touches a storage beside the update; there is one, which made it.
Operation *HomeUpdates::lastOn(int storage, Operation *except) const {
  Operation *last = nullptr;
  for (Operation *op : touching.lookup(storage))
    if (op != except)
      last = op;
  return last;
}

static Value sendHome(OpBuilder &b, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value handle = OffloadOp::create(b, value.getLoc(), HostHandleType::get(b.getContext(), type), value, StringAttr(),
                                   b.getStringAttr(factsOf(Space::Host).name), FlatSymbolRefAttr());
  AwaitOp::create(b, value.getLoc(), handle);
  return handle;
}

/// Once for all updates.
Value HomeUpdates::sendNorm(Value norm) {
  Value &handle = norms[norm];
  if (!handle) {
    OpBuilder after(norm.getContext());
    after.setInsertionPointAfterValue(norm);
    handle = sendHome(after, norm);
  }
  return handle;
}

void HomeUpdates::limitUnderway(UpdateOp update, int64_t bytes) {
  OpBuilder after(update->getBlock(), std::next(update->getIterator()));
  underway.push_back({update, bytes});
  bytesUnderway += bytes;
  for (; bytesUnderway > 2 * largest; underway.pop_front()) {
    AwaitOp::create(after, update.getLoc(), underway.front().first.getResult(0));
    bytesUnderway -= underway.front().second;
  }
}

/// Views of what is made for the gradient come right after that; gives the last of them, or what makes it.
static Operation *moveViews(Value gradient) {
  Operation *op = gradient.getDefiningOp();
  if (Value source = viewSource(gradient))
    op->moveAfter(moveViews(source));
  return op;
}

/// Its cost was the device's; there is none where nothing is planned.
void HomeUpdates::estimate(UpdateOp update) {
  auto cost = attr::get<attr::Cost>(update.getOperation());
  if (!cost)
    return;
  const bool known = profile.rates.hostBandwidth > 0;
  assumed |= !known;
  const double rate = known ? profile.rates.hostBandwidth : planner::assumedHostBandwidth;
  const auto seconds =
      FloatAttr::get(Float64Type::get(update.getContext()), static_cast<double>(update.bytesMoved()) / rate);
  attr::set<attr::Cost>(update, CostAttr::get(update.getContext(), seconds, cost.getWorkspace(), {}, {}));
}

bool HomeUpdates::take(UpdateOp update) {
  const Value gradient = update.getGradient();
  if (!mayRun(update) || !mayLeave(gradient))
    return false;
  const int storage = storages.of(gradient);
  Operation *last = lastOn(storage, update);
  if (last->getBlock() != update->getBlock() || update->isBeforeInBlock(last))
    return false;
  sent.insert(storage);
  Operation *made = moveViews(gradient);
  OpBuilder after(last->getContext());
  after.setInsertionPointAfter(last->isBeforeInBlock(made) ? made : last);
  SmallVector<Value> handles{sendHome(after, gradient)};
  if (update.getNorm())
    handles.push_back(sendNorm(update.getNorm()));
  OpBuilder before(update);
  for (Value changed : update.getOperands().take_back(update.getNumResults())) {
    auto read = changed.getDefiningOp<ReadOp>();
    auto type = HostHandleType::get(update.getContext(), cast<RankedTensorType>(changed.getType()));
    handles.push_back(ReadOp::create(before, read.getLoc(), type, read.getVariable()));
  }
  update->setOperands(handles);
  for (auto [result, handle] : llvm::zip(update->getResults(), ArrayRef(handles).take_back(update.getNumResults())))
    result.setType(handle.getType());
  if (!profile.measured(nodeName(update.getLoc()), update.launchName()))
    estimate(update);
  limitUnderway(update, bytes(cast<HostHandleType>(handles.front().getType()).getTensor()));
  return true;
}
