// SPDX-License-Identifier: Apache-2.0
// The pattern of attention, walked from its softmax: up to the product that gives the scores, down to the one that
// reads the probabilities, as long as nobody else reads what lies between.
#include "passes/Patterns.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Numbers that masks put in place of scores, or add to them: exp(score) is 0 in float32 beside any other score.
constexpr double hidden = -1e4;

class AttentionPattern {
public:
  AttentionPattern(SoftmaxOp softmax, const Patterns &patterns)
      : softmax(softmax), scores(softmax.getType()), loc(softmax.getLoc()), patterns(patterns) {}

  bool replace() {
    const int64_t rank = scores.getRank();
    if (rank < 2 || static_cast<int64_t>(softmax.getAxis()) != rank - 1 || softmax.getLogarithm() || !findValues() ||
        !findScores(softmax.getX()))
      return false;
    auto leading = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape().drop_back(2); };
    for (Value factor : {first.getA(), first.getB(), second.getB()})
      if (leading(factor) != scores.getShape().drop_back(2))
        return false;
    make();
    return true;
  }

private:
  /// From the softmax down: the product with the values, maybe behind a dropout and a guard of rows that see no key.
  bool findValues() {
    Value probabilities = softmax.getY();
    if (SelectOp guarded = guardOf(probabilities))
      probabilities = guarded.getY();
    if (auto op = Patterns::onlyReader<DropoutOp>(probabilities); op && op.getGroup() == 1) {
      dropout = op;
      probabilities = op.getY();
    }
    second = Patterns::onlyReader<MatmulOp>(probabilities);
    return second && second.getA() == probabilities && isPlain(second) && !second.getTransposeA() &&
           second.getB() != probabilities;
  }

  /// select(isnan(p), 0, p), p being read by nothing else.
  SelectOp guardOf(Value p) const {
    for (Operation *user : p.getUsers()) {
      auto select = dyn_cast<SelectOp>(user);
      if (!select || select.getB() != p || patterns.number(select.getA()) != 0.0)
        continue;
      auto negated = select.getCondition().getDefiningOp<CompareOp>(); // (p == p) == 0
      auto equal = negated && negated.getPredicate() == Comparison::Equal && patterns.number(negated.getB()) == 0.0
                       ? negated.getA().getDefiningOp<CompareOp>()
                       : CompareOp();
      if (equal && equal.getPredicate() == Comparison::Equal && equal.getA() == p && equal.getB() == p &&
          negated->hasOneUse() && equal->hasOneUse() && llvm::range_size(p.getUses()) == 3)
        return select;
    }
    return {};
  }

  static bool isPlain(MatmulOp product) { return !product.getBias() && product.getAlpha().convertToDouble() == 1; }

  /// From the softmax up: scale, masks that are added or put in place, the product of queries and keys.
  bool findScores(Value value) {
    while (value.hasOneUse()) {
      double outer;
      if (auto product = value.getDefiningOp<MatmulOp>()) {
        first = product;
        factor *= product.getAlpha().convertToDouble();
        return !product.getBias() && !product.getTransposeA();
      }
      Value inner = patterns.unscaled(value, outer);
      if (inner != value) {
        factor *= outer;
        value = inner;
      } else if (auto sum = value.getDefiningOp<AddOp>()) {
        const unsigned side = leadsToProduct(sum.getA()) ? 0 : 1;
        if (factor != 1 || !addMask(sum->getOperand(1 - side))) // a factor outside would be the mask's, too
          return false;
        value = sum->getOperand(side);
      } else if (auto select = value.getDefiningOp<SelectOp>()) {
        const bool kept = leadsToProduct(select.getA());
        if (factor != 1 || !replaceMask(select, kept))
          return false;
        value = kept ? select.getA() : select.getB();
      } else {
        return false;
      }
      if (value.getType() != scores)
        return false;
    }
    return false;
  }

  /// Whether a product gives the value, behind a scale and so many masks.
  bool leadsToProduct(Value value, int depth = 4) const {
    double outer;
    Operation *op = patterns.unscaled(value, outer).getDefiningOp();
    if (!op || value.getType() != scores || depth == 0)
      return false;
    const unsigned branch = isa<SelectOp>(op) ? 1 : 0; // behind the condition
    return isa<MatmulOp>(op) || (isa<AddOp, SelectOp>(op) && (leadsToProduct(op->getOperand(branch), depth - 1) ||
                                                              leadsToProduct(op->getOperand(branch + 1), depth - 1)));
  }

  bool broadcastsToScores(Value value) const {
    SmallVector<int64_t> out;
    auto type = cast<RankedTensorType>(value.getType());
    return type.getRank() >= 1 && broadcast(type.getShape(), scores.getShape(), out) &&
           ArrayRef(out) == scores.getShape();
  }

  bool addMask(Value added) {
    if (!broadcastsToScores(added) || !patterns.hasNoParameters(added))
      return false;
    if (isTriangle(added, [](double number) { return number == 0; }, [](double number) { return number <= hidden; })) {
      causal = true;
      return true;
    }
    if (mask || condition)
      return false;
    mask = added;
    return true;
  }

  /// Of select(condition, scores, number), or with scores and number exchanged.
  bool replaceMask(SelectOp select, bool kept) {
    std::optional<double> number = patterns.number(kept ? select.getB() : select.getA());
    Value where = select.getCondition();
    if (!number || !(*number <= hidden) || !broadcastsToScores(where) || !patterns.hasNoParameters(where))
      return false;
    auto seen = [kept](double truth) { return (truth > 0) == kept; };
    if (isTriangle(where, seen, [&](double truth) { return !seen(truth); })) {
      causal = true;
      return true;
    }
    if (mask || condition)
      return false;
    condition = select;
    return true;
  }

  /// A constant that is `seen` on and below the diagonal and `unseen` above it, for all members.
  template <typename Seen, typename Unseen> bool isTriangle(Value value, Seen seen, Unseen unseen) const {
    auto type = cast<RankedTensorType>(value.getType());
    DenseFPElementsAttr constant = patterns.constantOf(value);
    const ArrayRef<int64_t> whole = scores.getShape().take_back(2);
    if (!constant || type.getRank() < 2 || type.getShape().take_back(2) != whole ||
        type.getNumElements() != whole[0] * whole[1])
      return false;
    int64_t at = 0;
    for (const APFloat &number : constant.getValues<APFloat>()) {
      const bool below = at % whole[1] <= at / whole[1];
      if (below ? !seen(number.convertToDouble()) : !unseen(number.convertToDouble()))
        return false;
      ++at;
    }
    return true;
  }

  /// The matrices of a product's factor, transposed.
  Value transposed(OpBuilder &b, Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    const auto rank = static_cast<size_t>(type.getRank());
    SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    std::swap(last[rank - 2], last[rank - 1]);
    if (auto transpose = value.getDefiningOp<TransposeOp>()) {
      SmallVector<int64_t> permutation(transpose.getPermutation());
      std::swap(permutation[rank - 2], permutation[rank - 1]);
      if (llvm::is_sorted(permutation))
        return transpose.getX();
      return TransposeOp::create(b, loc, transpose.getX(), permutation);
    }
    // Exporters fold leading dimensions for a transpose of rank 3.
    auto reshape = value.getDefiningOp<ReshapeOp>();
    auto transpose = reshape ? reshape.getX().getDefiningOp<TransposeOp>() : TransposeOp();
    if (transpose && transpose.getPermutation() == ArrayRef<int64_t>{0, 2, 1} && rank >= 2 &&
        transpose.getType().getShape().take_back(2) == type.getShape().take_back(2)) {
      SmallVector<int64_t> shape(type.getShape());
      std::swap(shape[rank - 2], shape[rank - 1]);
      Value x = transpose.getX();
      if (auto folded = x.getDefiningOp<ReshapeOp>())
        x = folded.getX();
      return Patterns::reshaped(b, x, shape);
    }
    return TransposeOp::create(b, loc, value, last);
  }

  /// 0 where the condition of a mask shows a score, its number elsewhere.
  Value maskOf(OpBuilder &b) const {
    SelectOp select = condition;
    const bool kept = !patterns.number(select.getA()).has_value();
    Value number = kept ? select.getB() : select.getA();
    Value zero = CompareOp::create(b, loc, number, number, Comparison::Less);
    return SelectOp::create(b, loc, select.getCondition(), kept ? zero : select.getA(), kept ? select.getB() : zero);
  }

  void make() {
    OpBuilder b(second);
    double ofQueries, ofKeys;
    Value queries = patterns.unscaled(first.getA(), ofQueries), keys = patterns.unscaled(first.getB(), ofKeys);
    if (!first.getTransposeB())
      keys = transposed(b, keys);
    Value values = second.getTransposeB() ? transposed(b, second.getB()) : second.getB();
    if (condition)
      mask = maskOf(b);
    const auto scale = static_cast<float>(factor * ofQueries * ofKeys);
    auto attention = AttentionOp::create(b, loc, queries, keys, values, mask, b.getF32FloatAttr(scale),
                                         b.getBoolAttr(causal), dropout ? dropout.getRatioAttr() : b.getF32FloatAttr(0),
                                         dropout ? dropout.getKeyAttr() : b.getI64IntegerAttr(0), ViewAttr(),
                                         ViewAttr(), ViewAttr(), DenseI64ArrayAttr());
    second.getY().replaceAllUsesWith(attention.getY());
    Patterns::eraseUnused(second);
  }

  SoftmaxOp softmax;
  RankedTensorType scores;
  Location loc;
  const Patterns &patterns;
  MatmulOp first, second;
  DropoutOp dropout;
  double factor = 1;
  bool causal = false;
  Value mask;
  SelectOp condition;
};

} // namespace

int sluice::recomposeAttention(ModuleOp module, const Patterns &patterns) {
  SmallVector<SoftmaxOp> found;
  module.walk([&](SoftmaxOp op) { found.push_back(op); });
  int made = 0;
  for (SoftmaxOp softmax : found)
    made += AttentionPattern(softmax, patterns).replace();
  return made;
}
