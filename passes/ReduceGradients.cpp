// SPDX-License-Identifier: Apache-2.0
// reduce-gradients, in @step of a module for several ranks:
//  1. where steps may have several batches, the mean over them of each gradient becomes the rank's part of the sum over
//  all ranks;
//  2. gradients that follow one another are summed over all ranks in one op, as many as fit one message, behind the
//  last of them;
//  3. what reads them (norms, checks, updates) moves behind the next such op, so that compute has something to do until
//  a sum is there: updates may wait, as nothing in the step reads what they write;
//  4. running statistics of BatchNorm take the shares of all ranks' batches, which each batch has made once its
//  gradient has read its own statistics, at the end of the step;
//  5. where ranks update shares of parameters, these are gathered at the end of the step.
// Ops stay in one order, so that all ranks come to the sums in the same one.
#include "ir/TensorName.h"
#include "passes/Passes.h"
#include "runtime/Collective.h"

namespace sluice {
#define GEN_PASS_DEF_REDUCEGRADIENTS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// What the module asks for.
struct RanksRequest {
  bool ordered;
  int64_t sums;  ///< of a rank's batches, the digits of the counter; 0: a step has one batch
  bool weighted; ///< gradients are weighed here; else the loss was
};

/// Tensors that are summed in one op, and what they are then.
struct Bucket {
  SmallVector<Value> own;
  AllReduceOp sum;
};

/// What was made is part of what belongs to the forward op of this number.
void number(Operation *first, Operation *last, int64_t ordinal) {
  for (Operation *op = first; ordinal >= 0; op = op->getNextNode()) {
    attr::set<attr::Backward>(op, Builder(op->getContext()).getI64IntegerAttr(ordinal));
    if (op == last)
      return;
  }
}

/// Makes sums over a rank's batches, and over ranks.
class Summing {
public:
  Summing(ModuleOp module, func::FuncOp step, RanksRequest request)
      : symbols(module), step(step), request(request), builder(step.getContext()) {}

  int64_t reductions = 0;

protected:
  VariableOp addSum(VariableOp after, const Twine &name, RankedTensorType type) {
    OpBuilder there(after);
    there.setInsertionPointAfter(after);
    auto made = VariableOp::create(there, after.getLoc(), name.str(), Role::Gradient, Init::Zero, type, ElementsAttr(),
                                   0, 0, StringAttr(), StringAttr());
    symbols.insert(made);
    return made;
  }

  Value read(VariableOp variable) {
    return ReadOp::create(builder, NameLoc::get(variable.getSymNameAttr()), variable.getType(), variable.getSymName());
  }

  /// The rank's part of the tree. `first` is the smallest digit; the others are named after it.
  Value sumBatches(Location loc, Value x, VariableOp first, bool weighted) {
    SmallVector<Value> sums{read(first)};
    for (int64_t i = 1; i < request.sums; ++i)
      sums.push_back(read(addSum(first, first.getSymName() + "_" + Twine(i), cast<RankedTensorType>(x.getType()))));
    const SmallVector<Type> types(sums.size(), x.getType());
    return SumBatchesOp::create(builder, loc, types, x, sums, weighted).getResults().back();
  }

  /// In their order, as many in each op as go in one message.
  SmallVector<Bucket> sumTogether(ArrayRef<Value> values, bool mean) {
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

  void sum(Bucket &bucket, bool mean) {
    ++reductions;
    const Value last = bucket.own.back();
    builder.setInsertionPointAfterValue(last);
    const bool weighted = mean && request.sums == 0 && request.weighted;
    bucket.sum = AllReduceOp::create(builder, last.getLoc(), TypeRange(ValueRange(bucket.own)), bucket.own, Value(),
                                     mean, weighted, request.ordered);
    if (Operation *made = last.getDefiningOp())
      number(bucket.sum, bucket.sum, ordinalOf(made));
    for (auto [own, all] : llvm::zip(bucket.own, bucket.sum.getSums()))
      own.replaceUsesWithIf(all, [](OpOperand &use) {
        return isa<UpdateOp, GradientNormOp, CheckGradientsOp, ApplyStatisticsOp>(use.getOwner());
      });
  }

  SymbolTable symbols;
  func::FuncOp step;
  const RanksRequest request;
  OpBuilder builder;
};

/// Steps 1 to 3, and 5.
class GradientSums : public Summing {
public:
  using Summing::Summing;

  void run() {
    const SmallVector<Value> gradients = ownGradients();
    delayReaders(sumTogether(gradients, /*mean=*/true));
    if (step->getParentOp()->hasAttr(sharesAttribute))
      gatherParameters();
  }

private:
  /// The values that are gradients among those that `op` reads.
  static SmallVector<Value> gradientsOf(Operation *op) {
    if (auto update = dyn_cast<UpdateOp>(op))
      return {update.getGradient()};
    if (auto norm = dyn_cast<GradientNormOp>(op))
      return {norm.getGradient()};
    if (auto check = dyn_cast<CheckGradientsOp>(op))
      return SmallVector<Value>(check.getGradients());
    return {};
  }

  /// Of all parameters, in the order in which they are made; what a rank adds up of its batches where it has several.
  SmallVector<Value> ownGradients() {
    llvm::SmallSetVector<Value, 16> found;
    for (Operation &op : step.getOps())
      for (Value gradient : gradientsOf(&op))
        found.insert(gradient);
    SmallVector<Value> own;
    for (Value gradient : found)
      own.push_back(addUp(gradient));
    llvm::stable_sort(own, [](Value a, Value b) {
      Operation *one = a.getDefiningOp(), *other = b.getDefiningOp(); // of an argument none, which is there first
      return other && one != other && (!one || one->isBeforeInBlock(other));
    });
    return own;
  }

  /// The mean over a step's batches becomes the rank's part of the tree.
  Value addUp(Value gradient) {
    auto mean = gradient.getDefiningOp<AccumulateOp>();
    if (!mean)
      return gradient;
    builder.setInsertionPointAfter(mean);
    const Value own = sumBatches(mean->getLoc(), mean.getGradient(),
                                 symbols.lookup<VariableOp>(variableOf(mean.getSum()).getValue()), request.weighted);
    number(mean->getNextNode(), own.getDefiningOp(), ordinalOf(mean));
    gradient.replaceAllUsesWith(own);
    Operation *sum = mean.getSum().getDefiningOp();
    mean->erase();
    if (sum->use_empty())
      sum->erase();
    return own;
  }

  /// Step 3. In their order, each behind the op that follows the last of those that it reads the sums of, and behind
  /// what moved there before it. They then belong to where they are.
  void delayReaders(ArrayRef<Bucket> buckets) {
    llvm::DenseMap<Operation *, size_t> bucketOf;
    for (auto [i, bucket] : llvm::enumerate(buckets))
      bucketOf[bucket.sum] = i;
    SmallVector<Operation *> readers;
    for (Operation &op : step.getOps())
      if (!gradientsOf(&op).empty())
        readers.push_back(&op);
    SmallVector<Operation *> last(buckets.size()); // that stands behind each sum
    for (auto [i, bucket] : llvm::enumerate(buckets))
      last[i] = bucket.sum;
    for (Operation *op : readers) {
      size_t behind = 0;
      for (Value gradient : gradientsOf(op))
        behind = std::max(behind, bucketOf.lookup(gradient.getDefiningOp()));
      behind = std::min(behind + 1, buckets.size() - 1);
      if (last[behind]->isBeforeInBlock(op))
        continue;
      move(op, last[behind], ordinalOf(buckets[behind].sum));
      last[behind] = op;
    }
  }

  /// With the variables that it alone reads.
  void move(Operation *op, Operation *behind, int64_t ordinal) {
    op->moveAfter(behind);
    number(op, op, ordinal);
    for (Value operand : op->getOperands())
      if (auto read = operand.getDefiningOp<ReadOp>(); read && read->hasOneUse()) {
        read->moveBefore(op);
        number(read, read, ordinal);
      }
  }

  /// Step 5.
  void gatherParameters() {
    Operation *end = step.getBody().front().getTerminator(), *last = end->getPrevNode();
    builder.setInsertionPoint(end);
    SmallVector<Value> together;
    int64_t filled = 0;
    const auto gather = [&] {
      if (together.empty())
        return;
      auto made = AllGatherOp::create(builder, together.back().getLoc(), TypeRange(ValueRange(together)), together);
      number(made, made, ordinalOf(last));
      together.clear();
      filled = 0;
    };
    for (auto update : step.getOps<UpdateOp>()) {
      const int64_t count = elements(update.getParameter().getType());
      if (filled + count > reducedPiece)
        gather();
      together.push_back(update.getResult(0));
      filled += count;
    }
    gather();
  }
};

/// Step 4.
class StatisticsSums : public Summing {
public:
  using Summing::Summing;

  void run() {
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
      for (Value sum : bucket.sum.getSums())
        apply((next++)->second, sum);
  }

private:
  /// Whose batches the statistics are of.
  static int64_t ranksOf(UpdateStatisticsOp update) {
    auto norm = update.getMean().getDefiningOp<BatchNormOp>();
    return norm ? static_cast<int64_t>(norm.getRanks()) : 1;
  }

  /// Of what the update reads, in the backward half, so that nothing lives longer for it; else the step's last op.
  Operation *lastReader(UpdateStatisticsOp update) {
    Operation *last = nullptr;
    for (Value read : {update.getMean(), update.getRstd()})
      for (Operation *user : read.getUsers())
        if (!isForward(user) && (!last || last->isBeforeInBlock(user)))
          last = user;
    return last ? last : step.getBody().front().getTerminator()->getPrevNode();
  }

  /// What the batch adds, or the rank's batches together.
  Value shareOf(UpdateStatisticsOp update) {
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
    number(last->getNextNode(), sum.getDefiningOp(), ordinalOf(update));
    return sum;
  }

  void apply(UpdateStatisticsOp update, Value sum) {
    Operation *end = step.getBody().front().getTerminator(), *last = end->getPrevNode();
    builder.setInsertionPoint(end);
    auto applied =
        ApplyStatisticsOp::create(builder, update.getLoc(), sum, update.getRunningMean(), update.getRunningVar(),
                                  update.getMomentumAttr(), builder.getI64IntegerAttr(ranksOf(update)));
    number(applied, applied, ordinalOf(last));
    update->replaceAllUsesWith(applied);
    update->erase();
  }
};

/// The ops that the pass leaves.
bool isReduced(Operation *op) { return isa<AllReduceOp, SumBatchesOp, AllGatherOp>(op); }

struct ReduceGradients : sluice::impl::ReduceGradientsBase<ReduceGradients> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto word = module->getAttrOfType<StringAttr>(ranksAttribute);
    if (!word)
      return;
    if (word != orderedRanks && word != fastRanks) {
      module.emitError() << "knows no " << ranksAttribute << " = " << word << "; there are \"" << orderedRanks
                         << "\" and \"" << fastRanks << "\"";
      return signalPassFailure();
    }
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step || step.getOps<UpdateOp>().empty()) {
      module.emitError() << "has no update in @step; run sluice-build-backward before sluice-reduce-gradients";
      return signalPassFailure();
    }
    if (failed(checkRunsBefore(module, "sluice-reduce-gradients", "sluice-fuse", llvm::IsaPred<FusedOp>)) ||
        failed(checkRunsBefore(module, "sluice-reduce-gradients", "itself", isReduced)))
      return signalPassFailure();
    auto sums = module->getAttrOfType<IntegerAttr>(sumsAttribute);
    const bool accumulates = module->hasAttr("train.accumulate");
    const RanksRequest request{word == orderedRanks, accumulates ? (sums ? sums.getInt() : 1) : 0,
                               !module->hasAttr(normRanksAttribute)};
    StatisticsSums statistics(module, step, request);
    statistics.run();
    GradientSums gradients(module, step, request);
    gradients.run();
    reductions = statistics.reductions + gradients.reductions;
  }
};

} // namespace
