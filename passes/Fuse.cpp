// SPDX-License-Identifier: Apache-2.0
// fuse, in order:
//  1. split train.batch_norm and its backward op into kernels and elementwise parts, and take statistics of joined
//  tensors from those of their parts;
//  2. turn every elementwise op into a train.fused of one op;
//     with rows, LayerNorm's gradients and sums over rows become regions too, and gradients matrices (FuseRows.h);
//  3. sink fused ops into later ones that read them, or have these repeat them (see Passes.td for when);
//     with rows, those with means of rows join the sums of LayerNorm's parameters;
//  4. delay updates of parameters that a region still reads when it runs again.
// Elementwise ops wait for memory: each as a kernel of its own reads and writes whole tensors, and what lies between
// two of them is an activation that a plan has to care for. Only train.fused has a kernel, so that no other elementwise
// op may be left (checkKernels).
#include "passes/FuseRows.h"
#include "passes/JoinedStatistics.h"
#include "passes/Passes.h"
#include "passes/Regions.h"
#include "passes/Reshapes.h"
#include "passes/SplitBatchNorms.h"

#include "ir/ScalarNames.h"
#include "runtime/FusedGeometry.h"

namespace sluice {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// More operands than this in one kernel run out of registers and address streams.
constexpr unsigned maxOperands = 16;
/// More scalar ops than this in one region cost time, here and in the C++ compiler, and save none: what they wait for
/// is memory.
constexpr size_t maxScalars = 96;
/// An operand with this fraction of a result's elements costs nothing beside it.
constexpr int64_t smallOperand = 16;

/// Scalars keep the names that the rule gave them. A rule's result is called as its op's result is, or, where that is
/// just y, as the rule.
void nameScalars(Elementwise op, Block &block, ValueRange values) {
  const StringRef rule = op->getName().stripDialect();
  const Location loc = NameLoc::get(StringAttr::get(op->getContext(), rule), op.getLoc());
  for (Operation &inner : block.without_terminator()) {
    const StringRef own = scalarName(inner.getLoc());
    inner.setLoc(own.empty() ? loc : withScalarName(loc, own));
  }
  for (auto [value, name] : llvm::zip(values, op.resultNames()))
    if (Operation *scalar = value.getDefiningOp())
      scalar->setLoc(withScalarName(loc, name == "y" ? rule : StringRef(name)));
}

SmallVector<int64_t> channelOperands(Elementwise op) {
  SmallVector<int64_t> channels;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (op.isChannelOperand(i))
      channels.push_back(i);
  return channels;
}

/// Step 2.
FusedOp wrap(Elementwise op) {
  OpBuilder b(op);
  int64_t sums = 0;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    sums += op.isSumResult(i);
  auto fused = FusedOp::create(b, op.getLoc(), op->getResultTypes(), op->getOperands(),
                               b.getDenseI64ArrayAttr(channelOperands(op)), b.getI64IntegerAttr(sums));
  copyOrdinal(op, fused);
  Block &block = fused.getBody().emplaceBlock();
  for (StringRef name : op.operandNames())
    block.addArgument(b.getF32Type(), withScalarName(op.getLoc(), name));
  b.setInsertionPointToStart(&block);
  auto values = op.buildScalar(b, block.getArguments());
  YieldOp::create(b, op.getLoc(), values);
  nameScalars(op, block, values);
  nameRules(fused);
  op->replaceAllUsesWith(fused.getResults());
  op->erase();
  return fused;
}

bool isBefore(Operation *a, Operation *b) { return a->isBeforeInBlock(b); }

/// Whether every op that reads `value` comes before `op`.
bool isReadBeforeOnly(Value value, Operation *op) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return user != op && isBefore(user, op); });
}

size_t scalars(FusedOp op) { return op.getBody().front().getOperations().size(); }

/// The updates of each parameter.
using Updates = llvm::StringMap<SmallVector<UpdateOp, 1>>;

/// Updates make no new tensors, so what lives longer because of them costs nothing.
bool onlyUpdatesBetween(Operation *producer, Operation *consumer) {
  Operation *op = producer->getNextNode();
  while (isa<UpdateOp, AccumulateOp, SumBatchesOp, NeedsRoom, AllGatherOp, UpdateStatisticsOp, ReadOp>(op))
    op = op->getNextNode();
  return op == consumer;
}

/// The variable whose bytes `value` is, empty when it is none's.
StringRef variableBehind(Value value) {
  const FlatSymbolRefAttr variable = variableOf(withoutReshapes(value));
  return variable ? variable.getValue() : StringRef();
}

/// Updates of parameters among `inputs` that come after `producer` move after `consumer`, where they are going to be
/// read.
void delayUpdates(FusedOp producer, ValueRange inputs, FusedOp consumer, const Updates &updates) {
  llvm::SmallSetVector<Operation *, 4> between;
  for (Value input : inputs)
    for (UpdateOp update : updates.lookup(variableBehind(input)))
      if (isBefore(producer, update) && isBefore(update, consumer))
        between.insert(update);
  SmallVector<Operation *> inOrder = between.takeVector();
  llvm::sort(inOrder, isBefore);
  Operation *place = consumer;
  for (Operation *update : inOrder) {
    update->moveAfter(place);
    place = update;
  }
}

Operation *later(Operation *a, Operation *b) { return !a || (b && isBefore(a, b)) ? b : a; }

/// Step 4. A region of several forward ops may run again for what its first ones gave: in their gradients, which come
/// after those of its last ones and the updates of what these read.
void delayUpdatesOfRegions(func::FuncOp function, const Updates &updates) {
  llvm::DenseMap<Operation *, Operation *> wanted; // of forward ops: the last op that may want them to run again
  llvm::MapVector<Operation *, Operation *> delayed;
  for (Operation &op : llvm::reverse(function.getBody().front().without_terminator())) {
    if (!isForward(&op))
      continue;
    Operation *last = nullptr;
    for (Operation *user : op.getUsers())
      if (!user->hasTrait<OpTrait::IsTerminator>())
        last = later(last, isForward(user) ? wanted.lookup(user) : user);
    wanted[&op] = last;
    for (Value operand : op.getOperands())
      for (UpdateOp update : updates.lookup(variableBehind(operand)))
        if (last && isBefore(update, last))
          delayed[update] = later(delayed.lookup(update), last);
  }
  llvm::DenseMap<Operation *, Operation *> behind;
  for (auto [update, op] : delayed) {
    Operation *&place = behind.try_emplace(op, op).first->second;
    update->moveAfter(place);
    place = update;
  }
}

/// Whether means of rows would be of what another mean or a draw is behind.
bool hidesMeans(FusedOp producer, FusedOp consumer) {
  return consumer.hasRowMeans() && (producer.hasRowMeans() || producer.draws());
}

/// Whether `producer` may run where `consumer` runs, as one kernel with it.
bool maySink(FusedOp producer, FusedOp consumer) {
  if (producer.domain().getShape() != consumer.domain().getShape() || !producer.mayJoin(consumer) ||
      !keepsDomain(producer, producer.getInputs(), consumer) || !shareOrder(producer, consumer) ||
      hidesMeans(producer, consumer))
    return false;
  for (OpOperand &operand : consumer->getOpOperands()) {
    if (operand.get().getDefiningOp() != producer)
      continue;
    // A sum is complete only after the producer has run over everything.
    if (cast<OpResult>(operand.get()).getResultNumber() >= producer.fullResults() ||
        consumer.isChannel(operand.getOperandNumber()))
      return false;
  }
  for (Operation *user : producer->getUsers())
    if (user != consumer && isBefore(user, consumer))
      return false;
  if (producer->getNumOperands() + consumer->getNumOperands() > maxOperands ||
      producer->getNumOperands() + consumer->getNumOperands() + producer->getNumResults() + consumer->getNumResults() >
          FusedGeometry::maxOperands ||
      scalars(producer) + scalars(consumer) > maxScalars)
    return false;
  int64_t longer = 0, saved = 0; // bytes that live longer, and that live shorter or not at all
  for (Value operand : producer.getInputs())
    if (!operand.getDefiningOp<ReadOp>() && !isa<BlockArgument>(operand) && isReadBeforeOnly(operand, consumer))
      longer += bytes(operand.getType());
  for (Value result : producer.getOutputs().take_front(producer.fullResults()))
    saved += bytes(result.getType());
  return longer <= saved || onlyUpdatesBetween(producer, consumer);
}

/// Whether `consumer` may compute result `r` of `producer` again, from what is behind it once the results `known` are
/// taken as they are, instead of reading it: where that takes no operand more than it saves. Reading counts,
/// arithmetic does not: regions wait for memory.
bool mayRepeat(FusedOp producer, unsigned r, FusedOp consumer, ArrayRef<unsigned> known) {
  if (tiedToPlace(producer, r, known))
    return false;
  Value result = producer.getResult(r);
  bool readByConsumerAlone = llvm::all_of(result.getUsers(), [&](Operation *user) { return user == consumer; });
  unsigned added = 0, full = 0;
  const SmallVector<Value> inputs = valuesBehind(producer, r, known);
  for (Value operand : inputs) {
    if (llvm::is_contained(consumer.getInputs(), operand))
      continue;
    ++added;
    if (bytes(operand.getType()) == bytes(result.getType()))
      ++full;
    else if (bytes(operand.getType()) > bytes(result.getType()) / smallOperand)
      return false;
  }
  // Where nobody else reads the result, its write is saved, and its bytes: another operand may stand for it.
  return full <= (readByConsumerAlone ? 1 : 0) && keepsDomain(producer, inputs, consumer) &&
         shareOrder(producer, consumer) && consumer->getNumOperands() - 1 + added <= maxOperands &&
         consumer->getNumOperands() - 1 + added + consumer->getNumResults() <= FusedGeometry::maxOperands;
}

/// Which other results of `producer` the consumer takes as they are when it computes `r` again: those that it reads
/// anyway, and at most one more. Nothing where it may not compute it.
std::optional<SmallVector<unsigned>> knownForRepeating(FusedOp producer, unsigned r, FusedOp consumer) {
  if (r >= producer.fullResults() || producer.domain().getShape() != consumer.domain().getShape() ||
      scalars(producer) + scalars(consumer) > maxScalars)
    return std::nullopt;
  SmallVector<unsigned> known;
  for (unsigned other = 0; other < producer.fullResults(); ++other)
    if (other != r && llvm::is_contained(consumer.getInputs(), producer.getResult(other)))
      known.push_back(other);
  if (mayRepeat(producer, r, consumer, known))
    return known;
  for (unsigned other = 0; other < producer.fullResults(); ++other) {
    if (other == r || llvm::is_contained(known, other))
      continue;
    known.push_back(other);
    if (mayRepeat(producer, r, consumer, known))
      return known;
    known.pop_back();
  }
  return std::nullopt;
}

/// `op` without result `r`, if nobody reads that any more; null when nothing else is left.
FusedOp withoutUnread(FusedOp op, unsigned r) {
  if (!op.getResult(r).use_empty())
    return op;
  SmallVector<unsigned> others;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (i != r)
      others.push_back(i);
  OpBuilder b(op);
  FusedOp smaller = others.empty() ? FusedOp() : cloneFor(b, op, others);
  if (!smaller && !others.empty())
    return op;
  for (auto [i, other] : llvm::enumerate(others))
    op.getResult(other).replaceAllUsesWith(smaller.getResult(i));
  op.erase();
  return smaller;
}

struct Fuse : sluice::impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;
  static constexpr size_t none = ~size_t(0);

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      splitBatchNorms(function);
      joinStatistics(function);
      SmallVector<FusedOp> work;
      function.walk([&](Elementwise op) { work.push_back(wrap(op)); });
      if (rows) {
        makeRowRegions(function);
        work = llvm::to_vector(function.getOps<FusedOp>());
      }
      Updates updates;
      function.walk([&](UpdateOp op) { updates[variableOf(op.getParameter()).getValue()].push_back(op); });
      llvm::DenseMap<FusedOp, size_t> ahead; // place in `work`
      for (auto [i, op] : llvm::enumerate(work))
        ahead[op] = i;
      for (size_t i = 0; i < work.size(); ++i)
        if (FusedOp op = work[i]) { // step 3: consumers in program order, so that chains collapse from their start
          ahead.erase(op);
          sinkInto(op, work, ahead, updates);
        }
      if (rows)
        merged += joinRowSums(function);
      delayUpdatesOfRegions(function, updates);
    }
  }

  /// Lets the consumer take what it reads of other regions, again and again, as what it took brings operands of its
  /// own. Each merge makes another op, so that the walk over operands begins anew. `work` has the place of every op
  /// that is still to come, which has to follow: a region that another one took is no longer there, one that lost a
  /// result is another op.
  void sinkInto(FusedOp consumer, SmallVectorImpl<FusedOp> &work, llvm::DenseMap<FusedOp, size_t> &ahead,
                const Updates &updates) {
    auto replace = [&](size_t place, FusedOp now) { // of an op that is gone
      if (place == none)
        return;
      work[place] = now;
      if (now)
        ahead[now] = place;
    };
    auto take = [&](FusedOp op) {
      auto found = ahead.find(op);
      if (found == ahead.end())
        return none;
      size_t place = found->second;
      ahead.erase(found);
      return place;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (Value operand : consumer.getInputs()) {
        auto producer = operand.getDefiningOp<FusedOp>();
        if (!producer)
          continue;
        FusedOp sunk = producer;
        const unsigned r = cast<OpResult>(operand).getResultNumber();
        if (maySink(producer, consumer)) {
          delayUpdates(producer, producer.getInputs(), consumer, updates);
          replace(take(producer), {});
          ++merged;
        } else if (auto known = repeat ? knownForRepeating(producer, r, consumer) : std::nullopt) {
          OpBuilder b(consumer);
          sunk = cloneFor(b, producer, r, *known);
          delayUpdates(producer, sunk.getInputs(), consumer, updates);
          operand.replaceUsesWithIf(sunk.getResult(0), [&](OpOperand &use) { return use.getOwner() == consumer; });
          size_t place = take(producer);
          replace(place, withoutUnread(producer, r));
          ++repeated;
        } else {
          continue;
        }
        consumer = mergeRegions(sunk, consumer);
        changed = true;
        break;
      }
    }
    ++regions;
  }
};

} // namespace
