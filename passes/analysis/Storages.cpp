// SPDX-License-Identifier: Apache-2.0
// One walk over the function in program order; every value gets the storage of the value it shares bytes with, or a new
// one.
#include "passes/analysis/Storages.h"

#include "ir/RuntimeTypes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

Value sluice::viewSource(Value result) {
  auto view = dyn_cast_or_null<View>(result.getDefiningOp());
  return view && view.sharesBytes() ? view->getOperand(0) : Value();
}

Operation *sluice::arrivalOf(Value value) {
  Operation *arrival = value.getDefiningOp();
  const bool comes = isa_and_nonnull<PrefetchOp, GatherSharesOp>(arrival);
  return comes && arrival->getOperand(0).getDefiningOp<ReadOp>() ? arrival : nullptr;
}

VariableOp sluice::visitorOf(const Storage &storage) {
  Operation *arrival = storage.values.empty() ? nullptr : arrivalOf(storage.values.front());
  auto read = arrival ? arrival->getOperand(0).getDefiningOp<ReadOp>() : ReadOp();
  return read ? SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr()) : VariableOp();
}

/// Of what goes to an update at home as its gradient.
static UpdateOp updateWith(OffloadOp sent) {
  for (Operation *user : sent.getHandle().getUsers())
    if (auto update = dyn_cast<UpdateOp>(user); update && update.getGradient() == sent.getHandle())
      return update;
  return {};
}

UpdateOp sluice::homeUpdateOf(const Storage &storage) {
  for (Value value : storage.values)
    for (Operation *user : value.getUsers())
      if (auto sent = dyn_cast<OffloadOp>(user))
        if (UpdateOp update = updateWith(sent))
          return update;
  return {};
}

Value sluice::viewedValue(Value value) {
  while (Value source = viewSource(value))
    value = source;
  return value;
}

/// The operand whose buffer `result` takes, or null.
static Value replaced(OpResult result) {
  if (auto changes = dyn_cast<ChangesVariables>(result.getOwner()))
    return changes->getOperand(changes.changedOperand(result.getResultNumber()));
  auto inPlace = attr::get<attr::InPlace>(result.getOwner());
  int64_t operand = inPlace ? inPlace[result.getResultNumber()] : -1;
  return operand < 0 ? Value() : result.getOwner()->getOperand(operand);
}

bool sluice::isFree(Operation *op) {
  return isa<ReadOp, func::ReturnOp>(op) || (op->getNumResults() == 1 && viewSource(op->getResult(0)));
}

bool sluice::isMove(Operation *op) {
  auto update = dyn_cast<UpdateOp>(op);
  return isa<OffloadOp, PrefetchOp, AwaitOp, GatherSharesOp>(op) || (update && update.isAtHome());
}

SmallVector<Operation *> sluice::plannedOps(func::FuncOp step) {
  SmallVector<Operation *> ops;
  for (Operation &op : step.getBody().front().without_terminator())
    if (!isFree(&op) && !isMove(&op))
      ops.push_back(&op);
  return ops;
}

LogicalResult sluice::checkTensors(func::FuncOp function) {
  auto fits = [](Type type) { return !isa<TensorType>(type) || isAddressable(type); };
  for (BlockArgument argument : function.getArguments())
    if (!fits(argument.getType()))
      return function.emitError() << "argument " << argument.getArgNumber()
                                  << " is no tensor that fits a memory: " << argument.getType();
  for (Operation &op : function.getOps())
    for (Type type : op.getResultTypes())
      if (!fits(type))
        return op.emitOpError() << "makes no tensor that fits a memory: " << type;
  return success();
}

LogicalResult sluice::checkKernels(ModuleOp module) {
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (failed(checkTensors(function)))
      return failure();
    for (Operation &op : function.getOps())
      if (!isFree(&op) && !isMove(&op) && !isa<HasKernel>(op))
        return op.emitOpError() << "has no kernel; run sluice-fuse first";
  }
  return success();
}

/// What a result is called after its node's name.
static StringRef suffixOf(OpResult result, bool backward) {
  Operation *op = result.getOwner();
  auto kernel = dyn_cast<HasKernel>(op);
  if (StringRef own = kernel ? kernel.resultSuffix(result.getResultNumber(), backward) : ""; !own.empty())
    return own;
  if (attr::has<attr::Recompute>(op))
    return "_again";
  if (attr::has<attr::Inverse>(op))
    return isForward(op) ? "_apart" : "_inverted";
  return backward ? "_grad" : "_y";
}

static void makeUnique(MutableArrayRef<Storage> storages) {
  llvm::StringSet<> used;
  llvm::StringMap<int> repeated; // suffixes that are taken, by name
  for (Storage &storage : storages) {
    std::string base = storage.name;
    for (int &n = repeated.try_emplace(base, 1).first->second; !used.insert(storage.name).second;)
      storage.name = base + "_" + std::to_string(++n);
  }
}

static std::string argumentName(func::FuncOp function, unsigned i) {
  auto name = function.getArgAttrOfType<StringAttr>(i, "train.name");
  return sanitized(name ? name.str() : "input" + std::to_string(i));
}

// What the function returns is found at the end: which bytes hold it is known by then, and views of it are followed.
Storages::Storages(func::FuncOp function) : function(function) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    pieces[argument] = {
        add({Storage::Kind::Batch, bytes(argument.getType()), argumentName(function, i), "", i, {argument}})};
  }
  for (Operation &op : function.getOps())
    visit(&op);
  for (OpOperand &returned : function.getBody().front().getTerminator()->getOpOperands()) {
    Storage &storage = storages[of(returned.get())];
    if (storage.kind != Storage::Kind::Transient)
      continue;
    // Scalars have places that outlive a step, the model's output its place in the function.
    const ReturnedValue place = returnedValue(returned);
    if (storage.kept) // another view of what is kept already
      continue;
    storage.index = place.number;
    if (place.isKept) {
      storage.kept = returned.get().getType();
      continue;
    }
    storage.kind = Storage::Kind::Result;
    storage.name = place.number == 0   ? "loss_value"
                   : place.number == 1 ? "correct_count"
                   : place.number == 2 ? "gradient_norm"
                                       : "loss_part";
  }
  // All arenas at once: a symbol is looked up among all others, and there are as many as variables.
  if (auto module = function->getParentOfType<ModuleOp>())
    for (VariableOp variable : module.getOps<VariableOp>())
      if (const int held = ofVariable(variable.getSymName()); held >= 0)
        storages[held].arena = variable.arena();
  makeUnique(storages);
}

int Storages::add(Storage storage) {
  storages.push_back(std::move(storage));
  return static_cast<int>(storages.size()) - 1;
}

/// One storage for a variable, whoever reads or stores it; where its slot lies is the variable's own to say, and set
/// when all are there.
int Storages::addVariable(StringRef symbol, Type type) {
  const auto [found, isNew] = variables.try_emplace(symbol, static_cast<int>(storages.size()));
  if (!isNew)
    return found->second;
  auto handle = dyn_cast<HostHandleType>(type);
  return add({Storage::Kind::Variable,
              bytes(handle ? Type(handle.getTensor()) : type),
              sanitized(symbol.str()),
              symbol.str(),
              0,
              {}});
}

/// Of a view of `source`, itself a piece perhaps.
static Piece viewed(OpResult result, Piece source) {
  if (std::optional<int64_t> first = cast<View>(result.getOwner()).firstByte())
    source.first = source.first.value_or(0) + *first;
  return source;
}

/// Where a result's bytes are: a variable's, its operand's where it is a view or works in place, else its own.
Piece Storages::placeResult(OpResult result) {
  if (auto read = dyn_cast<ReadOp>(result.getOwner()))
    return {addVariable(read.getVariable(), result.getType())};
  if (auto stored = dyn_cast<OffloadOp>(result.getOwner()); stored && stored.getVariable())
    return {addVariable(*stored.getVariable(), result.getType())};
  if (Value source = viewSource(result))
    return viewed(result, pieceOf(source));
  if (Value source = replaced(result))
    return pieceOf(source);
  return {addMade(result)};
}

/// A new buffer for what an op makes.
int Storages::addMade(OpResult result) {
  if (auto moved = dyn_cast<MovesContent>(result.getOwner())) {
    auto offload = dyn_cast<OffloadOp>(result.getOwner());
    return add({offload ? Storage::Kind::Home : Storage::Kind::Transient,
                moved.storageBytes(),
                storages[of(moved.original())].name + moved.storageSuffix(),
                "",
                0,
                {},
                offload ? homeOf(offload.getHome()) : Space::Device});
  }
  for (Operation *user : result.getUsers()) {
    auto sent = dyn_cast<OffloadOp>(user);
    auto update = sent ? updateWith(sent) : dyn_cast<UpdateOp>(user);
    if (update && (sent || update.getGradient() == result))
      return add({Storage::Kind::Transient,
                  bytes(result.getType()),
                  sanitized(variableOf(update.getParameter()).getValue().str()) + "_grad",
                  "",
                  0,
                  {}});
  }
  Operation *terminator = function.getBody().front().getTerminator();
  Operation *loss = terminator->getNumOperands() ? terminator->getOperand(0).getDefiningOp() : nullptr;
  bool backward = loss && loss->getBlock() == result.getOwner()->getBlock() && loss->isBeforeInBlock(result.getOwner());
  std::string node = nodeName(result.getOwner()->getLoc());
  std::string name = identifierOf(node.empty() ? result.getOwner()->getName().stripDialect() : StringRef(node));
  return add({Storage::Kind::Transient, bytes(result.getType()), name + suffixOf(result, backward).str(), "", 0, {}});
}

void Storages::visit(Operation *op) {
  for (OpResult result : op->getResults()) {
    const Piece piece = placeResult(result);
    pieces[result] = piece;
    storages[piece.storage].values.push_back(result);
  }
}

int Storages::ofVariable(StringRef symbol) const {
  auto found = variables.find(symbol);
  return found == variables.end() ? -1 : found->second;
}

/// An op that accumulates reads what its result holds before.
SmallVector<int> Storages::reads(Operation *op) const {
  SmallVector<int> indices;
  for (Value operand : op->getOperands())
    indices.push_back(of(operand));
  if (auto kernel = dyn_cast<HasKernel>(op); kernel && kernel.accumulates())
    indices.push_back(of(op->getResult(0)));
  return indices;
}

SmallVector<int> Storages::writes(Operation *op) const {
  SmallVector<int> indices;
  for (Value result : op->getResults())
    indices.push_back(of(result));
  return indices;
}

/// By name, since @step and @evaluate have inputs in common, and those share their slots; so do those of all buckets of
/// shapes, whose largest decides.
int64_t sluice::stagingBytes(ModuleOp module) {
  llvm::StringMap<int64_t> slots;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments()) {
      int64_t &slot = slots[argumentName(function, argument.getArgNumber())];
      slot = std::max(slot, slotBytes(bytes(argument.getType())));
    }
  int64_t total = 0;
  for (const auto &slot : slots)
    total += slot.second;
  return total;
}

// By name, as all programs of the module share what outlives a step; a batch has two slots, as large as the largest
// bucket of shapes asks for.
int64_t sluice::persistentBytes(ModuleOp module, Space arena) {
  llvm::StringMap<int64_t> slots;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    Storages storages(function);
    for (const Storage &storage : storages.all()) {
      int64_t size = slotBytes(storage.bytes);
      if (storage.arena != arena)
        continue;
      if (storage.kind == Storage::Kind::Variable)
        slots["variable " + storage.variable] = size;
      else if (storage.kind == Storage::Kind::Batch)
        slots["batch " + storage.name] = std::max(slots["batch " + storage.name], 2 * size);
      else if (storage.kind == Storage::Kind::Result)
        slots["result " + std::to_string(storage.index)] = size;
    }
  }
  int64_t total = 0;
  for (const auto &slot : slots)
    total += slot.second;
  return total;
}
