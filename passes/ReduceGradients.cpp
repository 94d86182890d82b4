// SPDX-License-Identifier: Apache-2.0
// reduce-gradients, in @step of a module for several ranks:
//  1. where steps may have several batches, the mean over them of each gradient becomes the rank's part of the sum over
//  all ranks;
//  2. gradients that follow one another are summed over all ranks in one op, as many as fit one message, behind the
//  last of them; where ranks have shares of gradients, each gets its share of the sums, of which norms are taken;
//  3. what reads them (norms, checks, updates) moves behind the next such op, so that compute has something to do until
//  a sum is there: updates may wait, as nothing in the step reads what they write;
//  4. running statistics of BatchNorm take the shares of all ranks' batches, which each batch has made once its
//  gradient has read its own statistics, at the end of the step;
//  5. where ranks update shares of parameters, these are gathered at the end of the step, unless the ranks have shares
//  of the parameters alone: such a one is gathered for what reads it (home-variables).
// Ops stay in one order, so that all ranks come to the sums in the same one.
#include "ir/TensorName.h"
#include "passes/Passes.h"
#include "passes/RankSums.h"
#include "passes/analysis/Storages.h"
#include "runtime/Collective.h"

namespace sluice {
#define GEN_PASS_DEF_REDUCEGRADIENTS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Steps 1 to 3, and 5.
class GradientSums : public RankSums {
public:
  using RankSums::RankSums;

  void run() {
    const SmallVector<Value> gradients = ownGradients();
    const SmallVector<Bucket> buckets = sumTogether(gradients, /*mean=*/true);
    if (request.shares > 0)
      for (const Bucket &bucket : buckets)
        takeNorms(bucket);
    delayReaders(buckets);
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
    if (auto norm = dyn_cast<SharesNormOp>(op))
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
    numberOps(mean->getNextNode(), own.getDefiningOp(), ordinalOf(mean));
    gradient.replaceAllUsesWith(own);
    Operation *sum = mean.getSum().getDefiningOp();
    mean->erase();
    if (sum->use_empty())
      sum->erase();
    return own;
  }

  /// Of shares, by all ranks together.
  void takeNorms(const Bucket &bucket) {
    for (auto [own, share] : llvm::zip(bucket.own, bucket.sums()))
      for (Operation *user : llvm::make_early_inc_range(share.getUsers()))
        if (auto norm = dyn_cast<GradientNormOp>(user)) {
          builder.setInsertionPoint(norm);
          auto made = SharesNormOp::create(builder, norm.getLoc(), norm.getNorm().getType(), share, norm.getBefore(),
                                           Value(), builder.getI64IntegerAttr(elements(own.getType())));
          made->setDiscardableAttrs(norm->getDiscardableAttrDictionary());
          norm.replaceAllUsesWith(made.getResult(0));
          norm.erase();
        }
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
    numberOps(op, op, ordinal);
    for (Value operand : op->getOperands())
      if (auto read = operand.getDefiningOp<ReadOp>(); read && read->hasOneUse()) {
        read->moveBefore(op);
        numberOps(read, read, ordinal);
      }
  }

  /// Whether ranks have shares of the parameter alone. As from a home elsewhere, vectors and what is small stay whole,
  /// and so does what a function returns as it is.
  bool staysShared(UpdateOp update) {
    auto module = cast<ModuleOp>(step->getParentOp());
    const RankedTensorType type = cast<RankedTensorType>(update.getParameter().getType());
    if (!module->hasAttr(parameterSharesAttribute) || type.getRank() < 2 || bytes(type) < smallestMoved)
      return false;
    return llvm::none_of(module.getOps<func::FuncOp>(), [&](func::FuncOp function) {
      return llvm::any_of(function.getBody().front().getTerminator()->getOperands(), [&](Value returned) {
        return variableOf(viewedValue(returned)) == variableOf(update.getParameter());
      });
    });
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
      numberOps(made, made, ordinalOf(last));
      together.clear();
      filled = 0;
    };
    for (auto update : step.getOps<UpdateOp>()) {
      if (staysShared(update))
        continue;
      const int64_t count = elements(update.getParameter().getType());
      if (filled + count > reducedPiece)
        gather();
      together.push_back(update.getResult(0));
      filled += count;
    }
    gather();
  }
};

/// The ops that the pass leaves.
bool isReduced(Operation *op) { return isa<AllReduceOp, ReduceScatterOp, SumBatchesOp, AllGatherOp>(op); }

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
    auto shares = module->getAttrOfType<IntegerAttr>(sharesAttribute);
    const bool sharesGradients = shares && module->hasAttr(gradientSharesAttribute);
    if (sharesGradients && !step.getOps<CheckGradientsOp>().empty()) {
      module.emitError() << "has shares of gradients of a scaled loss, which are checked whole";
      return signalPassFailure();
    }
    const RanksRequest request{word == orderedRanks, accumulates ? (sums ? sums.getInt() : 1) : 0,
                               !module->hasAttr(normRanksAttribute),
                               sharesGradients ? static_cast<int>(shares.getInt()) : 0};
    StatisticsSums statistics(module, step, request);
    statistics.run();
    GradientSums gradients(module, step, request);
    gradients.run();
    reductions = statistics.reductions + gradients.reductions;
  }
};

} // namespace
