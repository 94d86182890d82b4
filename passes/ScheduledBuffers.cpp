// SPDX-License-Identifier: Apache-2.0
// Makes sched.buffers, see ScheduledBuffers.h.
#include "passes/ScheduledBuffers.h"

#include "passes/plan/PlannedPlaces.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;

Location sluice::originOf(const Storage &storage, Location fallback) {
  return storage.values.empty() || isa<UnknownLoc>(storage.values.front().getLoc()) ? fallback
                                                                                    : storage.values.front().getLoc();
}

/// What copies pack into a pool has a slot of its own only where the pool spills to.
sched::Space sluice::spaceOf(train::OffloadOp op) {
  return sched::poolBytes(op.getCodec()) > 0 ? sched::Space::Spill : sched::spaceOf(homeOf(op.getHome()));
}

static sched::Space arenaOf(const Storage &storage) {
  return storage.kind == Storage::Kind::Home ? spaceOf(storage.values.front().getDefiningOp<train::OffloadOp>())
                                             : sched::spaceOf(storage.arena);
}

/// Of the first op that the plan counts among those that make it: copies from a variable's home come before it.
static IntegerAttr plannedOffset(const Storage &storage) {
  if (storage.kind != Storage::Kind::Transient)
    return {};
  for (Value value : storage.values)
    if (auto made = dyn_cast<OpResult>(value))
      if (IntegerAttr offset = PlannedPlaces::of(made.getOwner(), made.getResultNumber()))
        return offset;
  return {};
}

ScheduledBuffers::ScheduledBuffers(OpBuilder &b, func::FuncOp function, const Storages &storages) : storages(storages) {
  for (const Storage &storage : storages.all())
    addStorage(b, function, storage);
  for (Operation &op : function.getOps())
    if (auto cost = train::attr::get<train::attr::Cost>(&op); cost && cost.getWorkspace() > 0)
      addScratch(b, &op);
}

/// An input has three buffers: the batch that is read, the one that arrives meanwhile, and the staging slot on the host
/// that the reader of data fills.
void ScheduledBuffers::addStorage(OpBuilder &b, func::FuncOp function, const Storage &storage) {
  MLIRContext *context = b.getContext();
  Location loc = originOf(storage, function.getLoc());
  auto create = [&](StringRef name, sched::Space space, StringAttr input = {}, IntegerAttr batch = {},
                    TypeAttr type = {}) {
    const bool kept = storage.kept && !input;
    auto variable = storage.kind == Storage::Kind::Variable ? FlatSymbolRefAttr::get(context, storage.variable)
                                                            : FlatSymbolRefAttr();
    auto result = storage.kind == Storage::Kind::Result ? b.getI64IntegerAttr(storage.index) : IntegerAttr();
    return BufferOp::create(b, loc, b.getType<sched::BufferType>(), b.getStringAttr(name),
                            sched::SpaceAttr::get(context, space), b.getI64IntegerAttr(storage.bytes), variable, input,
                            batch, result, plannedOffset(storage), IntegerAttr(), IntegerAttr(),
                            kept ? TypeAttr::get(storage.kept) : type,
                            kept ? b.getI64IntegerAttr(storage.index) : IntegerAttr())
        .getBuffer();
  };
  if (storage.kind != Storage::Kind::Batch) {
    slots.push_back(create(storage.name, arenaOf(storage)));
    return;
  }
  // Data files bear the name as the model has it.
  auto input = function.getArgAttrOfType<StringAttr>(storage.index, "train.name");
  input = input ? input : b.getStringAttr(storage.name);
  auto type = TypeAttr::get(function.getArgument(storage.index).getType());
  slots.push_back(create(storage.name, sched::Space::Device, input, b.getI64IntegerAttr(0), type));
  Value next = create(storage.name + "_next", sched::Space::Device, input, b.getI64IntegerAttr(1), type);
  arriving.push_back({create(storage.name + "_staging", sched::Space::Host, input, {}, type), next});
}

/// A workspace lives while its op runs, so that two of one node, as of a clone, have buffers of their own.
void ScheduledBuffers::addScratch(OpBuilder &b, Operation *op) {
  SmallVector<int> written = storages.writes(op);
  std::string name = (written.empty() ? "unused" : storages[written.front()].name) + "_scratch";
  const int64_t bytes = train::attr::get<train::attr::Cost>(op).getWorkspace();
  scratches[op] =
      BufferOp::create(b, op->getLoc(), b.getType<sched::BufferType>(), b.getStringAttr(name),
                       sched::SpaceAttr::get(b.getContext(), sched::Space::Device), b.getI64IntegerAttr(bytes), {}, {},
                       {}, {}, PlannedPlaces::of(op, op->getNumResults()), {}, {}, {}, {});
}

/// A value is a buffer, the type that it is read as, and where it begins in it if it is a piece, or if only a piece of
/// it is changed.
void ScheduledBuffers::list(Value value, std::optional<train::VariablePiece> changed, Operands &into) const {
  const Piece piece = storages.pieceOf(value);
  into.buffers.push_back(slots[piece.storage]);
  into.types.push_back(TypeAttr::get(changed ? Type(changed->type) : train::heldTensor(value.getType())));
  into.firsts.push_back(changed ? changed->first : piece.first.value_or(sched::wholeBuffer));
}

ScheduledBuffers::Operands ScheduledBuffers::insOf(Operation *op) const {
  Operands ins;
  for (OpOperand &operand : op->getOpOperands())
    list(operand.get(), train::changedPieceOf(operand), ins);
  if (cast<train::HasKernel>(op).accumulates()) // into what it holds by now
    list(op->getResult(0), {}, ins);
  return ins;
}

ScheduledBuffers::Operands ScheduledBuffers::outsOf(Operation *op) const {
  Operands outs;
  for (OpResult result : op->getResults())
    list(result, train::changedPieceOf(result), outs);
  return outs;
}
