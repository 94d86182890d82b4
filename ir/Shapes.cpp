// SPDX-License-Identifier: Apache-2.0
// Ops that move, repeat or add up elements: joins, slabs, views, orders, types, broadcasts.
#include "ir/Joins.h"
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

// Operands have one rank and agree in all dimensions but the joined one, whose extents add up.
INFER(ConcatOp) {
  if (op.getXs().empty())
    return fail(loc, "concat of nothing");
  auto first = ranked(op.getXs().front());
  auto axis = op.getAxis();
  SmallVector<int64_t> shape(first.getShape());
  if (axis >= shape.size())
    return fail(loc, "concat axis ", axis, " of ", first);
  shape[axis] = 0;
  for (Value x : op.getXs()) { // C1
    auto type = ranked(x);
    for (size_t i = 0; i < shape.size(); ++i)
      if (type.getRank() != first.getRank() || (i != axis && type.getDimSize(i) != shape[i]))
        return fail(loc, "concat of ", first, " and ", type, " along dimension ", axis);
    shape[axis] += type.getDimSize(axis);
  }
  types.push_back(like(first, shape));
  return success();
}

INFER(SliceOp) {
  auto x = ranked(op.getX());
  int64_t axis = op.getAxis(), start = op.getStart(), length = op.getLength();
  if (axis < 0 || axis >= x.getRank() || start < 0 || length < 1 || start > x.getDimSize(axis) - length) // C1
    return fail(loc, "slice [", start, ", ", start, " + ", length, ") of dimension ", axis, " of ", x);
  SmallVector<int64_t> shape(x.getShape());
  shape[axis] = length;
  types.push_back(like(x, shape));
  return success();
}

INFER(TransposeOp) {
  auto x = ranked(op.getX());
  SmallVector<int64_t> shape, seen(op.getPermutation());
  llvm::sort(seen);
  if (seen != llvm::to_vector(llvm::seq<int64_t>(0, x.getRank()))) // C1
    return fail(loc, "transpose of ", x, " by something that is no permutation of its dimensions");
  for (int64_t i : op.getPermutation())
    shape.push_back(x.getDimSize(i));
  types.push_back(RankedTensorType::get(shape, x.getElementType()));
  return success();
}

/// Channels-last bytes are in another order, so that only reshapes that leave the channels alone are views of them.
LogicalResult ReshapeOp::verify() {
  if (elements(getX().getType()) != elements(getY().getType())) // C1
    return emitOpError() << "reshapes " << elements(getX().getType()) << " elements into "
                         << elements(getY().getType());
  auto x = ranked(getX()), y = ranked(getY());
  const bool channelsLast = layoutOf(x) == LayoutKind::NHWC || layoutOf(y) == LayoutKind::NHWC;
  if (channelsLast && (layoutOf(x) != layoutOf(y) || !keepsChannels(x, y))) // C2
    return emitOpError() << "is no view of " << x << " as " << y;
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getXs().size() == 1 ? OpFoldResult(getXs().front()) : OpFoldResult();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getType() == getX().getType())
    return getX();
  // A part of a join, exactly: reversible blocks split what the one before put together.
  auto join = getX().getDefiningOp<ConcatOp>();
  int64_t at = 0;
  for (Value part : join &&join.getAxis() == getAxis() ? ValueRange(join.getXs()) : ValueRange()) {
    if (at == static_cast<int64_t>(getStart()) && part.getType() == getType())
      return part;
    at += ranked(part).getDimSize(getAxis());
  }
  return {};
}

// Of two reshapes the last one is all that counts.
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getType() == getX().getType())
    return getX();
  auto inner = getX().getDefiningOp<ReshapeOp>();
  if (!inner)
    return {};
  getXMutable().assign(inner.getX());
  return getResult();
}

/// Two transposes in a row become one, which takes the inner one's operand.
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (getType() == getX().getType() && llvm::is_sorted(getPermutation()))
    return getX();
  auto inner = getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  setPermutation(llvm::map_to_vector(getPermutation(), [&](int64_t i) { return inner.getPermutation()[i]; }));
  getXMutable().assign(inner.getX());
  return getResult();
}

OpFoldResult BroadcastToOp::fold(FoldAdaptor) {
  return getType() == getX().getType() && getFactor().isExactlyValue(1) ? OpFoldResult(getX()) : OpFoldResult();
}

LogicalResult ReorderOp::verify() {
  auto x = ranked(getX()), y = ranked(getY());
  if (x.getShape() != y.getShape() || x.getElementType() != y.getElementType()) // C1
    return emitOpError() << "changes more than the layout: " << x << " to " << y;
  return success();
}

static LogicalResult checkBroadcast(Operation *op, Type small, Type large) {
  SmallVector<int64_t> shape;
  auto from = cast<RankedTensorType>(small).getShape(), to = cast<RankedTensorType>(large).getShape();
  if (!broadcast(from, to, shape) || ArrayRef<int64_t>(shape) != to)
    return op->emitOpError() << small << " does not broadcast to " << large;
  return success();
}

LogicalResult BroadcastToOp::verify() { return checkBroadcast(*this, getX().getType(), getY().getType()); } // C1
LogicalResult SumToOp::verify() { return checkBroadcast(*this, getY().getType(), getX().getType()); }       // C1

SINGLE(SliceOp, PadSlabOp::create(b, getLoc(), getX().getType(), dy, getAxisAttr(), getStartAttr()))
SINGLE(ReshapeOp, ReshapeOp::create(b, getLoc(), getX().getType(), dy))
SINGLE(ReorderOp, ReorderOp::create(b, getLoc(), getX().getType(), dy))
SINGLE(BroadcastToOp, SumToOp::create(b, getLoc(), getX().getType(), dy, getFactorAttr()))
SINGLE(SumToOp, BroadcastToOp::create(b, getLoc(), getX().getType(), dy, getFactorAttr()))

// Integers move by steps.
LogicalResult CastOp::buildGradients(OpBuilder &, Gradients &) { return success(); }

GRADIENT(TransposeOp) {
  Value dy = gradients.of(getY());
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = to;
  if (dy && gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(), TransposeOp::create(b, getLoc(), dy, inverse));
  return success();
}

ConcatOp sluice::train::beginningOf(ConcatOp join) {
  ConcatOp most;
  const ValueRange all = join.getXs();
  for (Operation *user : all.front().getUsers()) {
    auto other = dyn_cast<ConcatOp>(user);
    if (!other || other.getAxis() != join.getAxis() || other.getXs().size() >= all.size() ||
        (most && other.getXs().size() <= most.getXs().size()))
      continue;
    if (other->getBlock() == join->getBlock() && other->isBeforeInBlock(join) &&
        llvm::equal(other.getXs(), all.take_front(other.getXs().size())))
      most = other;
  }
  return most;
}

// What an earlier join has gets its gradient through that one, whose own comes later: one slab and one sum for all of
// it, where each tensor would have as many as there are joins.
GRADIENT(ConcatOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  int64_t start = 0;
  auto take = [&](Value x) {
    const int64_t length = ranked(x).getDimSize(getAxis());
    if (gradients.wanted(x))
      gradients.add(b, getLoc(), x, SliceOp::create(b, getLoc(), dy, getAxis(), start, length));
    start += length;
  };
  ValueRange rest = getXs();
  if (ConcatOp beginning = beginningOf(*this)) {
    take(beginning.getY());
    rest = rest.drop_front(beginning.getXs().size());
  }
  for (Value x : rest)
    take(x);
  return success();
}

/// The gradient of train.slice: its types must be those of a slice of dx with these attributes.
LogicalResult PadSlabOp::verify() {
  ArrayRef<int64_t> dy = extents(getDy());
  if (getAxis() >= dy.size())
    return emitOpError() << "pads dimension " << getAxis() << " of " << getDy().getType();
  SliceOp::Properties p;
  p.axis = getAxisAttr(), p.start = getStartAttr();
  p.length = IntegerAttr::get(getStartAttr().getType(), dy[getAxis()]);
  return mirrors<SliceOp>(*this, {getDx()}, p, {getDy()});
}

static arguments::Slab slab(Slot large, Slot small, uint64_t axis, uint64_t start) {
  return {large, small, static_cast<int64_t>(axis), static_cast<int64_t>(start)};
}

KERNEL(ConcatOp) {
  SmallVector<Slot> xs;
  for (int64_t i = 0; i < static_cast<int64_t>(getXs().size()); ++i)
    xs.push_back(in(i));
  return KernelCalls(*this).function("join", out(0), ArrayRef<Slot>(xs), static_cast<int64_t>(getAxis()));
}

// A piece is contiguous where no dimension of more than one element is outside of the sliced one, and begins where a
// slot could, so that kernels find the alignment that they count on.
std::optional<int64_t> SliceOp::contiguousAt() {
  const RankedTensorType x = getX().getType(), y = getType();
  const size_t axis = getAxis();
  // With channels last, the batch alone is in front of all else.
  const bool outermost = layoutOf(x) == LayoutKind::NHWC
                             ? axis == 0
                             : llvm::all_of(x.getShape().take_front(axis), [](int64_t extent) { return extent == 1; });
  const int64_t first = bytes(y) / static_cast<int64_t>(getLength()) * static_cast<int64_t>(getStart());
  return outermost && first % slotAlignment == 0 ? std::optional(first) : std::nullopt;
}

bool SliceOp::sharesBytes() { return getPiece(); }
std::optional<int64_t> SliceOp::firstByte() { return contiguousAt(); }

LogicalResult SliceOp::verify() {
  if (getPiece() && !contiguousAt()) // C2
    return emitOpError() << "is no piece of " << getX().getType() << " that begins at a multiple of " << slotAlignment
                         << " bytes: it starts at " << getStart() << " of dimension " << getAxis();
  return success();
}

// No more than it takes out.
int64_t SliceOp::bytesMoved() { return 2 * bytes(getY().getType()); }

KERNEL(SliceOp) {
  return KernelCalls(*this).object(slab(in(0), out(0), getAxis(), getStart()), "extract", {in(0), out(0)});
}

// The slab alone is written by its copy: all around it is cleared first.
KERNEL(PadSlabOp) {
  return KernelCalls(*this)
      .function("clear", {out(0)})
      .object(slab(out(0), in(0), getAxis(), getStart()), "insert", {in(0), out(0)});
}

static Calls reorder(Operation *op, ArrayRef<int64_t> permutation = {}) {
  return KernelCalls(op).object(arguments::Reorder{in(0), out(0), Numbers(permutation)}, "run", {in(0), out(0)});
}

bool TransposeOp::sharesBytes() { return keepsOrder(getX().getType(), getY().getType(), getPermutation()); }
bool ReorderOp::sharesBytes() { return layoutsCoincide(cast<RankedTensorType>(getX().getType())); }

KERNEL(TransposeOp) { return reorder(*this, getPermutation()); }
KERNEL(ReorderOp) { return reorder(*this); }
KERNEL(CastOp) { return reorder(*this); }

StringRef CastOp::resultSuffix(unsigned, bool) { return attr::has<attr::Recompute>(*this) ? "" : "_cast"; }

KERNEL(SumToOp) {
  return KernelCalls(*this).object(arguments::SumTo{in(0), out(0), getFactor().convertToFloat()}, "run",
                                   {in(0), out(0), scratchSlot});
}

KERNEL(BroadcastToOp) {
  return KernelCalls(*this).object(arguments::BroadcastTo{in(0), out(0), getFactor().convertToFloat()}, "run",
                                   {in(0), out(0)});
}

PrecisionPreference SumToOp::precisionPreference() { return PrecisionPreference::Mixed; }
PrecisionPreference BroadcastToOp::precisionPreference() { return PrecisionPreference::Mixed; }
PrecisionPreference CastOp::precisionPreference() { return PrecisionPreference::Mixed; }

bool SumToOp::isResultWide(unsigned) { return true; }
// Integers keep more digits in f32, which P3 asks for.
bool CastOp::isResultWide(unsigned) { return !isReal(getX().getType()); }
bool CastOp::isOperandWide(unsigned) { return !isReal(getY().getType()); }

/// Whether y has more of one dimension than x, and nothing else that x has not: channels of an image, or of the weights
/// of one, or any dimension of a matrix or vector. assign-precision and pad-products make such casts, so that engines
/// on tensor cores find rows that they can read as they are.
static bool pads(RankedTensorType x, RankedTensorType y) {
  if (x.getRank() != y.getRank() || !x.getElementType().isF32() || !isHalf(y))
    return false;
  const bool image = x.getRank() >= 4;
  if (image ? layoutOf(y) != LayoutKind::NHWC : x.getRank() > 2)
    return false;
  int64_t longer = 0;
  for (int64_t d = 0; d < x.getRank(); ++d) {
    const bool differs = x.getDimSize(d) != y.getDimSize(d);
    if (differs && ((image && d != 1) || x.getDimSize(d) > y.getDimSize(d)))
      return false;
    longer += differs;
  }
  return longer == 1;
}

LogicalResult CastOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType()), y = cast<RankedTensorType>(getY().getType());
  const bool halves = isHalf(x) || isHalf(y);
  const bool fits = x.getShape() == y.getShape() || pads(x, y);                                   // C2
  if (!fits || x.getElementType() == y.getElementType() || (halves && !(isReal(x) && isReal(y)))) // C1
    return emitOpError() << "changes no element type, or more than that and the layout, or a half that is an integer: "
                         << x << " to " << y;
  return success();
}
