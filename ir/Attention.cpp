// SPDX-License-Identifier: Apache-2.0
// Attention and its gradients.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Steps and extents must be those of a row-major tensor in some order of its dimensions: the smallest step is 1, and
/// each next one is the product of the extents below it. Then no two indices meet, and what is left to compare is the
/// number of elements. Gaps and overlaps have no such steps.
bool train::coverOnce(ArrayRef<ViewAttr> views, int64_t elements) {
  ViewAttr first = views.front();
  SmallVector<int64_t> offsets;
  for (ViewAttr view : views) {
    if (view.getShape() != first.getShape() || view.getSteps() != first.getSteps())
      return false;
    offsets.push_back(view.getOffset());
  }
  llvm::sort(offsets);
  // As one view more: of so many parts, evenly apart.
  SmallVector<std::pair<int64_t, int64_t>> dims{{1, first.getShape().back()}}; // step, extent
  for (auto [step, extent] : llvm::zip_equal(first.getSteps(), first.getShape().drop_back()))
    dims.emplace_back(step, extent);
  if (offsets.size() > 1)
    dims.emplace_back(offsets[1] - offsets[0], offsets.size());
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != static_cast<int64_t>(i) * dims.back().first)
      return false;
  llvm::erase_if(dims, [](auto dim) { return dim.second == 1; });
  llvm::sort(dims);
  int64_t count = 1;
  for (auto [step, extent] : dims)
    if (step != count || llvm::MulOverflow(count, extent, count))
      return false;
  return count == elements;
}

/// An operand as attention sees it.
static RankedTensorType viewed(Value operand, ViewAttr view) {
  auto type = ranked(operand);
  return view ? RankedTensorType::get(view.getShape(), type.getElementType()) : type;
}
template <typename Op> static std::array<RankedTensorType, 3> factorsOf(Op op) {
  return {viewed(op.getQ(), op.getQViewAttr()), viewed(op.getK(), op.getKViewAttr()),
          viewed(op.getV(), op.getVViewAttr())};
}

/// Of q, k and v: the number of the gradient that is its own or shared.
using GradientNumbers = std::array<int64_t, 3>;
/// Factors that views of one tensor cover once share a gradient, which kernels write through the same views: a
/// projection of all three then needs no sum. 0, 1 and 2 number the results for q, k and v.
template <typename Op> static GradientNumbers gradientNumbers(Op op) {
  const std::array<Value, 3> tensors = {op.getQ(), op.getK(), op.getV()};
  const std::array<ViewAttr, 3> views = {op.getQViewAttr(), op.getKViewAttr(), op.getVViewAttr()};
  auto shared = [&](size_t first) {
    for (size_t i = first; i < 3; ++i)
      if (tensors[i] != tensors[2] || !views[i])
        return false;
    return coverOnce(ArrayRef(views).drop_front(first), elements(tensors[2].getType()));
  };
  return shared(0) ? GradientNumbers{0, 0, 0} : shared(1) ? GradientNumbers{0, 1, 1} : GradientNumbers{0, 1, 2};
}
/// The tensors that gradients are of, in their order.
template <typename Op> static SmallVector<Value> tensorsOf(Op op) {
  const std::array<Value, 3> all = {op.getQ(), op.getK(), op.getV()};
  SmallVector<Value> tensors;
  for (auto [number, tensor] : llvm::zip(gradientNumbers(op), all))
    if (number == static_cast<int64_t>(tensors.size()))
      tensors.push_back(tensor);
  return tensors;
}

/// C4: a view that shares its gradient with others covers its tensor with them, another one alone.
template <typename Op> static bool viewsCover(Op op) {
  const std::array<Value, 3> tensors = {op.getQ(), op.getK(), op.getV()};
  const std::array<ViewAttr, 3> views = {op.getQViewAttr(), op.getKViewAttr(), op.getVViewAttr()};
  const GradientNumbers numbers = gradientNumbers(op);
  for (size_t i = 0; i < 3; ++i)
    if (llvm::count(numbers, numbers[i]) == 1 && views[i] && !coverOnce(views[i], elements(tensors[i].getType())))
      return false;
  return true;
}

/// y in the order that it is written in; null where C3 does not hold.
static RankedTensorType ordered(RankedTensorType y, DenseI64ArrayAttr order) {
  if (!order)
    return y;
  SmallVector<int64_t> seen(order.asArrayRef()), shape;
  llvm::sort(seen);
  if (seen != llvm::to_vector(llvm::seq<int64_t>(0, y.getRank())) || order.asArrayRef().back() != y.getRank() - 1)
    return {};
  for (int64_t i : order.asArrayRef())
    shape.push_back(y.getDimSize(i));
  return RankedTensorType::get(shape, y.getElementType());
}

// y [..,T,C] of q [..,T,D], k [..,S,D] and v [..,S,C], written in y_order; logsumexp [..,T], or [2,..,T] with a mask: a
// row's largest score and the logarithm beside it. That is always f32: the backward op subtracts it from scores.
INFER(AttentionOp) {
  const auto [q, k, v] = factorsOf(op);
  const bool paired = q.getRank() >= 2 && k.getRank() == q.getRank() && v.getRank() == q.getRank();
  if (!paired || k.getShape().drop_back(2) != q.getShape().drop_back(2) ||
      v.getShape().drop_back(2) != q.getShape().drop_back(2) || k.getShape().back() != q.getShape().back() ||
      v.getShape().drop_back().back() != k.getShape().drop_back().back()) // C1
    return fail(loc, "attention of queries ", q, ", keys ", k, " and values ", v, " does not fit");
  SmallVector<int64_t> rows(q.getShape().drop_back()), scores(rows), y(rows), out;
  scores.push_back(k.getShape().drop_back().back());
  y.push_back(v.getShape().back());
  if (op.getMasks().size() > 2) // C2
    return fail(loc, "attention has ", op.getMasks().size(), " masks, and takes what is added and what is kept");
  for (Value each : op.getMasks()) {
    auto mask = ranked(each);
    if (mask.getRank() < 1 || !broadcast(mask.getShape(), scores, out) || out != scores)
      return fail(loc, "mask ", mask, " does not broadcast to the scores of queries ", q, " and keys ", k);
  }
  auto result = ordered(RankedTensorType::get(y, q.getElementType()), op.getYOrderAttr());
  if (!result) // C3
    return fail(loc, "attention writes ", RankedTensorType::get(y, q.getElementType()),
                " in an order that is no permutation of its dimensions with the last one in its place");
  if (!viewsCover(op)) // C4
    return fail(loc, "attention reads its operands through views that do not cover each element once");
  if (!op.getMasks().empty())
    rows.insert(rows.begin(), 2);
  types.append({result, RankedTensorType::get(rows, Float32Type::get(context))});
  return success();
}

// One op makes all gradients, as they share the probabilities that it makes again. Tensors that q, k and v are parts of
// have one gradient each, which the kernel writes through the same views.
GRADIENT(AttentionOp) {
  Value dy = gradients.of(getY());
  const SmallVector<Value> tensors = tensorsOf(*this);
  if (!dy || llvm::none_of(tensors, [&](Value v) { return gradients.wanted(v); }))
    return success();
  auto op = AttentionBackwardOp::create(b, getLoc(), ValueRange(tensors).getTypes(), dy, getQ(), getK(), getV(), getY(),
                                        getLogsumexp(), getMasks(), getScaleAttr(), getCausalAttr(), getRatioAttr(),
                                        getKeyAttr(), getQViewAttr(), getKViewAttr(), getVViewAttr(), getYOrderAttr());
  for (auto [tensor, gradient] : llvm::zip_equal(tensors, op.getGradients()))
    if (gradients.wanted(tensor))
      gradients.add(b, getLoc(), tensor, gradient);
  return success();
}

// The forward op is inferred from this one's operands, views included, with what stands where its results stood.
LogicalResult AttentionBackwardOp::verify() {
  AttentionOp::Properties p;
  p.scale = getScaleAttr();
  p.q_view = getQViewAttr(), p.k_view = getKViewAttr(), p.v_view = getVViewAttr(), p.y_order = getYOrderAttr();
  const SmallVector<Value> tensors = tensorsOf(*this);
  if (tensors.size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " gradients of " << tensors.size() << " tensors";
  for (auto [tensor, gradient] : llvm::zip_equal(tensors, getGradients()))
    if (failed(sameShapes(*this, {tensor, gradient})))
      return failure();
  if (failed(sameShapes(*this, {getY(), getDy()})))
    return failure();
  SmallVector<Value> operands{getQ(), getK(), getV()};
  llvm::append_range(operands, getMasks());
  return mirrors<AttentionOp>(*this, operands, p, {getDy(), getLogsumexp()});
}

Shape sluice::train::listOf(ViewAttr view) {
  Shape list;
  if (view) {
    list.append(view.getOffset());
    for (int64_t step : view.getSteps())
      list.append(step);
  }
  return list;
}

/// The view on a tensor in this order, its extents, that gives its dimensions back; empty for none.
static Shape listOf(DenseI64ArrayAttr order, RankedTensorType y) {
  Shape list;
  if (!order)
    return list;
  const auto rank = static_cast<size_t>(y.getRank());
  SmallVector<int64_t> steps(rank);
  int64_t step = 1;
  for (size_t i = rank; i-- > 0;) {
    steps[static_cast<size_t>(order[static_cast<int64_t>(i)])] = step;
    step *= y.getDimSize(static_cast<unsigned>(i));
  }
  list.append(0);
  for (int64_t each : ArrayRef(steps).drop_back())
    list.append(each);
  return list;
}

/// The call of either op. `q` is the number of its operand q and `mask` that of the first mask, where it has one: dy
/// comes before q in the gradient op, y and logsumexp before the masks. `operands` are in the order of the runtime's
/// method.
template <typename Op>
static Calls attention(Op op, AttentionPass pass, StringRef method, unsigned q, unsigned mask,
                       ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  const auto [queries, keys, values] = factorsOf(op);
  arguments::Attention kernel{};
  kernel.pass = pass;
  kernel.q = shapeOf(queries), kernel.k = shapeOf(keys), kernel.v = shapeOf(values);
  if (op.getMask())
    kernel.mask = calls.shape(in(mask));
  if (op.getKept())
    kernel.kept = calls.shape(in(mask + 1));
  kernel.scale = op.getScale().convertToFloat();
  kernel.causal = op.getCausal();
  kernel.ratio = op.getRatio().convertToFloat(), kernel.key = static_cast<int64_t>(op.getKey());
  kernel.type = calls.type(in(q));
  if (kernel.type != DataType::F32) // nothing else has several algorithms
    kernel.algorithm = calls.algorithm();
  kernel.qView = listOf(op.getQViewAttr()), kernel.kView = listOf(op.getKViewAttr());
  kernel.vView = listOf(op.getVViewAttr()), kernel.yView = listOf(op.getYOrderAttr(), ranked(op.getY()));
  return calls.object(kernel, method, operands);
}

KERNEL(AttentionOp) {
  return attention(
      *this, AttentionPass::Forward, "forward", 0, 3,
      {in(0), in(1), in(2), getMask() ? in(3) : noSlot, getKept() ? in(4) : noSlot, out(0), out(1), scratchSlot});
}
KERNEL(AttentionBackwardOp) {
  const GradientNumbers numbers = gradientNumbers(*this);
  return attention(*this, AttentionPass::Backward, "backward", 1, 6,
                   {in(0), in(1), in(2), in(3), getMask() ? in(6) : noSlot, getKept() ? in(7) : noSlot, in(4), in(5),
                    out(numbers[0]), out(numbers[1]), out(numbers[2]), scratchSlot});
}

/// Of `depthProducts` products of rows, keys and depth, and `columnProducts` of rows, keys and columns.
template <typename Op> static int64_t productsOf(Op op, int64_t depthProducts, int64_t columnProducts) {
  const auto [q, k, v] = factorsOf(op);
  const int64_t keys = k.getShape().drop_back().back();
  const int64_t work = 2 * keys * (depthProducts * elements(q) + columnProducts * elements(op.getY().getType()));
  return op.getCausal() ? work / 2 : work;
}
int64_t AttentionOp::flops() { return productsOf(*this, 1, 1); }
int64_t AttentionBackwardOp::flops() { return productsOf(*this, 3, 2); }

template <typename Op> static OpWork workOf(Op op, bool backward) {
  const auto [q, k, v] = factorsOf(op);
  const ArrayRef<int64_t> queries = q.getShape(), keys = k.getShape();
  return AttentionWork{backward, queries[queries.size() - 2], keys[keys.size() - 2], queries.back()};
}
OpWork AttentionOp::work() { return workOf(*this, false); }
OpWork AttentionBackwardOp::work() { return workOf(*this, true); }

PrecisionPreference AttentionOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference AttentionBackwardOp::precisionPreference() { return PrecisionPreference::Product; }
bool AttentionOp::isOperandWide(unsigned i) { return i >= 3; }
bool AttentionOp::isResultWide(unsigned i) { return i == 1; }
bool AttentionBackwardOp::isOperandWide(unsigned i) { return i >= 5; }
