// SPDX-License-Identifier: Apache-2.0
// See AttentionScores.h. Factors and masks are put together from the product down, as they follow each other.
#include "passes/AttentionScores.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// A number of which exp(score + number) is 0 in float32 beside a score that lacks it, and what may stand beside both.
constexpr double hidden = -1e4, slight = 1e3;

} // namespace

/// Masks of one kind are made once for all attentions that read equal ones. Locations do not count: each layer's nodes
/// have names of their own.
Value OpsMadeOnce::keepOne(Operation *op) {
  for (Operation *earlier : made)
    if (earlier->getBlock() == op->getBlock() && earlier->isBeforeInBlock(op) &&
        OperationEquivalence::isEquivalentTo(earlier, op, OperationEquivalence::IgnoreLocations)) {
      op->erase();
      return earlier->getResult(0);
    }
  made.push_back(op);
  return op->getResult(0);
}

/// From the softmax's operand up, as long as nobody else reads what is between: the fused op does not have it.
bool ScoreChain::find(Value value) {
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatmulOp>(op)) {
      first = product;
      return !product.getBias() && !product.getTransposeA() && markCausal();
    }
    if (!op || !addLink(op, value) || value.getType() != scores)
      return false;
  }
  return false;
}

/// Of the op that gives `value`, which becomes the scores that it takes.
bool ScoreChain::addLink(Operation *op, Value &value) {
  Link link;
  if (Value inner = patterns.unscaled(value, link.factor); inner != value) {
    value = inner;
  } else if (auto sum = dyn_cast<AddOp>(op)) {
    const unsigned side = leadsToProduct(sum.getA()) ? 0 : 1;
    link.number = sum->getOperand(1 - side);
    value = sum->getOperand(side);
    if (!isMask(link.number))
      return false;
  } else if (auto difference = dyn_cast<SubOp>(op)) {
    link.number = difference.getB();
    link.subtracts = true;
    value = difference.getA();
    if (!isMask(link.number))
      return false;
  } else if (auto select = dyn_cast<SelectOp>(op)) {
    link.keepsWhereTrue = leadsToProduct(select.getA());
    link.condition = select.getCondition();
    link.number = link.keepsWhereTrue ? select.getB() : select.getA();
    value = link.keepsWhereTrue ? select.getA() : select.getB();
    if (!isMask(link.condition) || !patterns.number(link.number))
      return false;
  } else {
    return false;
  }
  links.push_back(link);
  return true;
}

/// Whether a product gives the value, after factors and so many masks.
bool ScoreChain::leadsToProduct(Value value, int depth) const {
  double outer;
  for (Value inner; (inner = patterns.unscaled(value, outer)) != value;)
    value = inner;
  Operation *op = value.getDefiningOp();
  if (!op || value.getType() != scores || depth == 0)
    return false;
  const unsigned branch = isa<SelectOp>(op) ? 1 : 0; // after the condition
  return isa<MatmulOp>(op) ||
         (isa<AddOp, SubOp, SelectOp>(op) &&
          (leadsToProduct(op->getOperand(branch), depth - 1) || leadsToProduct(op->getOperand(branch + 1), depth - 1)));
}

bool ScoreChain::isMask(Value value) const {
  SmallVector<int64_t> out;
  auto type = cast<RankedTensorType>(value.getType());
  return broadcast(type.getShape(), scores.getShape(), out) && ArrayRef(out) == scores.getShape() &&
         patterns.hasNoParameters(value);
}

/// Every element is looked at, as exporters write masks out as constants: zero on and below the diagonal, something
/// above it. Constants of one matrix for all members alone count.
std::optional<double> ScoreChain::triangleOf(const Link &link) const {
  if (!link.number)
    return std::nullopt;
  const Value value = link.condition ? link.condition : link.number;
  auto type = cast<RankedTensorType>(value.getType());
  DenseFPElementsAttr constant = patterns.constantOf(value);
  const ArrayRef<int64_t> whole = scores.getShape().take_back(2);
  if (!constant || type.getRank() < 2 || type.getShape().take_back(2) != whole ||
      type.getNumElements() != whole[0] * whole[1])
    return std::nullopt;
  double largest = -HUGE_VAL;
  int64_t at = 0;
  for (const APFloat &element : constant.getValues<APFloat>()) {
    const double number = element.convertToDouble() * (link.subtracts ? -1 : 1);
    const bool above = at % whole[1] > at / whole[1];
    const bool hides = link.condition ? (number > 0) != link.keepsWhereTrue : number != 0;
    if (hides != above)
      return std::nullopt;
    if (above)
      largest = std::max(largest, link.condition ? *patterns.number(link.number) : number);
    ++at;
  }
  return largest;
}

/// How far the link may move scores: infinitely, but for a constant that is added.
double ScoreChain::shiftOf(const Link &link) const {
  if (!link.number)
    return 0;
  DenseFPElementsAttr constant = link.condition ? DenseFPElementsAttr() : patterns.constantOf(link.number);
  if (!constant)
    return HUGE_VAL;
  double shift = 0;
  for (const APFloat &number : constant.getValues<APFloat>())
    shift = std::max(shift, std::fabs(number.convertToDouble()));
  return shift;
}

/// Triangles of -infinity make it causal, unless other numbers take their place further down. One of finite numbers
/// hides only beside scores that are not hidden too: where no other mask may hide what it leaves. False where a factor
/// turns masks around.
bool ScoreChain::markCausal() {
  bool replaced = false;
  double outer = 1, shift = 0;                  // of what lies after a link, and of all that are no triangles
  SmallVector<std::optional<double>> triangles; // those that hide whatever they are added to
  for (const Link &link : links) {
    outer *= link.factor;
    if (link.number && !(outer > 0))
      return false;
    std::optional<double> &triangle = triangles.emplace_back(triangleOf(link));
    if (triangle && *triangle * outer > hidden)
      triangle.reset();
    shift += triangle ? 0 : shiftOf(link) * outer;
  }
  for (auto [link, triangle] : llvm::zip_equal(links, triangles)) {
    link.causal = triangle && !replaced && (*triangle == -HUGE_VAL || shift <= slight);
    replaced |= link.condition && !link.causal;
  }
  return true;
}

/// Of a mask that puts a number in the place of scores.
void ScoreChain::replace(OpBuilder &b, OpsMadeOnce &once, const Link &link, AttentionScores &made) const {
  MatmulOp product = first;
  const Location loc = product.getLoc();
  const Value zero = once.make<CompareOp>(b, loc, link.number, link.number, Comparison::Less);
  const Value inner = made.added ? made.added : zero;
  made.added = once.make<SelectOp>(b, loc, link.condition, link.keepsWhereTrue ? inner : link.number,
                                   link.keepsWhereTrue ? link.number : inner);
  if (*patterns.number(link.number) == -HUGE_VAL)
    return; // of probability 0, nothing goes back
  const Value kept = link.keepsWhereTrue ? link.condition
                                         : once.make<CompareOp>(b, loc, link.condition, zero, Comparison::LessOrEqual);
  made.kept = made.kept ? once.make<MulOp>(b, loc, made.kept, kept) : kept;
}

// From the product down, as scores are computed: a factor scales what was added in front of it, too.
AttentionScores ScoreChain::make(OpBuilder &b, OpsMadeOnce &once) const {
  AttentionScores made;
  MatmulOp product = first;
  const Location loc = product.getLoc();
  made.factor = product.getAlpha().convertToDouble();
  for (const Link &link : llvm::reverse(links)) {
    made.factor *= link.factor;
    if (made.added && link.factor != 1)
      made.added = once.make<ScaleOp>(b, loc, made.added, b.getF32FloatAttr(static_cast<float>(link.factor)));
    made.causal |= link.causal;
    if (!link.number || link.causal)
      continue;
    if (link.condition) {
      replace(b, once, link, made);
      continue;
    }
    const Value number = link.subtracts ? once.make<ScaleOp>(b, loc, link.number, b.getF32FloatAttr(-1)) : link.number;
    made.added = made.added ? once.make<AddOp>(b, loc, made.added, number) : number;
  }
  for (Value *mask : {&made.added, &made.kept}) // which has rank 1 or more
    if (*mask && cast<RankedTensorType>(mask->getType()).getRank() == 0)
      *mask = Patterns::reshaped(b, *mask, {1});
  return made;
}
