// SPDX-License-Identifier: Apache-2.0
// Batch and heads that were joined to one dimension, as nn.MultiheadAttention does where somebody may ask for weights,
// have no single step in a packed projection or in rows of [batch, sequence]. Taken apart again, they have one each.
#include "passes/MovedElements.h"
#include "passes/Patterns.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// One attention of rank 3, whose first dimension counts batch and heads together.
class Members {
public:
  explicit Members(AttentionOp attention) : op(attention) {}

  /// Nothing changes where no operand shows of what extents the dimension was joined.
  void unfold() {
    if (cast<RankedTensorType>(op.getQ().getType()).getRank() != 3)
      return;
    for (unsigned i = 0; i < 3 && extents.empty(); ++i)
      findExtents(op->getOperand(i));
    if (extents.empty())
      return;
    OpBuilder b(op);
    SmallVector<Value> masks;
    for (Value mask : op.getMasks())
      masks.push_back(unfolded(b, mask));
    Value v = unfolded(b, op.getV()), k = unfolded(b, op.getK()), q = unfolded(b, op.getQ());
    auto made =
        AttentionOp::create(b, op.getLoc(), q, k, v, masks, op.getScaleAttr(), op.getCausalAttr(), op.getRatioAttr(),
                            op.getKeyAttr(), ViewAttr(), ViewAttr(), ViewAttr(), DenseI64ArrayAttr());
    replaceResult(b, made.getY());
    op.erase();
  }

private:
  /// Of the first dimension, as they stand in the tensor farthest up from which only movements lead here.
  void findExtents(Value operand) {
    SmallVector<Operation *> path;
    for (Operation *up = operand.getDefiningOp(); MovedElements::isMovement(up);
         up = up->getOperand(0).getDefiningOp()) {
      path.push_back(up);
      MovedElements moved(cast<RankedTensorType>(up->getOperand(0).getType()));
      if (!llvm::all_of(llvm::reverse(path), [&](Operation *step) { return moved.through(step); }))
        continue;
      extents.clear();
      const auto factors = moved.factorsOf(0);
      if (factors.size() == 2)
        extents = {factors[0].extent, factors[1].extent};
    }
  }

  /// [batch * heads,..] becomes [batch,heads,..]; what broadcasts still does.
  Value unfolded(OpBuilder &b, Value value) const {
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    if (shape.size() < 3)
      return value;
    const bool whole = shape.front() == extents[0] * extents[1];
    shape.front() = whole ? extents[1] : 1;
    shape.insert(shape.begin(), whole ? extents[0] : 1);
    return Patterns::reshaped(b, value, shape);
  }

  /// A transpose after it becomes one of all four dimensions, so that attention may write in its order.
  void replaceResult(OpBuilder &b, Value y) {
    auto reshape = Patterns::onlyReader<ReshapeOp>(op.getY());
    if (reshape && reshape.getType() == y.getType()) {
      reshape.getY().replaceAllUsesWith(y);
      reshape.erase();
      return;
    }
    auto transpose = Patterns::onlyReader<TransposeOp>(op.getY());
    if (!transpose) {
      op.getY().replaceAllUsesWith(Patterns::reshaped(b, y, op.getY().getType().getShape()));
      return;
    }
    SmallVector<int64_t> permutation;
    for (int64_t i : transpose.getPermutation())
      if (i == 0)
        permutation.append({0, 1});
      else
        permutation.push_back(i + 1);
    Value turned = TransposeOp::create(b, transpose.getLoc(), y, permutation);
    transpose.getY().replaceAllUsesWith(Patterns::reshaped(b, turned, transpose.getType().getShape()));
    transpose.erase();
  }

  AttentionOp op;
  SmallVector<int64_t, 2> extents; ///< batch and heads
};

} // namespace

void sluice::unfoldHeads(ModuleOp module) {
  SmallVector<AttentionOp> found;
  module.walk([&](AttentionOp op) { found.push_back(op); });
  for (AttentionOp op : found)
    Members(op).unfold();
}
