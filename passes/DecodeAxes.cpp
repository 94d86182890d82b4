// SPDX-License-Identifier: Apache-2.0
// One rule for each kind of op: where an axis of its result stands in its operands. What no rule knows mixes tokens.
#include "passes/DecodeAxes.h"

#include "runtime/Tensor.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

std::optional<TensorAxis> sluice::axisOf(ArrayRef<int64_t> shape, int64_t step, int64_t count) {
  if (count == 1)
    return TensorAxis{0, shape.empty() ? 1 : shape[0], 1};
  int64_t below = 1;
  for (size_t dim = shape.size(); dim-- > 0; below *= shape[dim])
    if (step % below == 0 && shape[dim] % (step / below * count) == 0)
      return TensorAxis{dim, shape[dim] / (step / below * count), step / below};
  return std::nullopt;
}

int64_t sluice::stepOf(ArrayRef<int64_t> shape, const TensorAxis &axis) {
  int64_t step = axis.inner;
  for (int64_t extent : shape.drop_front(axis.dim + 1))
    step *= extent;
  return step;
}

SmallVector<int64_t> sluice::shapeAt(ArrayRef<int64_t> shape, const TensorAxis &axis) {
  SmallVector<int64_t> at(shape);
  at[axis.dim] = axis.outer * axis.inner;
  return at;
}

namespace {

/// An op that works on each element alone, whatever shape these have.
bool worksOnElements(Operation *op) {
  if (isa<CastOp>(op))
    return true;
  auto elementwise = dyn_cast<Elementwise>(op);
  if (!elementwise || op->getNumResults() != 1 || op->hasAttr("key") || elementwise.isSumResult(0))
    return false;
  return llvm::none_of(op->getOpOperands(),
                       [&](OpOperand &use) { return elementwise.isChannelOperand(use.getOperandNumber()); });
}

/// Of an op whose first result `need` is about, which is a token of each text.
class TokenRule {
public:
  TokenRule(Operation *op, const Need &need, const TextExtents &extents)
      : op(op), axes(need.axes), e(extents), y(shapeOf(op->getResult(0))) {}

  NeededOperands find() {
    if (worksOnElements(op))
      readAligned();
    else if (isa<ReshapeOp>(op))
      readReshaped();
    else if (auto transpose = dyn_cast<TransposeOp>(op))
      readTransposed(transpose.getPermutation());
    else if (isa<SliceOp, ConcatOp, SoftmaxOp>(op))
      readAlong(op->getAttrOfType<IntegerAttr>("axis").getInt());
    else if (auto norm = dyn_cast<LayerNormOp>(op))
      axes.tokens.dim == 0 ? (token(norm.getX(), axes), whole(norm.getScale()), whole(norm.getBias())) : mixes();
    else if (isa<SumToOp, BroadcastToOp>(op))
      readAligned();
    else if (auto product = dyn_cast<MatmulOp>(op))
      readFactors(product);
    else if (auto table = dyn_cast<EmbeddingOp>(op))
      readIds(table);
    else
      mixes();
    return std::move(needed);
  }

private:
  void mixes() { needed.why = "mixes tokens in a way that no cache of keys and values stands for"; }
  void whole(Value value) { needed.values.push_back({value, {Need::Whole}}); }
  /// Of an operand that depends on the texts, or has rows for places.
  void token(Value value, const TextAxes &at) {
    if (e.dependent.contains(value))
      needed.values.push_back({value, {Need::Token, at}});
    else
      row(value, at.tokens.dim, shapeOf(value).size(), at);
  }
  void row(Value value, size_t dim, size_t rank, const TextAxes &at) {
    const size_t missing = rank - shapeOf(value).size();
    const int64_t first = missing ? 1 : shapeOf(value)[0];
    const bool textsFirst = e.texts == 1 || (at.texts.dim == 0 && at.texts.isWhole());
    if (!at.tokens.isWhole() || dim < 1 || !textsFirst || (first != 1 && first != e.texts))
      needed.why = "reads numbers of places that do not stand one behind the other for each text";
    else
      needed.values.push_back({value, {Need::Row, {}, dim, rank}});
  }

  /// By numpy's rules, from the last dimension on; of train.sum_to the operand is the larger one.
  void readAligned() {
    for (Value operand : op->getOperands()) {
      const ArrayRef<int64_t> x = shapeOf(operand);
      const auto shift = static_cast<int64_t>(x.size()) - static_cast<int64_t>(y.size());
      const int64_t dim = static_cast<int64_t>(axes.tokens.dim) + shift,
                    texts = static_cast<int64_t>(axes.texts.dim) + shift;
      const bool has = dim >= 0 && x[dim] == y[axes.tokens.dim];
      if (!has)
        whole(operand);
      else if (!e.dependent.contains(operand))
        shift > 0 ? mixes() : row(operand, axes.tokens.dim, y.size(), axes);
      else if (e.texts > 1 && (texts < 0 || x[texts] != y[axes.texts.dim]))
        mixes();
      else
        token(operand, {at(axes.tokens, dim), at(axes.texts, texts)});
    }
  }
  static TensorAxis at(TensorAxis axis, int64_t dim) {
    axis.dim = static_cast<size_t>(dim);
    return axis;
  }

  void readReshaped() {
    const Value x = op->getOperand(0);
    const auto tokens = axisOf(shapeOf(x), stepOf(y, axes.tokens), e.tokens),
               texts = axisOf(shapeOf(x), stepOf(y, axes.texts), e.texts);
    tokens &&texts ? token(x, {*tokens, *texts}) : mixes();
  }

  void readTransposed(ArrayRef<int64_t> permutation) {
    token(op->getOperand(0),
          {at(axes.tokens, permutation[axes.tokens.dim]), at(axes.texts, permutation[axes.texts.dim])});
  }

  /// An op that works along one dimension.
  void readAlong(int64_t axis) {
    const auto dim = static_cast<size_t>(axis);
    if (dim == axes.tokens.dim || (dim == axes.texts.dim && e.texts > 1))
      return mixes();
    for (Value operand : op->getOperands())
      token(operand, axes);
  }

  /// y = op(a) op(b): the tokens are rows of a, columns of b, or matrices.
  void readFactors(MatmulOp product) {
    const size_t rank = y.size(), dim = axes.tokens.dim;
    const Value a = product.getA(), b = product.getB();
    const bool rows = dim + 2 == rank, columns = dim + 1 == rank;
    const auto isSame = [&](Value factor) { return !e.dependent.contains(factor); };
    if (rows && isSame(b))
      factor(a, product.getTransposeA(), rank), whole(b);
    else if (columns && isSame(a))
      whole(a), factor(b, product.getTransposeB(), rank);
    else if (!rows && !columns)
      factor(a, product.getTransposeA(), rank), factor(b, product.getTransposeB(), rank);
    else
      return mixes();
    if (Value bias = product.getBias())
      product.addsRow() && rows ? whole(bias) : mixes();
  }
  /// With the result's axes where it has them; its last two dimensions may be exchanged.
  void factor(Value value, bool transposed, size_t rank) {
    const ArrayRef<int64_t> x = shapeOf(value);
    const auto place = [&](const TensorAxis &axis) -> int64_t {
      const bool isMatrix = axis.dim + 2 >= rank;
      const size_t dim = isMatrix && transposed ? (axis.dim + 2 == rank ? rank - 1 : rank - 2) : axis.dim;
      return static_cast<int64_t>(dim) - static_cast<int64_t>(rank - x.size());
    };
    const int64_t tokens = place(axes.tokens), texts = place(axes.texts);
    if (tokens < 0 || x[tokens] != y[axes.tokens.dim])
      whole(value);
    else if (e.texts > 1 && (texts < 0 || x[texts] != y[axes.texts.dim]))
      mixes();
    else
      token(value, {at(axes.tokens, tokens), at(axes.texts, texts)});
  }

  void readIds(EmbeddingOp table) {
    const size_t rank = shapeOf(table.getIds()).size();
    if (axes.tokens.dim >= rank || (e.texts > 1 && axes.texts.dim >= rank))
      return mixes();
    whole(table.getTable());
    token(table.getIds(), axes);
  }

  Operation *op;
  const TextAxes axes;
  const TextExtents &e;
  const ArrayRef<int64_t> y;
  NeededOperands needed;
};

/// The same elements in the same order, with other dimensions of extent 1.
bool changesOnesAlone(ReshapeOp reshape) {
  const auto others = [](Value value) {
    SmallVector<int64_t> list(shapeOf(value));
    llvm::erase(list, 1);
    return list;
  };
  return others(reshape.getX()) == others(reshape.getY());
}

/// Of a reshape that changes ones alone: what `need` of its result is of its operand.
Need rowsBefore(ReshapeOp reshape, const Need &need) {
  const ArrayRef<int64_t> y = shapeOf(reshape.getY()), x = shapeOf(reshape.getX());
  const size_t missing = need.rank - y.size();
  auto before = llvm::count_if(y.take_front(need.dim - missing), [](int64_t extent) { return extent != 1; });
  size_t dim = 0;
  for (; x[dim] == 1 || before-- > 0; ++dim)
    ;
  // One more dimension where the first is not that of texts.
  const bool textsFirst = dim > 0 && (x[0] == 1 || (!missing && y[0] == x[0]));
  return {Need::Row, {}, dim + (textsFirst ? 0 : 1), x.size() + (textsFirst ? 0 : 1)};
}

NeededOperands neededRows(Operation *op, const Need &need, const TextExtents &extents) {
  NeededOperands needed;
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    needed.values.push_back({reshape.getX(), rowsBefore(reshape, need)});
    return needed;
  }
  for (Value operand : op->getOperands()) {
    const ArrayRef<int64_t> x = shapeOf(operand);
    const size_t missing = need.rank - x.size();
    const bool has = need.dim >= missing && x[need.dim - missing] == extents.tokens;
    needed.values.push_back({operand, has ? need : Need{Need::Whole}});
  }
  return needed;
}

/// Whether an op may be computed for all places in each step: it makes masks and such of what the inputs brought.
bool isLight(Operation *op) {
  return worksOnElements(op) || isa<ReshapeOp, TransposeOp, SliceOp, ConcatOp, BroadcastToOp>(op);
}

} // namespace

bool sluice::passesRows(Operation *op, const Need &need, const TextExtents &extents) {
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    const ArrayRef<int64_t> y = shapeOf(reshape.getY()), x = shapeOf(reshape.getX());
    const bool ownTexts = y.size() == need.rank && y[0] != 1;
    return changesOnesAlone(reshape) && (!ownTexts || x[0] == y[0]) &&
           rowsBefore(reshape, need).rank <= sluice::Shape::maxRank;
  }
  return worksOnElements(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           const ArrayRef<int64_t> x = shapeOf(operand);
           return x.size() < need.rank || x[0] == 1 || x[0] == extents.texts;
         });
}

NeededOperands sluice::neededOperands(Operation *op, const Need &need, const TextExtents &extents) {
  if (need.kind == Need::Token)
    return TokenRule(op, need, extents).find();
  if (need.kind == Need::Row)
    return neededRows(op, need, extents);
  NeededOperands needed;
  if (extents.dependent.contains(op->getResult(0)) && !isLight(op))
    needed.why = "is read for all tokens at once";
  for (Value operand : op->getOperands())
    needed.values.push_back({operand, {Need::Whole}});
  return needed;
}
