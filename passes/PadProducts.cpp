// SPDX-License-Identifier: Apache-2.0
// pad-products, for each product with weights that a train.cast made of a variable, if its columns are many and no
// multiple of what engines read at a time:
//  1. follow what has one of these columns from the cast on: logits, their gradient, the products of both;
//  2. if all that read it can do without those that are added, give all of it more columns: zeros in the weights, which
//     the cast writes, and in the gradient, which train.loss_backward writes. A product that has as many of them as
//     the weights have is cut by a train.slice.
// After assign-precision, whose casts it widens, and before linearize, since pieces and what works in place follow from
// types. Without it cuBLASLt computes with the alignment of single halves, on an H200 in five to seven times the time.
#include "passes/Passes.h"
#include "passes/Reshapes.h"

#include "llvm/ADT/MapVector.h"

namespace sluice {
#define GEN_PASS_DEF_PADPRODUCTS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

RankedTensorType withExtent(RankedTensorType type, int64_t dimension, int64_t extent) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] = extent;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

/// What is in the places that are added to a value. Cut: zeros, which its readers do not see.
enum class Padding { Weights, Logits, Gradient, Cut };

struct Padded {
  int64_t dimension;
  Padding padding;
};

/// The weights of one product, and all that has their columns.
class Head {
public:
  Head(CastOp weights, int64_t dimension, int64_t wanted)
      : columns(typeOf(weights.getY()).getDimSize(dimension)), wanted(wanted) {
    padded[weights.getY()] = {dimension, Padding::Weights};
  }

  /// Step 1: whether everything that reads these columns can do with more of them.
  bool mayGrow() {
    for (size_t i = 0; i < padded.size(); ++i) { // which grows meanwhile
      const auto [value, how] = *(padded.begin() + i);
      if (how.padding == Padding::Cut)
        continue;
      for (OpOperand &use : value.getUses())
        if (!follow(use, how))
          return false;
    }
    return llvm::all_of(sums, [&](MatmulOp op) { return padded.contains(op.getA()) && padded.contains(op.getB()); }) &&
           llvm::all_of(added, [&](MatmulOp op) { return isAddedToCut(op); }) &&
           llvm::all_of(regions, [&](FusedOp op) { return mayGrow(op); });
  }

  /// Step 2.
  void grow() {
    for (OpOperand *row : rows)
      growRow(*row);
    for (auto [value, how] : padded) {
      value.setType(withExtent(typeOf(value), how.dimension, wanted));
      if (how.padding == Padding::Cut)
        cut(value, how.dimension);
    }
    for (Operation *loss : losses)
      loss->setAttr("classes", IntegerAttr::get(IntegerType::get(loss->getContext(), 64), columns));
  }

private:
  bool add(Value value, int64_t dimension, Padding padding) {
    return padded.insert({value, {dimension, padding}}).second ||
           (padded[value].dimension == dimension && padded[value].padding == padding);
  }

  /// Takes in what an op makes of a value that is to grow; false if the op cannot read more columns.
  bool follow(OpOperand &use, Padded how) {
    Operation *op = use.getOwner();
    if (auto product = dyn_cast<MatmulOp>(op))
      return followProduct(product, use, how);
    if (how.padding == Padding::Weights)
      return false;
    const int64_t last = typeOf(use.get()).getRank() - 1;
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      return how.dimension == last && endsInColumns(reshape.getY()) &&
             add(reshape.getY(), typeOf(reshape.getY()).getRank() - 1, how.padding);
    if (auto region = dyn_cast<FusedOp>(op)) {
      const Padding made = isOfGradient(region) ? Padding::Gradient : Padding::Logits;
      regions.insert(region);
      return how.dimension == last && region.getSums() == 0 && llvm::all_of(region.getResults(), [&](Value result) {
               return endsInColumns(result) && add(result, typeOf(result).getRank() - 1, made);
             });
    }
    if (auto sum = dyn_cast<SumToOp>(op); sum && how.padding == Padding::Gradient)
      return how.dimension == last &&
             (!endsInColumns(sum.getY()) || add(sum.getY(), typeOf(sum.getY()).getRank() - 1, Padding::Cut));
    return how.padding == Padding::Logits && use.getOperandNumber() == 0 && how.dimension == 1 && followLoss(op);
  }

  /// Whether an elementwise op reads the gradient of a loss, or what others make of it.
  static bool isOfGradient(FusedOp op) {
    return llvm::any_of(op.getInputs(), [](Value input) {
      const Value value = withoutReshapes(input);
      auto made = value.getDefiningOp<FusedOp>();
      return value.getDefiningOp<LossBackwardOp>() || (made && isOfGradient(made));
    });
  }

  /// Losses over classes know how many there are.
  bool followLoss(Operation *op) {
    auto gradient = dyn_cast<LossBackwardOp>(op);
    if (op->hasAttr("classes") || !(isa<SoftmaxCrossEntropyOp, CountCorrectOp>(op) ||
                                    (gradient && gradient.getLoss() == LossForm::SoftmaxCrossEntropy)))
      return false;
    losses.insert(op);
    return !gradient || add(gradient.getDx(), 1, Padding::Gradient);
  }

  /// A product sums over the columns, to which zeros add nothing where both of its factors have them, or has them in
  /// its result: logits, or the gradient of the weights.
  bool followProduct(MatmulOp op, OpOperand &use, Padded how) {
    const bool left = use.getOperandNumber() == 0, turned = left ? op.getTransposeA() : op.getTransposeB();
    const int64_t rank = typeOf(use.get()).getRank(), result = typeOf(op.getY()).getRank();
    if (use.getOperandNumber() > 1 || how.padding == Padding::Logits)
      return false;
    if (how.dimension == rank - (left == turned ? 2 : 1)) {
      sums.insert(op);
      return true;
    }
    if (how.padding == Padding::Gradient) {
      if (op.getBias())
        added.insert(op);
      return add(op.getY(), result - (left ? 2 : 1), Padding::Cut);
    }
    return !left && takesBias(op) && add(op.getY(), result - 1, Padding::Logits);
  }

  /// Whether a gradient of weights is added to another one that grows as well.
  bool isAddedToCut(MatmulOp op) const {
    const auto known = padded.find(op.getBias());
    return op.addsToMatrix() && known != padded.end() && known->second.padding == Padding::Cut;
  }

  bool takesBias(MatmulOp op) {
    if (!op.getBias() || !endsInColumns(op.getBias()))
      return true;
    rows.insert(&op.getBiasMutable()[0]);
    return op.addsRow();
  }

  /// A region runs over its results' shape: what else it reads has to broadcast to more columns, or to grow as well.
  /// What it makes of a gradient has to be 0 where that is. Draws would be others with more columns.
  bool mayGrow(FusedOp op) {
    if (llvm::any_of(op.getBody().front().without_terminator(), [](Operation &number) {
          return !isa<arith::ArithDialect, math::MathDialect>(number.getDialect());
        }))
      return false;
    for (auto [i, operand] : llvm::enumerate(op->getOpOperands())) {
      if (padded.contains(operand.get()) || !endsInColumns(operand.get()))
        continue;
      if (typeOf(operand.get()).getRank() != 1 || (op.isChannel(i) && typeOf(op.getResult(0)).getRank() > 2))
        return false;
      rows.insert(&operand);
    }
    return padded[op.getResult(0)].padding == Padding::Logits ||
           llvm::all_of(op.getBody().front().getTerminator()->getOperands(), [&](Value v) { return vanishes(op, v); });
  }

  /// Whether a number of a region is 0 where the gradients that the op reads are.
  bool vanishes(FusedOp op, Value number) {
    if (auto argument = dyn_cast<BlockArgument>(number)) {
      const auto known = padded.find(op->getOperand(argument.getArgNumber()));
      return known != padded.end() && known->second.padding == Padding::Gradient;
    }
    Operation *by = number.getDefiningOp();
    const auto is = [&](Value v) { return vanishes(op, v); };
    if (isa<arith::MulFOp>(by))
      return llvm::any_of(by->getOperands(), is);
    if (isa<arith::DivFOp>(by))
      return is(by->getOperand(0));
    return isa<arith::AddFOp, arith::SubFOp, arith::NegFOp>(by) && llvm::all_of(by->getOperands(), is);
  }

  bool endsInColumns(Value value) const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() > 0 && type.getShape().back() == columns;
  }

  /// A row that is added to all others: by its own cast, or by a copy.
  void growRow(OpOperand &row) {
    RankedTensorType type = typeOf(row.get()), grown = withExtent(type, type.getRank() - 1, wanted);
    if (auto made = row.get().getDefiningOp<CastOp>();
        made && made->hasOneUse() && typeOf(made.getX()).getShape() == type.getShape()) {
      made.getY().setType(grown);
      return;
    }
    OpBuilder b(row.getOwner());
    auto copy = PadSlabOp::create(b, row.getOwner()->getLoc(), grown, row.get(), type.getRank() - 1, 0);
    copyOrdinal(row.getOwner(), copy);
    row.set(copy.getDx());
  }

  /// For all but the gradients that are added to this one.
  void cut(Value value, int64_t dimension) {
    Operation *op = value.getDefiningOp();
    const auto seesAll = [&](OpOperand &use) {
      auto product = dyn_cast<MatmulOp>(use.getOwner());
      return product && use.getOperandNumber() == 2 && added.contains(product);
    };
    if (llvm::all_of(value.getUses(), seesAll))
      return;
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    auto kept = SliceOp::create(b, op->getLoc(), value, dimension, 0, columns);
    copyOrdinal(op, kept);
    value.replaceUsesWithIf(kept.getY(), [&](OpOperand &use) { return use.getOwner() != kept && !seesAll(use); });
  }

  int64_t columns, wanted;
  llvm::MapVector<Value, Padded> padded;
  llvm::SetVector<MatmulOp> sums;
  llvm::SetVector<MatmulOp> added; ///< to gradients that come before
  llvm::SetVector<FusedOp> regions;
  llvm::SetVector<Operation *> losses;
  llvm::SetVector<OpOperand *> rows;
};

struct PadProducts : sluice::impl::PadProductsBase<PadProducts> {
  using PadProductsBase::PadProductsBase;

  void runOnOperation() override {
    if (failed(checkRunsBefore(getOperation(), "sluice-pad-products", "sluice-linearize", attr::has<attr::Stage>)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (MatmulOp product : llvm::to_vector(function.getOps<MatmulOp>()))
        padded += pad(product);
  }

private:
  bool pad(MatmulOp product) const {
    auto weights = product.getB().getDefiningOp<CastOp>();
    if (!weights || !weights.getX().getDefiningOp<ReadOp>() || !isHalf(weights.getY().getType()) ||
        typeOf(weights.getY()).getRank() != 2 || typeOf(weights.getX()).getShape() != typeOf(weights.getY()).getShape())
      return false;
    const int64_t columns = typeOf(product.getY()).getShape().back();
    const auto wanted = static_cast<int64_t>(llvm::alignTo(columns, multiple));
    if (columns < fewest || columns % aligned == 0 || wanted == columns)
      return false;
    Head head(weights, product.getTransposeB() ? 0 : 1, wanted);
    if (!head.mayGrow())
      return false;
    head.grow();
    return true;
  }

  static constexpr int64_t aligned = 8; ///< halves, 16 bytes: what engines load at once
};

} // namespace
