// SPDX-License-Identifier: Apache-2.0
// Attention reads and writes its tensors where they stand. What exporters put between a projection and its heads,
// reshapes, transposes and slices, only renames elements: walked from the operand of train.attention up to the tensor
// that a product or a sum wrote, they are one view of it, with a step for each dimension. The gradient goes back
// through the same view, so that no copy of it is made either.
#include "passes/MovedElements.h"
#include "passes/Patterns.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// A tensor from which an operand may be read.
struct Source {
  Value tensor;
  ViewAttr view;
};

/// Those of an operand, from itself, without a view, up.
SmallVector<Source> sourcesOf(Value operand) {
  SmallVector<Source> sources{{operand, {}}};
  SmallVector<Operation *> path;
  for (Operation *op = operand.getDefiningOp(); MovedElements::isMovement(op); op = op->getOperand(0).getDefiningOp()) {
    path.push_back(op);
    Value from = op->getOperand(0);
    MovedElements moved(cast<RankedTensorType>(from.getType()));
    if (!llvm::all_of(llvm::reverse(path), [&](Operation *step) { return moved.through(step); }))
      continue; // a slice of a slice may be none, and a slice further up one
    if (ViewAttr view = moved.view(operand.getContext()))
      sources.push_back({from, view});
  }
  return sources;
}

/// Puts the operand where most movement is saved: its farthest source such that the views on each tensor cover it.
class Reader {
public:
  explicit Reader(AttentionOp attention) : op(attention) {}

  bool rewrite() {
    // Batch and head are what cuDNN takes steps of.
    if (cast<RankedTensorType>(op.getQ().getType()).getRank() > 4)
      return false;
    for (unsigned i = 0; i < 3; ++i)
      sources[i] = sourcesOf(op->getOperand(i));
    bool any = shareAll() || shareKeysAndValues();
    for (unsigned i = 0; i < 3; ++i)
      if (!taken[i])
        any |= takeFarthest(i);
    return orderResult() | any;
  }

private:
  bool shareAll() { return share({0, 1, 2}); }
  bool shareKeysAndValues() { return share({1, 2}); }

  /// Lets these operands be parts of one tensor, the farthest that all have a view of, if together they cover it: their
  /// gradients then are one tensor, which the kernel writes through the same views.
  bool share(ArrayRef<unsigned> operands) {
    for (const Source &first : llvm::reverse(sources[operands.front()])) {
      SmallVector<Source> group{first};
      for (unsigned i : operands.drop_front())
        for (const Source &other : sources[i])
          if (other.tensor == first.tensor && other.view && first.view)
            group.push_back(other);
      if (group.size() == operands.size() && covers(group)) {
        for (auto [i, source] : llvm::zip(operands, group))
          take(i, source);
        return true;
      }
    }
    return false;
  }

  /// The view that a single operand takes, if it saves a copy. What covers a tensor alone is all of it in another
  /// order.
  bool takeFarthest(unsigned i) {
    for (const Source &source : llvm::reverse(sources[i]))
      if (source.view && covers({source})) {
        if (isRowMajor(source.view)) // reshapes cost nothing
          return false;
        take(i, source);
        return true;
      }
    return false;
  }

  static bool isRowMajor(ViewAttr view) {
    int64_t step = 1;
    for (size_t i = view.getSteps().size(); i-- > 0;)
      if (view.getSteps()[i] != (step *= view.getShape()[i + 1]))
        return false;
    return true;
  }

  static bool covers(ArrayRef<Source> group) {
    SmallVector<ViewAttr> views = llvm::map_to_vector(group, [](const Source &s) { return s.view; });
    return coverOnce(views, cast<RankedTensorType>(group.front().tensor.getType()).getNumElements());
  }

  void take(unsigned i, const Source &source) {
    taken[i] = true;
    Operation *before = op->getOperand(i).getDefiningOp();
    op->setOperand(i, source.tensor);
    setView(i, source.view);
    Patterns::eraseUnused(before);
  }
  void setView(unsigned i, ViewAttr view) {
    i == 0 ? op.setQViewAttr(view) : i == 1 ? op.setKViewAttr(view) : op.setVViewAttr(view);
  }

  /// The transpose that alone reads the result, where it leaves rows as they are.
  bool orderResult() {
    auto transpose = Patterns::onlyReader<TransposeOp>(op.getY());
    if (!transpose || transpose.getPermutation().back() != transpose.getType().getRank() - 1)
      return false;
    op.setYOrder(transpose.getPermutation());
    op.getY().setType(cast<RankedTensorType>(transpose.getY().getType()));
    transpose.getY().replaceAllUsesWith(op.getY());
    transpose.erase();
    return true;
  }

  AttentionOp op;
  std::array<SmallVector<Source>, 3> sources;
  std::array<bool, 3> taken = {};
};

} // namespace

int sluice::readAttentionInPlace(ModuleOp module) {
  SmallVector<AttentionOp> found;
  module.walk([&](AttentionOp op) { found.push_back(op); });
  int made = 0;
  for (AttentionOp op : found)
    made += Reader(op).rewrite();
  return made;
}
