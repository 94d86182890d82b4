// SPDX-License-Identifier: Apache-2.0
// The pattern of layer normalization, as exports before opset 17 write it, walked from its square root.
#include "passes/Patterns.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Around one square root: up to the variance, which says what x is, then down to the sum with the bias.
class LayerNormPattern {
public:
  LayerNormPattern(SqrtOp root, const Patterns &patterns) : root(root), patterns(patterns) {}

  /// LayerNorm's op takes rows, so that leading dimensions become one and come back after it.
  bool replace() {
    if (!findVariance() || !findResult())
      return false;
    auto type = cast<RankedTensorType>(x.getType());
    const int64_t columns = type.getShape().back();
    OpBuilder b(sum);
    const Location loc = root.getLoc();
    Value rows = Patterns::reshaped(b, x, {type.getNumElements() / columns, columns});
    auto norm = LayerNormOp::create(b, loc, rows, scale, bias, b.getF32FloatAttr(static_cast<float>(epsilon)));
    sum.getY().replaceAllUsesWith(Patterns::reshaped(b, norm.getY(), type.getShape()));
    Patterns::eraseUnused(sum);
    return true;
  }

private:
  /// What the mean over the last dimension is taken of; null for another value.
  Value averaged(Value mean) const {
    auto op = mean.getDefiningOp<SumToOp>();
    if (!op)
      return {};
    auto from = cast<RankedTensorType>(op.getX().getType());
    SmallVector<int64_t> shape(from.getShape());
    if (shape.empty())
      return {};
    const double share = 1 / static_cast<double>(std::exchange(shape.back(), 1));
    const bool fits = cast<RankedTensorType>(mean.getType()).getShape() == ArrayRef<int64_t>(shape);
    return fits && Patterns::isAbout(op.getFactor().convertToDouble(), share) ? op.getX() : Value();
  }
  /// The operand beside the one that is `known`; null where neither is.
  static Value other(Operation *op, Value known) {
    return op->getOperand(0) == known ? op->getOperand(1) : op->getOperand(1) == known ? op->getOperand(0) : Value();
  }

  /// Upwards: sqrt(mean((x - mean(x))^2) + epsilon).
  bool findVariance() {
    auto shifted = root.getX().getDefiningOp<AddOp>();
    for (int i = 0; shifted && i < 2; ++i) {
      std::optional<double> number = patterns.number(shifted->getOperand(1 - i));
      Value squares = averaged(shifted->getOperand(i));
      auto square = squares ? squares.getDefiningOp<MulOp>() : MulOp();
      if (!number || !square || square.getA() != square.getB())
        continue;
      difference = square.getA().getDefiningOp<SubOp>();
      if (!difference)
        continue;
      x = difference.getA();
      epsilon = *number;
      return isDifference(difference);
    }
    return false;
  }
  /// x - mean(x), which exports may write twice.
  bool isDifference(SubOp op) const { return op && op.getA() == x && averaged(op.getB()) == x; }
  bool isRow(Value value) const {
    return cast<RankedTensorType>(value.getType()).getShape() ==
           cast<RankedTensorType>(x.getType()).getShape().take_back(1);
  }

  /// Downwards: (x - mean) / sqrt * scale + bias, with the factors in any order.
  bool findResult() {
    Value product = root.getY();
    for (bool inverted = false; product.hasOneUse();) {
      Operation *op = *product.user_begin();
      if (!inverted && isa<ReciprocalOp>(op)) {
        inverted = true;
      } else if (auto quotient = dyn_cast<DivOp>(op); quotient && !inverted && quotient.getB() == product) {
        inverted = true;
        if (patterns.number(quotient.getA()) != 1.0 && !takeFactor(quotient.getA()))
          return false;
      } else if (inverted && isa<MulOp>(op)) {
        if (!takeFactor(other(op, product)))
          return false;
      } else {
        sum = dyn_cast<AddOp>(op);
        bias = sum ? other(sum, product) : Value();
        return bias && isRow(bias) && scale && centered;
      }
      product = op->getResult(0);
    }
    return false;
  }
  /// The difference, the scale, or their product; nobody else reads what goes.
  bool takeFactor(Value factor) {
    if (auto op = factor.getDefiningOp<SubOp>(); !centered && isDifference(op)) {
      // The square reads it twice, and the product what it is or another one like it.
      const auto readers = llvm::range_size(difference.getY().getUses());
      return centered = op == difference ? readers == 3 : readers == 2 && factor.hasOneUse();
    }
    if (!scale && isRow(factor)) {
      scale = factor;
      return true;
    }
    auto product = factor.getDefiningOp<MulOp>();
    return product && factor.hasOneUse() && takeFactor(product.getA()) && takeFactor(product.getB());
  }

  SqrtOp root;
  const Patterns &patterns;
  SubOp difference;
  AddOp sum;
  Value x, scale, bias;
  double epsilon = 0;
  bool centered = false; ///< the difference is among the factors
};

} // namespace

int sluice::recomposeLayerNorms(ModuleOp module, const Patterns &patterns) {
  SmallVector<SqrtOp> found;
  module.walk([&](SqrtOp op) { found.push_back(op); });
  int made = 0;
  for (SqrtOp root : found)
    made += LayerNormPattern(root, patterns).replace();
  return made;
}
