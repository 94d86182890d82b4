// SPDX-License-Identifier: Apache-2.0
// The pattern of attention, walked from its softmax: up to the product that gives the scores, down to the one that
// reads the probabilities, as long as nobody else reads what lies between.
#include "passes/AttentionScores.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// One softmax and what is around it. Nothing is changed until all of it has been found.
class AttentionPattern {
public:
  AttentionPattern(SoftmaxOp softmax, const Patterns &patterns)
      : softmax(softmax), scores(softmax.getType()), loc(softmax.getLoc()), patterns(patterns),
        chain(patterns, scores) {}

  /// All that could fail is looked at before make() changes anything. Leading dimensions must be equal: the fused op
  /// broadcasts neither keys nor values.
  bool replace(OpsMadeOnce &once) {
    const int64_t rank = scores.getRank();
    if (rank < 2 || static_cast<int64_t>(softmax.getAxis()) != rank - 1 || softmax.getLogarithm() || !findValues() ||
        !chain.find(softmax.getX()))
      return false;
    auto leading = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape().drop_back(2); };
    MatmulOp first = chain.product();
    for (Value factor : {first.getA(), first.getB(), second.getB()})
      if (leading(factor) != scores.getShape().drop_back(2))
        return false;
    make(once);
    return true;
  }

private:
  /// From the softmax down: the product with the values, maybe after a dropout and a guard of rows that see no key.
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
      if (!select || (select.getA() != p && select.getB() != p))
        continue;
      const bool turned = select.getA() == p; // select(!isnan(p), p, 0)
      DenseFPElementsAttr other = patterns.constantOf(turned ? select.getB() : select.getA());
      if (other && other.isSplat() && other.getSplatValue<APFloat>().isZero() &&
          isNotNumber(select.getCondition(), p, turned) && llvm::range_size(p.getUses()) == 3)
        return select;
    }
    return {};
  }
  /// Whether the condition says that p is no number, or that it is one where `turned`: p == p, negated as often as
  /// exporters do for casts.
  bool isNotNumber(Value condition, Value p, bool turned) const {
    for (bool negated = false; condition.hasOneUse(); negated = !negated) {
      auto compare = condition.getDefiningOp<CompareOp>();
      if (!compare || compare.getPredicate() != Comparison::Equal)
        return false;
      if (compare.getA() == p && compare.getB() == p)
        return negated != turned;
      if (patterns.number(compare.getB()) != 0.0)
        return false;
      condition = compare.getA();
    }
    return false;
  }

  static bool isPlain(MatmulOp product) { return !product.getBias() && product.getAlpha().convertToDouble() == 1; }

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

  /// In front of the second product, where all that it reads is there. Scales of queries and keys go into the one of
  /// the scores. Masks that several layers compute alike are made once, by `once`.
  void make(OpsMadeOnce &once) {
    OpBuilder b(second);
    MatmulOp first = chain.product();
    double ofQueries, ofKeys;
    Value queries = patterns.unscaled(first.getA(), ofQueries), keys = patterns.unscaled(first.getB(), ofKeys);
    if (!first.getTransposeB())
      keys = transposed(b, keys);
    Value values = second.getTransposeB() ? transposed(b, second.getB()) : second.getB();
    const AttentionScores made = chain.make(b, once);
    SmallVector<Value> masks;
    for (Value mask : {made.added, made.kept})
      if (mask)
        masks.push_back(mask);
    const auto scale = static_cast<float>(made.factor * ofQueries * ofKeys);
    auto attention =
        AttentionOp::create(b, loc, queries, keys, values, masks, b.getF32FloatAttr(scale), b.getBoolAttr(made.causal),
                            dropout ? dropout.getRatioAttr() : b.getF32FloatAttr(0),
                            dropout ? dropout.getKeyAttr() : b.getI64IntegerAttr(0), ViewAttr(), ViewAttr(), ViewAttr(),
                            DenseI64ArrayAttr());
    second.getY().replaceAllUsesWith(attention.getY());
    Patterns::eraseUnused(second);
  }

  SoftmaxOp softmax;
  RankedTensorType scores;
  Location loc;
  const Patterns &patterns;
  ScoreChain chain;
  MatmulOp second;
  DropoutOp dropout;
};

} // namespace

int sluice::recomposeAttention(ModuleOp module, const Patterns &patterns) {
  SmallVector<SoftmaxOp> found;
  module.walk([&](SoftmaxOp op) { found.push_back(op); });
  int made = 0;
  OpsMadeOnce masks;
  for (SoftmaxOp softmax : found)
    made += AttentionPattern(softmax, patterns).replace(masks);
  return made;
}
