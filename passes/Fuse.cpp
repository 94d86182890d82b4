// SPDX-License-Identifier: Apache-2.0
// fuse, in order:
//  1. split train.batch_norm and its backward op into kernels and elementwise parts;
//  2. turn every elementwise op into a train.fused of one op;
//  3. sink fused ops into later ones that read them (see Passes.td for when).
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

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
  fused->setAttr(attr::rule, b.getStringAttr(op->getName().stripDialect()));
  Block &block = fused.getBody().emplaceBlock();
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    block.addArgument(b.getF32Type(), op.getLoc());
  b.setInsertionPointToStart(&block);
  auto values = op.buildScalar(b, block.getArguments());
  YieldOp::create(b, op.getLoc(), values);
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

/// Updates of parameters that `producer` reads move behind `consumer`, where it is going to read them.
void delayUpdates(FusedOp producer, FusedOp consumer) {
  Operation *place = consumer;
  for (Operation *op = producer->getNextNode(), *next; op != consumer; op = next) {
    next = op->getNextNode();
    auto update = dyn_cast<UpdateOp>(op);
    if (!update || llvm::none_of(producer.getInputs(), [&](Value v) { return variableOf(v) == update.getParameter(); }))
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

/// Builds the region of producer and consumer as one op in the consumer's place.
class Merge {
public:
  Merge(FusedOp producer, FusedOp consumer) : producer(producer), consumer(consumer) {}

  FusedOp run() {
    collect();
    OpBuilder b(consumer);
    Location loc = b.getFusedLoc({producer.getLoc(), consumer.getLoc()});
    SmallVector<Type> types;
    for (Value result : kept)
      types.push_back(result.getType());
    auto merged = FusedOp::create(b, loc, types, operands, b.getDenseI64ArrayAttr(channels), b.getI64IntegerAttr(sums));
    copyOrdinal(consumer, merged); // it runs where the consumer ran
    merged->setAttr(attr::rule, b.getStringAttr(ruleOf(producer) + "+" + ruleOf(consumer)));
    fill(merged);
    for (auto [old, now] : llvm::zip(kept, merged.getResults()))
      old.replaceUsesWithIf(now, [&](OpOperand &use) { return use.getOwner() != consumer; });
    consumer.erase();
    producer.erase();
    return merged;
  }

private:
  void collect() {
    auto addOperands = [&](FusedOp op) {
      for (auto [i, operand] : llvm::enumerate(op.getInputs())) {
        if (operand.getDefiningOp() == producer || llvm::is_contained(operands, operand))
          continue;
        if (op.isChannel(i))
          channels.push_back(operands.size());
        operands.push_back(operand);
      }
    };
    addOperands(producer);
    addOperands(consumer);
    auto usedElsewhere = [&](Value v) { return llvm::any_of(v.getUsers(), [&](Operation *u) { return u != consumer; }); };
    for (bool wantSums : {false, true})
      for (FusedOp op : {consumer, producer})
        for (auto [i, result] : llvm::enumerate(op.getOutputs()))
          if ((i >= op.fullResults()) == wantSums && (op == consumer || usedElsewhere(result))) {
            kept.push_back(result);
            sums += wantSums;
          }
  }

  static std::string ruleOf(FusedOp op) { return op->getAttrOfType<StringAttr>(attr::rule).str(); }

  void fill(FusedOp merged) {
    OpBuilder b(merged.getContext());
    Block &block = merged.getBody().emplaceBlock();
    IRMapping map;
    for (Value operand : operands)
      map.map(operand, block.addArgument(b.getF32Type(), merged.getLoc()));
    b.setInsertionPointToStart(&block);
    for (FusedOp op : {producer, consumer}) {
      Block &body = op.getBody().front();
      for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getInputs()))
        map.map(argument, map.lookup(operand));
      for (Operation &inner : body.without_terminator())
        b.clone(inner, map);
      for (auto [result, scalar] : llvm::zip(op.getOutputs(), cast<YieldOp>(body.getTerminator()).getValues()))
        map.map(result, map.lookup(scalar));
    }
    SmallVector<Value> yielded;
    for (Value result : kept)
      yielded.push_back(map.lookup(result));
    YieldOp::create(b, merged.getLoc(), yielded);
  }

  FusedOp producer, consumer;
  SmallVector<Value> operands, kept;
  SmallVector<int64_t> channels;
  int64_t sums = 0;
};

struct Fuse : sluice::impl::FuseBase<Fuse> {
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
    for (bool changed = true; changed;) {
      changed = false;
      for (Value operand : consumer.getInputs()) {
        auto producer = operand.getDefiningOp<FusedOp>();
        if (!producer || !maySink(producer, consumer))
          continue;
        for (FusedOp &other : work)
          if (other == producer)
            other = nullptr;
        delayUpdates(producer, consumer);
        consumer = Merge(producer, consumer).run();
        ++merged;
        changed = true;
        break;
      }
    }
    ++regions;
  }
};

} // namespace
