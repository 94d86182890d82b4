// SPDX-License-Identifier: Apache-2.0
// See RankSums.h.
#include "passes/RankSums.h"

#include "runtime/Collective.h"
#include "runtime/Ranks.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

void sluice::numberOps(Operation *first, Operation *last, int64_t ordinal) {
  for (Operation *op = first; ordinal >= 0; op = op->getNextNode()) {
    attr::set<attr::Backward>(op, Builder(op->getContext()).getI64IntegerAttr(ordinal));
    if (op == last)
      return;
  }
}

VariableOp RankSums::addSum(VariableOp after, const Twine &name, RankedTensorType type) {
  OpBuilder there(after);
  there.setInsertionPointAfter(after);
  auto made = VariableOp::create(there, after.getLoc(), name.str(), Role::Gradient, Init::Zero, type, ElementsAttr(), 0,
                                 0, StringAttr(), StringAttr());
  symbols.insert(made);
  return made;
}

Value RankSums::read(VariableOp variable) {
  return ReadOp::create(builder, NameLoc::get(variable.getSymNameAttr()), variable.getType(), variable.getSymName());
}

Value RankSums::sumBatches(Location loc, Value x, VariableOp first, bool weighted) {
  SmallVector<Value> sums{read(first)};
  for (int64_t i = 1; i < request.sums; ++i)
    sums.push_back(read(addSum(first, first.getSymName() + "_" + Twine(i), cast<RankedTensorType>(x.getType()))));
  const SmallVector<Type> types(sums.size(), x.getType());
  return SumBatchesOp::create(builder, loc, types, x, sums, weighted).getResults().back();
}

SmallVector<Bucket> RankSums::sumTogether(ArrayRef<Value> values, bool mean) {
  SmallVector<Bucket> buckets;
  int64_t filled = 0;
  for (Value value : values) {
    const int64_t count = elements(value.getType());
    if (buckets.empty() || filled + count > reducedPiece) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().own.push_back(value);
    filled += count;
  }
  for (Bucket &bucket : buckets)
    sum(bucket, mean);
  return buckets;
}

void RankSums::sum(Bucket &bucket, bool mean) {
  ++reductions;
  const Value last = bucket.own.back();
  builder.setInsertionPointAfterValue(last);
  const bool weighted = mean && request.sums == 0 && request.weighted;
  if (mean && request.shares > 0)
    bucket.sum = ReduceScatterOp::create(builder, last.getLoc(), shareTypes(bucket.own), bucket.own, Value(), weighted);
  else
    bucket.sum = AllReduceOp::create(builder, last.getLoc(), TypeRange(ValueRange(bucket.own)), bucket.own, Value(),
                                     mean, weighted, request.ordered);
  if (Operation *made = last.getDefiningOp())
    numberOps(bucket.sum, bucket.sum, ordinalOf(made));
  for (auto [own, all] : llvm::zip(bucket.own, bucket.sums()))
    own.replaceUsesWithIf(all, [](OpOperand &use) {
      return isa<UpdateOp, GradientNormOp, CheckGradientsOp, ApplyStatisticsOp>(use.getOwner());
    });
}

SmallVector<Type> RankSums::shareTypes(ArrayRef<Value> values) const {
  return llvm::map_to_vector(values, [&](Value value) {
    const auto type = cast<RankedTensorType>(value.getType());
    const int64_t count = sluice::shareOf(type.getNumElements(), 0, request.shares).count;
    return Type(RankedTensorType::get({count}, type.getElementType()));
  });
}

void StatisticsSums::run() {
  const auto updates = llvm::to_vector(step.getOps<UpdateStatisticsOp>());
  SmallVector<std::pair<Value, UpdateStatisticsOp>> shares;
  for (UpdateStatisticsOp update : updates)
    shares.push_back({shareOf(update), update});
  llvm::sort(shares, [](const auto &a, const auto &b) {
    return a.first.getDefiningOp()->isBeforeInBlock(b.first.getDefiningOp());
  });
  SmallVector<Bucket> buckets =
      sumTogether(llvm::map_to_vector(shares, [](const auto &one) { return one.first; }), /*mean=*/false);
  auto next = shares.begin();
  for (Bucket &bucket : buckets)
    for (Value sum : bucket.sums())
      apply((next++)->second, sum);
}

/// Whose batches the statistics are of.
int64_t StatisticsSums::ranksOf(UpdateStatisticsOp update) {
  auto norm = update.getMean().getDefiningOp<BatchNormOp>();
  return norm ? static_cast<int64_t>(norm.getRanks()) : 1;
}

/// Of what the update reads, in the backward half, so that nothing lives longer for it; else the step's last op.
Operation *StatisticsSums::lastReader(UpdateStatisticsOp update) {
  Operation *last = nullptr;
  for (Value read : {update.getMean(), update.getRstd()})
    for (Operation *user : read.getUsers())
      if (!isForward(user) && (!last || last->isBeforeInBlock(user)))
        last = user;
  return last ? last : step.getBody().front().getTerminator()->getPrevNode();
}

/// What the batch adds, or the rank's batches together.
Value StatisticsSums::shareOf(UpdateStatisticsOp update) {
  Operation *last = lastReader(update);
  builder.setInsertionPointAfter(last);
  const Location loc = update.getLoc();
  const auto type = RankedTensorType::get({2, cast<RankedTensorType>(update.getMean().getType()).getDimSize(0)},
                                          builder.getF32Type());
  const int64_t ranks = ranksOf(update);
  Value sum = BatchStatisticsOp::create(
      builder, loc, type, update.getMean(), update.getRstd(), update.getMomentumAttr(), update.getEpsilonAttr(),
      builder.getI64IntegerAttr(static_cast<int64_t>(update.getCount()) * ranks), builder.getI64IntegerAttr(ranks));
  if (request.sums > 0) {
    auto running = symbols.lookup<VariableOp>(variableOf(update.getRunningMean()).getValue());
    std::string name = running.getSymName().str() + "/batch_sum";
    while (symbols.lookup(name)) // two that share their statistics
      name += "_";
    sum = sumBatches(loc, sum, addSum(running, name, type), /*weighted=*/false);
  }
  numberOps(last->getNextNode(), sum.getDefiningOp(), ordinalOf(update));
  return sum;
}

void StatisticsSums::apply(UpdateStatisticsOp update, Value sum) {
  Operation *end = step.getBody().front().getTerminator(), *last = end->getPrevNode();
  builder.setInsertionPoint(end);
  auto applied =
      ApplyStatisticsOp::create(builder, update.getLoc(), sum, update.getRunningMean(), update.getRunningVar(),
                                update.getMomentumAttr(), builder.getI64IntegerAttr(ranksOf(update)));
  numberOps(applied, applied, ordinalOf(last));
  update->replaceAllUsesWith(applied);
  update->erase();
}
