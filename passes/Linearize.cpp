// SPDX-License-Identifier: Apache-2.0
// linearize, in order:
//  0. choose the slabs that are pieces of what they are taken from, instead of copies;
//  1. count, after every forward op, the ops whose activations a later forward op reads; where it is one, a stage ends;
//  2. give every op the stage of its forward op;
//  3. give sums over ranks their room;
//  4. mark ops that may work in the bytes of an operand that nobody reads any more.
// Chain strategies plan by stages, and both the planner and the scheduler count bytes by storages, which follow from
// pieces and from what works in place. All of that is decided here once, so that what was planned is what is scheduled.
#include "passes/Passes.h"
#include "passes/analysis/Storages.h"

#include "llvm/ADT/EquivalenceClasses.h"

namespace sluice {
#define GEN_PASS_DEF_LINEARIZE
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Stage of every forward ordinal (step 1). Statistics and their updates do not keep a stage open: updates may run
/// later, but carry no activation.
SmallVector<int64_t> stagesOf(ArrayRef<Operation *> forward) {
  llvm::DenseMap<Operation *, int> position;
  for (auto [i, op] : llvm::enumerate(forward))
    position[op] = i;
  // Ops at or before i whose results are read after i, as differences. A region that hands on a sum and its square, as
  // of an RMSNorm, is one border: both come back with it.
  SmallVector<int> crossing(forward.size() + 1, 0);
  for (auto [i, op] : llvm::enumerate(forward)) {
    int last = i;
    for (Operation *user : op->getUsers())
      if (auto it = position.find(user); it != position.end() && !isa<UpdateStatisticsOp>(user))
        last = std::max(last, it->second);
    if (last > static_cast<int>(i)) {
      ++crossing[i];
      --crossing[last];
    }
  }
  SmallVector<int64_t> stage(forward.empty() ? 0 : ordinalOf(forward.back()) + 1, 0);
  int64_t current = 0;
  int live = 0;
  for (auto [i, op] : llvm::enumerate(forward)) {
    attr::set<attr::Stage>(op, Builder(op->getContext()).getI64IntegerAttr(current));
    stage[ordinalOf(op)] = current;
    live += crossing[i];
    if (live == 1 && i + 1 < forward.size())
      ++current;
  }
  return stage;
}

/// Of two ops of a block, or none.
Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

/// Whether an op makes nothing but a view of its operand.
bool isView(Operation *op) { return op->getNumResults() == 1 && viewSource(op->getResult(0)); }

/// Step 0. A piece keeps all bytes of its root until its last reader has run. Copies go where that keeps nothing that
/// would have died before: what outlives the step, roots that others read as late, and slabs that together are all that
/// is read of their root, or all but padding.
class Pieces {
public:
  int count = 0;

  void run(Block &block) {
    llvm::MapVector<Value, SmallVector<SliceOp>> slabs; // by root
    for (auto slice : block.getOps<SliceOp>())
      if (slice.contiguousAt() && !isReturned(slice.getY()))
        slabs[viewedValue(slice.getX())].push_back(slice);
    for (auto &[root, slices] : slabs) {
      Operation *maker = viewedValue(root).getDefiningOp(); // the root may have become a piece itself
      if (!maker || isa<ReadOp>(maker))
        take(slices);
      else if (!isa<ChangesVariables>(maker) && !viewSource(root))
        takeWhatCostsNothing(root, slices);
    }
  }

private:
  static bool isReturned(Value value) {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      return isa<func::ReturnOp>(user) || (isView(user) && isReturned(user->getResult(0)));
    });
  }

  /// The last op that reads the value or a view of it, but for these slabs.
  static Operation *lastReader(Value value, ArrayRef<SliceOp> but = {}) {
    Operation *last = nullptr;
    for (Operation *user : value.getUsers())
      if (auto slice = dyn_cast<SliceOp>(user); slice && llvm::is_contained(but, slice))
        continue;
      else if (isView(user))
        last = later(last, lastReader(user->getResult(0), but));
      else
        last = later(last, user);
    return last;
  }

  void takeWhatCostsNothing(Value root, ArrayRef<SliceOp> slices) {
    Operation *others = lastReader(root, slices);
    if (!others && coversRoot(root, slices)) {
      take(slices);
      return;
    }
    for (SliceOp slice : slices)
      if (Operation *last = lastReader(slice.getY()); others && last && !others->isBeforeInBlock(last))
        take(slice);
  }

  /// Pieces may overlap; sorted by where they begin, they cover the root when none begins after what is covered so far.
  /// What pad-products adds at the end, an eighth at most, is less than a copy.
  static bool coversRoot(Value root, ArrayRef<SliceOp> slices) {
    SmallVector<std::pair<int64_t, int64_t>> taken; // first byte, and the one after the last
    for (SliceOp slice : slices)
      taken.push_back({*slice.contiguousAt(), *slice.contiguousAt() + bytes(slice.getY().getType())});
    llvm::sort(taken);
    int64_t covered = 0;
    for (auto [begin, end] : taken)
      if (begin <= covered)
        covered = std::max(covered, end);
    return bytes(root.getType()) - covered <= bytes(root.getType()) / 8;
  }

  void take(ArrayRef<SliceOp> slices) {
    for (SliceOp slice : slices) {
      slice.setPiece(true);
      ++count;
    }
  }
};

/// The op with a room, its last operand and its last result.
Operation *placeIn(OpBuilder &b, NeedsRoom op, Value room) {
  SmallVector<Value> operands(op->getOperands());
  SmallVector<Type> types(op->getResultTypes());
  operands.push_back(room), types.push_back(room.getType());
  NamedAttrList attributes(op->getAttrDictionary());
  const StringRef segmentSizes = AllReduceOp::getOperandSegmentSizeAttr();
  SmallVector<int32_t> segments(cast<DenseI32ArrayAttr>(attributes.get(segmentSizes)).asArrayRef());
  segments.back() = 1;
  attributes.set(segmentSizes, b.getDenseI32ArrayAttr(segments));
  OperationState state(op.getLoc(), op->getName(), operands, types, attributes);
  return b.create(state);
}

/// Step 3. One variable for all that meets other ranks, as large as the largest needs it: they run one after the other,
/// each after the one before has left it.
void giveRoom(ModuleOp module, Block &block) {
  SmallVector<NeedsRoom> needy;
  int64_t room = 0;
  for (auto op : block.getOps<NeedsRoom>()) {
    if (op.getRoom())
      return;
    if (op.roomElements() > 0)
      needy.push_back(op);
    room = std::max(room, op.roomElements());
  }
  if (needy.empty())
    return;
  SymbolTable symbols(module);
  OpBuilder b(needy.front());
  const auto type = RankedTensorType::get({room}, b.getF32Type());
  OpBuilder variables(block.getParentOp());
  auto variable = VariableOp::create(variables, module.getLoc(), roomName, Role::Gradient, Init::Zero, type,
                                     ElementsAttr(), 0, 0, StringAttr(), StringAttr());
  symbols.insert(variable);
  Value place = ReadOp::create(b, NameLoc::get(variable.getSymNameAttr()), type, variable.getSymName());
  copyOrdinal(needy.front(), place.getDefiningOp());
  for (NeedsRoom op : needy) {
    b.setInsertionPoint(op);
    Operation *placed = placeIn(b, op, place);
    op->replaceAllUsesWith(placed->getResults().drop_back());
    op->erase();
    place = placed->getResults().back();
  }
}

static bool addsToMatrix(Operation *op) {
  if (auto product = dyn_cast<MatmulOp>(op))
    return product.addsToMatrix();
  auto product = dyn_cast<QuantizedMatmulOp>(op);
  return product && product.addsToMatrix();
}

/// Step 4. Values that share bytes are one class; an operand's class is free when no op after this one reads any of its
/// values.
class InPlace {
public:
  int count = 0;

  /// In program order, so that classes hold what came before the op at hand. What outlives the step is nobody's to
  /// write over; the gradient of a loss takes the bytes of the logits, a sum over ranks those of a rank's part, a
  /// product those of the sum that it is added to.
  void run(Block &block) {
    for (BlockArgument argument : block.getArguments())
      keep(argument);
    for (Operation &op : block) {
      if (isa<ReadOp, ChangesVariables>(op))
        for (Value variable : op.getResults())
          keep(variable);
      else if (isView(&op))
        unite(viewSource(op.getResult(0)), op.getResult(0));
      else if (auto fused = dyn_cast<FusedOp>(op))
        mark(fused, fused.fullResults(),
             [&](unsigned i) { return i < fused.getInputs().size() && !fused.isChannel(i); });
      else if (isa<LossBackwardOp, LossAndGradientOp>(op))
        mark(&op, 1, [](unsigned i) { return i == 0; });
      else if (auto meeting = dyn_cast<NeedsRoom>(op))
        markEach(meeting);
      else if (addsToMatrix(&op) && !isForward(&op))
        mark(&op, 1, [](unsigned i) { return i == 2; });
    }
  }

private:
  using Key = void *;
  /// Of a class, kept at its leader.
  struct Use {
    bool persistent = false;
    Operation *last = nullptr; ///< that reads one of its values; a later view of the bytes keeps them as well
  };
  Key find(Value value) {
    Key key = value.getAsOpaquePointer();
    if (!classes.contains(key)) {
      classes.insert(key);
      Use &use = uses[key];
      for (Operation *user : value.getUsers())
        use.last = later(use.last, user);
    }
    return classes.getLeaderValue(key);
  }
  void keep(Value value) { uses[find(value)].persistent = true; }
  void unite(Value a, Value b) {
    Use one = uses[find(a)], other = uses[find(b)];
    classes.unionSets(find(a), find(b));
    uses[find(a)] = {one.persistent || other.persistent, later(one.last, other.last)};
  }
  bool nobodyReadsLater(Value operand, Operation *at) {
    Use use = uses[find(operand)];
    return !use.persistent && !(use.last && at->isBeforeInBlock(use.last));
  }
  /// What takes the bytes of a piece would leave the rest of its root behind.
  static bool isPiece(Value value) {
    Value source = viewSource(value);
    return source && (cast<View>(value.getDefiningOp()).firstByte() || isPiece(source));
  }
  /// Another operand looks at the same bytes through a view: the op would read what it has already overwritten.
  bool sharesWithOther(Operation *op, Value operand) {
    return llvm::any_of(op->getOperands(),
                        [&](Value other) { return other != operand && find(other) == find(operand); });
  }
  bool mayTake(Operation *op, Value operand, Value result) {
    return !isPiece(operand) && !sharesWithOther(op, operand) && operand.getType() == result.getType() &&
           nobodyReadsLater(operand, op);
  }
  /// Each sum may take the bytes of its own part, unless it is a share of it; the room is where it was.
  void markEach(NeedsRoom op) {
    SmallVector<int64_t> choice(op->getNumResults(), -1);
    llvm::SmallDenseSet<Key> taken;
    auto sum = dyn_cast<AllReduceOp>(op.getOperation());
    for (unsigned i = 0, sums = sum ? sum.getXs().size() : 0; i < sums; ++i)
      if (mayTake(op, op->getOperand(i), op->getResult(i)) && taken.insert(find(op->getOperand(i))).second) {
        choice[i] = i;
        ++count;
      }
    if (op.getRoom())
      choice.back() = op->getNumOperands() - 1;
    for (auto [result, chosen] : llvm::zip(op->getResults(), choice))
      if (chosen >= 0)
        unite(op->getOperand(chosen), result);
    if (llvm::any_of(choice, [](int64_t c) { return c >= 0; }))
      attr::set<attr::InPlace>(op, DenseI64ArrayAttr::get(op->getContext(), choice));
  }
  /// The first `results` results of an op may take the bytes of operands that it reads no more once it wrote over them.
  void mark(Operation *op, unsigned results, llvm::function_ref<bool(unsigned)> mayBeWrittenOver) {
    SmallVector<int64_t> choice(op->getNumResults(), -1);
    llvm::SmallDenseSet<Key> taken;
    // Of a gradient and an activation that die here the gradient: plans move activations about.
    SmallVector<unsigned> order;
    for (bool activations : {false, true})
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (mayBeWrittenOver(i) && bool(operand.getDefiningOp() && isForward(operand.getDefiningOp())) == activations)
          order.push_back(i);
    for (unsigned r = 0; r < results; ++r)
      for (unsigned i : order) {
        Value operand = op->getOperand(i);
        if (!mayTake(op, operand, op->getResult(r)) || !taken.insert(find(operand)).second)
          continue;
        choice[r] = i;
        ++count;
        break;
      }
    for (unsigned r = 0; r < results; ++r)
      if (choice[r] >= 0)
        unite(op->getOperand(choice[r]), op->getResult(r));
    if (llvm::any_of(choice, [](int64_t c) { return c >= 0; }))
      attr::set<attr::InPlace>(op, DenseI64ArrayAttr::get(op->getContext(), choice));
  }

  llvm::EquivalenceClasses<Key> classes;
  llvm::DenseMap<Key, Use> uses;
};

/// Later passes add up bytes: all of them together fit a number with room to spare.
LogicalResult checkBytes(func::FuncOp function) {
  if (failed(checkTensors(function)))
    return failure();
  Storages storages(function);
  unsigned __int128 total = 0;
  for (const Storage &storage : storages.all())
    total += storage.bytes;
  if (total >> 58)
    return function.emitError() << "the tensors of @" << function.getName() << " take more than 2^58 bytes together";
  return success();
}

/// Step 2.
void markStages(Block &block, ArrayRef<int64_t> stage) {
  Builder builder(block.getParentOp()->getContext());
  for (Operation &op : block.without_terminator())
    if (int64_t number = ordinalOf(&op); !isForward(&op) && number >= 0 && number < static_cast<int64_t>(stage.size()))
      attr::set<attr::Stage>(&op, builder.getI64IntegerAttr(stage[number]));
}

struct Linearize : sluice::impl::LinearizeBase<Linearize> {
  /// Pieces before what works in place: nothing may take the bytes of a piece, whose root has others beside it.
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Block &block = function.getBody().front();
      SmallVector<Operation *> forward;
      for (Operation &op : block)
        if (isForward(&op))
          forward.push_back(&op);
      SmallVector<int64_t> stage = stagesOf(forward);
      markStages(block, stage);
      giveRoom(getOperation(), block);
      if (failed(checkBytes(function)))
        return signalPassFailure();
      Pieces slabs;
      slabs.run(block);
      pieces += slabs.count;
      InPlace inPlaceMarks;
      inPlaceMarks.run(block);
      inPlace += inPlaceMarks.count;
      if (!stage.empty() && function.getName() == "step")
        stages += stage.back() + 1;
    }
  }
};

} // namespace
