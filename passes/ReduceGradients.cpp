// SPDX-License-Identifier: Apache-2.0
// reduce-gradients, in @step of a module for several ranks:
//  1. every gradient that updates wait for is summed over all ranks, in front of the first op that asks for its norm,
//  checks it or updates by it; where steps may have several batches, the mean over them becomes the rank's part of the
//  sum;
//  2. running statistics of BatchNorm take the shares of all ranks' batches, once its gradient has read those of its
//  own.
// Ops stay in their order, so that all ranks come to the sums in the same one.
#include "ir/TensorName.h"
#include "passes/Passes.h"

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
  int64_t sums; ///< of a rank's batches, the digits of the counter; 0: a step has one batch
};

class Reducer {
public:
  Reducer(ModuleOp module, func::FuncOp step, RanksRequest request)
      : symbols(module), step(step), request(request), builder(step.getContext()) {}

  int64_t reductions = 0;

  void run() {
    for (Value gradient : gradients())
      reduceGradient(gradient);
    for (auto update : llvm::make_early_inc_range(step.getOps<UpdateStatisticsOp>()))
      reduceStatistics(update);
  }

private:
  static bool reads(Operation *op) { return isa<UpdateOp, GradientNormOp, CheckGradientsOp>(op); }

  /// Of all parameters, in the order of what reads them.
  SmallVector<Value> gradients() {
    llvm::SmallSetVector<Value, 16> found;
    for (Operation &op : step.getOps()) {
      if (auto update = dyn_cast<UpdateOp>(op))
        found.insert(update.getGradient());
      else if (auto norm = dyn_cast<GradientNormOp>(op))
        found.insert(norm.getGradient());
      else if (auto check = dyn_cast<CheckGradientsOp>(op))
        found.insert(check.getGradients().begin(), check.getGradients().end());
    }
    return found.takeVector();
  }

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

  Value allReduce(Location loc, Value x, bool mean, bool weighted) {
    ++reductions;
    return AllReduceOp::create(builder, loc, x.getType(), x, mean, weighted, request.ordered);
  }

  void reduceGradient(Value gradient) {
    Operation *made = gradient.getDefiningOp();
    builder.setInsertionPointAfter(made);
    auto mean = dyn_cast<AccumulateOp>(made);
    Value own = gradient;
    if (mean)
      own = sumBatches(made->getLoc(), mean.getGradient(),
                       symbols.lookup<VariableOp>(variableOf(mean.getSum()).getValue()), /*weighted=*/true);
    const Value all = allReduce(made->getLoc(), own, /*mean=*/true, /*weighted=*/!mean);
    gradient.replaceUsesWithIf(all, [](OpOperand &use) { return reads(use.getOwner()); });
    number(made->getNextNode(), all.getDefiningOp(), ordinalOf(made));
    if (!mean)
      return;
    Operation *sum = mean.getSum().getDefiningOp();
    mean->erase();
    if (sum->use_empty())
      sum->erase();
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

  void reduceStatistics(UpdateStatisticsOp update) {
    Operation *last = lastReader(update);
    builder.setInsertionPointAfter(last);
    const Location loc = update.getLoc();
    const int64_t channels = cast<RankedTensorType>(update.getMean().getType()).getDimSize(0),
                  ordinal = ordinalOf(update);
    const auto type = RankedTensorType::get({2, channels}, builder.getF32Type());
    Value sum = BatchStatisticsOp::create(builder, loc, type, update.getMean(), update.getRstd(),
                                          update.getMomentumAttr(), update.getEpsilonAttr(), update.getCountAttr());
    if (request.sums > 0) {
      auto running = symbols.lookup<VariableOp>(variableOf(update.getRunningMean()).getValue());
      std::string name = running.getSymName().str() + "/batch_sum";
      while (symbols.lookup(name)) // two that share their statistics
        name += "_";
      sum = sumBatches(loc, sum, addSum(running, name, type), /*weighted=*/false);
    }
    sum = allReduce(loc, sum, /*mean=*/false, /*weighted=*/false);
    auto applied = ApplyStatisticsOp::create(builder, loc, sum, update.getRunningMean(), update.getRunningVar(),
                                             update.getMomentumAttr());
    update->replaceAllUsesWith(applied);
    update->erase();
    number(last->getNextNode(), applied, ordinal);
  }

  /// What was made is part of what belongs to the forward op of this number.
  void number(Operation *first, Operation *last, int64_t ordinal) {
    for (Operation *op = first; ordinal >= 0; op = op->getNextNode()) {
      attr::set<attr::Backward>(op, builder.getI64IntegerAttr(ordinal));
      if (op == last)
        return;
    }
  }

  SymbolTable symbols;
  func::FuncOp step;
  const RanksRequest request;
  OpBuilder builder;
};

/// The ops that the pass leaves.
bool isReduced(Operation *op) { return isa<AllReduceOp, SumBatchesOp>(op); }

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
    Reducer reducer(module, step, {word == orderedRanks, accumulates ? (sums ? sums.getInt() : 1) : 0});
    reducer.run();
    reductions = reducer.reductions;
  }
};

} // namespace
