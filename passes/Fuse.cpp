// SPDX-License-Identifier: Apache-2.0
// fuse, in order:
//  1. split train.batch_norm and its backward op into kernels and elementwise parts;
//  2. turn every elementwise op into a train.fused of one op;
//  3. sink fused ops into later ones that read them, or have these repeat them (see Passes.td for when).
#include "passes/Passes.h"
#include "passes/Regions.h"

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
/// An operand with this fraction of a result's elements costs nothing beside it.
constexpr int64_t smallOperand = 16;

void splitBatchNorm(BatchNormOp op) {
  OpBuilder b(op);
  auto statistics = BatchNormStatisticsOp::create(b, op.getLoc(), op.getX(), op.getEpsilonAttr());
  auto normalize = NormalizeOp::create(b, op.getLoc(), op.getY().getType(), op.getX(), statistics.getMean(), statistics.getRstd(), op.getScale(), op.getBias());
  copyOrdinal(op, statistics);
  copyOrdinal(op, normalize);
  op.replaceAllUsesWith(ValueRange{normalize.getY(), statistics.getMean(), statistics.getRstd()});
  op.erase();
}

void splitBatchNormBackward(BatchNormBackwardOp op) {
  OpBuilder b(op);
  auto type = cast<RankedTensorType>(op.getX().getType());
  auto sums = NormalizeReduceOp::create(b, op.getLoc(), op.getDscale().getType(), op.getDbias().getType(), op.getDy(), op.getX(), op.getMean(), op.getRstd());
  copyOrdinal(op, sums);
  Value dx;
  if (!op.getDx().use_empty()) {
    auto backward = NormalizeBackwardOp::create(b, op.getLoc(), type, op.getDy(), op.getX(), op.getMean(), op.getRstd(), op.getScale(),
                                                sums.getDscale(), sums.getDbias(), type.getNumElements() / type.getDimSize(1));
    copyOrdinal(op, backward);
    dx = backward.getDx();
  }
  if (dx)
    op.getDx().replaceAllUsesWith(dx);
  op.getDscale().replaceAllUsesWith(sums.getDscale());
  op.getDbias().replaceAllUsesWith(sums.getDbias());
  op.erase();
}

/// Step 2.
FusedOp wrap(Elementwise op) {
  OpBuilder b(op);
  SmallVector<int64_t> channels;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (op.isChannelOperand(i))
      channels.push_back(i);
  int64_t sums = 0;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    sums += op.isSumResult(i);
  auto fused = FusedOp::create(b, op.getLoc(), op->getResultTypes(), op->getOperands(), b.getDenseI64ArrayAttr(channels), b.getI64IntegerAttr(sums));
  copyOrdinal(op, fused);
  Block &block = fused.getBody().emplaceBlock();
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    block.addArgument(b.getF32Type(), op.getLoc());
  b.setInsertionPointToStart(&block);
  auto values = op.buildScalar(b, block.getArguments());
  YieldOp::create(b, op.getLoc(), values);
  for (Operation &inner : block.without_terminator())
    inner.setLoc(NameLoc::get(b.getStringAttr(op->getName().stripDialect()), op.getLoc()));
  nameRules(fused);
  op->replaceAllUsesWith(fused.getResults());
  op->erase();
  return fused;
}

bool isBefore(Operation *a, Operation *b) { return a->isBeforeInBlock(b); }

/// The last op of the block that reads `value`, null when none does.
Operation *lastUser(Value value) {
  Operation *last = nullptr;
  for (Operation *user : value.getUsers())
    if (!last || isBefore(last, user))
      last = user;
  return last;
}

/// Updates make no tensors, so what lives longer because of them costs nothing.
bool onlyUpdatesBetween(Operation *producer, Operation *consumer) {
  Operation *op = producer->getNextNode();
  while (isa<UpdateOp, UpdateStatisticsOp, ReadOp>(op))
    op = op->getNextNode();
  return op == consumer;
}

/// The variable whose bytes `value` is, empty when it is none's.
StringRef variableOf(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>())
    value = view.getX();
  auto read = value.getDefiningOp<ReadOp>();
  return read ? read.getVariable() : StringRef();
}

/// Updates of parameters among `inputs` that come behind `producer` move behind `consumer`, where they are going to be read.
void delayUpdates(FusedOp producer, ValueRange inputs, FusedOp consumer) {
  Operation *place = consumer;
  for (Operation *op = producer->getNextNode(), *next; op != consumer; op = next) {
    next = op->getNextNode();
    auto update = dyn_cast<UpdateOp>(op);
    if (!update || llvm::none_of(inputs, [&](Value v) { return variableOf(v) == update.getParameter(); }))
      continue;
    update->moveAfter(place);
    place = update;
  }
}

/// Whether `producer` may run where `consumer` runs, as one kernel with it.
bool maySink(FusedOp producer, FusedOp consumer) {
  if (producer.domain().getShape() != consumer.domain().getShape())
    return false;
  for (OpOperand &operand : consumer->getOpOperands()) {
    if (operand.get().getDefiningOp() != producer)
      continue;
    // A sum is complete only after the producer has run over everything.
    if (cast<OpResult>(operand.get()).getResultNumber() >= producer.fullResults() || consumer.isChannel(operand.getOperandNumber()))
      return false;
  }
  for (Operation *user : producer->getUsers())
    if (user != consumer && isBefore(user, consumer))
      return false;
  if (producer->getNumOperands() + consumer->getNumOperands() > maxOperands)
    return false;
  int64_t longer = 0, saved = 0; // bytes that live longer, and that live shorter or not at all
  for (Value operand : producer.getInputs())
    if (!operand.getDefiningOp<ReadOp>() && !isa<BlockArgument>(operand) && isBefore(lastUser(operand), consumer))
      longer += bytes(operand.getType());
  for (Value result : producer.getOutputs().take_front(producer.fullResults()))
    saved += bytes(result.getType());
  return longer <= saved || onlyUpdatesBetween(producer, consumer);
}

/// Whether `consumer` may compute result `r` of `producer` again instead of reading it: where that takes no operand more than it saves.
/// Reading counts, arithmetic does not: regions wait for memory.
bool mayRepeat(FusedOp producer, unsigned r, FusedOp consumer) {
  if (r >= producer.fullResults() || producer.domain().getShape() != consumer.domain().getShape() || drawsBehind(producer, r))
    return false;
  Value result = producer.getResult(r);
  bool readByConsumerAlone = llvm::all_of(result.getUsers(), [&](Operation *user) { return user == consumer; });
  unsigned added = 0, full = 0;
  for (unsigned i : operandsBehind(producer, r)) {
    Value operand = producer.getInputs()[i];
    if (llvm::is_contained(consumer.getInputs(), operand))
      continue;
    ++added;
    if (bytes(operand.getType()) == bytes(result.getType()))
      ++full;
    else if (bytes(operand.getType()) > bytes(result.getType()) / smallOperand)
      return false;
  }
  // Where nobody else reads the result, its write is saved, and its bytes: another operand may stand for it.
  return full <= (readByConsumerAlone ? 1 : 0) && consumer->getNumOperands() - 1 + added <= maxOperands;
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

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      function.walk([](BatchNormOp op) { splitBatchNorm(op); });
      function.walk([](BatchNormBackwardOp op) { splitBatchNormBackward(op); });
      SmallVector<FusedOp> work;
      function.walk([&](Elementwise op) { work.push_back(wrap(op)); });
      for (FusedOp op : work)
        if (op) // step 3: consumers in program order, so that chains collapse from their start
          sinkInto(op, work);
    }
  }

  void sinkInto(FusedOp consumer, SmallVectorImpl<FusedOp> &work) {
    auto replace = [&](FusedOp old, FusedOp now) { std::replace(work.begin(), work.end(), old, now); };
    for (bool changed = true; changed;) {
      changed = false;
      for (Value operand : consumer.getInputs()) {
        auto producer = operand.getDefiningOp<FusedOp>();
        if (!producer)
          continue;
        FusedOp sunk = producer;
        if (maySink(producer, consumer)) {
          delayUpdates(producer, producer.getInputs(), consumer);
          replace(producer, {});
          ++merged;
        } else if (unsigned r = cast<OpResult>(operand).getResultNumber(); repeat && mayRepeat(producer, r, consumer)) {
          OpBuilder b(consumer);
          sunk = cloneFor(b, producer, r);
          delayUpdates(producer, sunk.getInputs(), consumer);
          operand.replaceUsesWithIf(sunk.getResult(0), [&](OpOperand &use) { return use.getOwner() == consumer; });
          replace(producer, withoutUnread(producer, r));
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
