// SPDX-License-Identifier: Apache-2.0
// split, for the loss with the most scores:
//  1. find what makes its scores row by row, and what comes of their gradient (RowRegion.h);
//  2. in @evaluate take back what reads the scores: the count of right answers, and what is predicted;
//  3. put the region, once for each part of the rows, where its first gradient was, or its loss where it has none: what
//  it reads of the rows is a slab, rows that it makes are joined, sums over rows and losses are added in order;
//  4. what the parts run forward counts for the backward half from now on, so that no part's scores are an activation.
// With so many classes as words the scores and their gradient are by far the largest tensors, and both are needed
// whole by one op each, so that no plan of whole tensors goes below them.
#include "passes/PartedRegion.h"
#include "passes/Passes.h"

#include "ir/Buckets.h"
#include "ir/TensorName.h"

namespace sluice {
#define GEN_PASS_DEF_SPLIT
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Of several the first.
SoftmaxCrossEntropyOp largestLoss(func::FuncOp function) {
  SoftmaxCrossEntropyOp largest;
  for (auto loss : function.getOps<SoftmaxCrossEntropyOp>())
    if (!largest || bytes(loss.getX().getType()) > bytes(largest.getX().getType()))
      largest = loss;
  return largest;
}

/// Step 2: what @evaluate returns of the scores goes, with the ops that only it needs.
class Withdrawal {
public:
  explicit Withdrawal(const RowRegion &region) : region(region) {
    for (auto [value, lead] : region.made)
      follow(value);
  }

  /// Why the scores have to stay; empty: they do not.
  std::string obstacle() const {
    if (reached.contains(terminator()->getOperand(0)))
      return "the loss is made of its scores in another way, too";
    for (Operation *op : ops)
      if (!isPure(op))
        return "'" + nodeName(op->getLoc()) + "' reads its scores";
    return "";
  }

  /// Returns whether anything was returned of the scores.
  bool run(ModuleOp module) {
    Operation *end = terminator();
    SmallVector<Value> left;
    SmallVector<int64_t> numbers; // of kept values, -1 for those that go
    int64_t kept = 0;
    for (Value value : end->getOperands()) {
      const bool goes = reached.contains(value);
      if (!goes)
        left.push_back(value);
      if (cast<RankedTensorType>(value.getType()).getRank() > 0)
        numbers.push_back(goes ? -1 : kept++);
    }
    if (left.size() == end->getNumOperands())
      return false;
    end->setOperands(left);
    auto function = cast<func::FuncOp>(end->getParentOp());
    function.setType(Builder(end->getContext()).getFunctionType(function.getArgumentTypes(), end->getOperandTypes()));
    SmallVector<Operation *> inOrder(ops.begin(), ops.end());
    llvm::sort(inOrder, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
    for (Operation *op : inOrder)
      op->erase();
    renumber(module, numbers);
    return true;
  }

private:
  Operation *terminator() const { return region.loss->getBlock()->getTerminator(); }

  void follow(Value value) {
    if (!reached.insert(value).second)
      return;
    for (Operation *user : value.getUsers()) {
      if (region.contains(user) || user->hasTrait<OpTrait::IsTerminator>())
        continue;
      ops.insert(user);
      for (Value result : user->getResults())
        follow(result);
    }
  }

  /// Outputs that are compared with a target stay without scores, see OutputAttr: programs count batches by it. Others
  /// are none any more.
  static void renumber(ModuleOp module, ArrayRef<int64_t> numbers) {
    SmallVector<OutputAttr> outputs;
    for (OutputAttr output : outputsOf(module)) {
      const int64_t number = output.getKept() < 0 ? -1 : numbers[static_cast<size_t>(output.getKept())];
      if (number >= 0 || output.getKept() < 0 || !output.getTarget().empty())
        outputs.push_back(OutputAttr::get(module.getContext(), output.getName(), output.getLoss(), output.getTarget(),
                                          output.getWeight(), number, output.getPart(), output.getProbabilities()));
    }
    setOutputs(module, outputs);
  }

  const RowRegion &region;
  llvm::DenseSet<Value> reached;
  llvm::SetVector<Operation *> ops;
};

/// Step 4: numbers forward ops anew, and lets backward ops have the number of the last one up to theirs.
void numberOps(func::FuncOp step) {
  Builder b(step.getContext());
  std::vector<int64_t> before; // old numbers, ascending, of those that are left
  for (Operation &op : step.getOps())
    if (isForward(&op))
      before.push_back(ordinalOf(&op));
  for (Operation &op : step.getOps()) {
    const int64_t old = ordinalOf(&op);
    if (old < 0)
      continue;
    const auto number = std::upper_bound(before.begin(), before.end(), old) - before.begin();
    if (isForward(&op))
      attr::set<attr::Forward>(&op, b.getI64IntegerAttr(number - 1));
    else
      attr::set<attr::Backward>(&op, b.getI64IntegerAttr(std::max<int64_t>(number - 1, 0)));
  }
}

struct Split : sluice::impl::SplitBase<Split> {
  using SplitBase::SplitBase;

  void runOnOperation() override {
    if (parts <= 1)
      return;
    if (failed(checkRunsBefore(getOperation(), "sluice-split", "sluice-fuse", llvm::IsaPred<FusedOp>)))
      return signalPassFailure();
    std::vector<RowRegion> regions;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SoftmaxCrossEntropyOp loss = largestLoss(function);
      if (!loss)
        return refuse(function,
                      "@" + function.getName() + " has no mean cross-entropy of scores without class weights");
      Result<RowRegion> region = rowRegionOf(loss);
      if (!region)
        return refuse(loss, "'" + nodeName(loss.getLoc()) + "': " + region.error());
      if (std::string why = obstacle(*region); !why.empty())
        return refuse(loss, "'" + nodeName(loss.getLoc()) + "': " + why);
      regions.push_back(std::move(*region));
    }
    for (RowRegion &region : regions)
      split(region);
  }

private:
  void refuse(Operation *op, const Twine &why) {
    op->emitError() << "cannot be computed in " << parts.getValue() << " parts: " << why;
    signalPassFailure();
  }

  std::string obstacle(const RowRegion &region) {
    if (parts > region.rows)
      return "it has " + std::to_string(region.rows) + " rows";
    const bool trains = region.gradient;
    if (Operation *reader = otherReader(region); reader && trains)
      return "'" + nodeName(reader->getLoc()) + "' reads its scores, too";
    if (std::string scores = Withdrawal(region).obstacle(); !trains && !scores.empty())
      return scores;
    return PartedRegion(region, parts).obstacle();
  }

  void split(RowRegion &region) {
    auto function = cast<func::FuncOp>(region.loss->getParentOp());
    ModuleOp module = getOperation();
    const Bucket largest = bucketsOf(module).back(); // which speaks for all of them
    const bool isOfLargest = llvm::is_contained({largest.step, largest.evaluate}, function.getName());
    const std::string node = nodeName((*llvm::find_if(region.forward, llvm::IsaPred<MatmulOp>))->getLoc());
    if (!region.gradient && Withdrawal(region).run(module)) {
      ++withdrawn;
      if (isOfLargest)
        function.emitRemark()
            << "scores in parts are not kept: the program predicts none, and evaluates the loss alone";
    }
    const int64_t rows = region.rows, columns = cast<RankedTensorType>(region.loss.getX().getType()).getDimSize(1);
    const bool trains = region.gradient;
    PartedRegion(region, parts).run();
    ++regions;
    if (!trains)
      return;
    numberOps(function);
    Builder b(module.getContext());
    if (isOfLargest)
      module->setAttr(
          partsAttribute,
          b.getStringAttr(
              (Twine(rows) + "x" + Twine(columns) + " scores of '" + node + "' in " + Twine(parts) + " parts").str()));
  }
};

} // namespace
