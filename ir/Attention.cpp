// SPDX-License-Identifier: Apache-2.0
// Attention and its gradients.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

INFER(AttentionOp) {
  auto q = ranked(op.getQ()), k = ranked(op.getK()), v = ranked(op.getV());
  const bool paired = q.getRank() >= 2 && k.getRank() == q.getRank() && v.getRank() == q.getRank();
  if (!paired || k.getShape().drop_back(2) != q.getShape().drop_back(2) ||
      v.getShape().drop_back(2) != q.getShape().drop_back(2) || k.getShape().back() != q.getShape().back() ||
      v.getShape().drop_back().back() != k.getShape().drop_back().back()) // C1
    return fail(loc, "attention of queries ", q, ", keys ", k, " and values ", v, " does not fit");
  SmallVector<int64_t> rows(q.getShape().drop_back()), scores(rows), y(rows), out;
  scores.push_back(k.getShape().drop_back().back());
  y.push_back(v.getShape().back());
  if (op.getMask()) { // C2
    auto mask = ranked(op.getMask());
    if (mask.getRank() < 1 || !broadcast(mask.getShape(), scores, out) || out != scores)
      return fail(loc, "mask ", mask, " does not broadcast to the scores of queries ", q, " and keys ", k);
  }
  types.append({RankedTensorType::get(y, q.getElementType()), RankedTensorType::get(rows, Float32Type::get(context))});
  return success();
}

GRADIENT(AttentionOp) {
  Value dy = gradients.of(getY());
  if (!dy || llvm::none_of(ValueRange{getQ(), getK(), getV()}, [&](Value v) { return gradients.wanted(v); }))
    return success();
  auto op = AttentionBackwardOp::create(b, getLoc(), getQ().getType(), getK().getType(), getV().getType(), dy, getQ(),
                                        getK(), getV(), getY(), getLogsumexp(), getMask(), getScaleAttr(),
                                        getCausalAttr(), getRatioAttr(), getKeyAttr());
  for (auto [operand, gradient] :
       {std::pair<Value, Value>{getQ(), op.getDq()}, {getK(), op.getDk()}, {getV(), op.getDv()}})
    if (gradients.wanted(operand))
      gradients.add(b, getLoc(), operand, gradient);
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  AttentionOp::Properties p;
  p.scale = getScaleAttr();
  SmallVector<Value> operands{getDq(), getDk(), getDv()};
  if (failed(sameShapes(*this, {getQ(), getDq()})) || failed(sameShapes(*this, {getK(), getDk()})) ||
      failed(sameShapes(*this, {getV(), getDv()})) || failed(sameShapes(*this, {getY(), getDy()})))
    return failure();
  if (getMask())
    operands.push_back(getMask());
  return mirrors<AttentionOp>(*this, operands, p, {getDy(), getLogsumexp()});
}

template <typename Op>
static Calls attention(Op op, AttentionPass pass, StringRef method, unsigned q, unsigned mask,
                       ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  const Shape shape = op.getMask() ? calls.shape(in(mask)) : Shape();
  calls.object("Attention", method, operands, pass, calls.shape(in(q)), calls.shape(in(q + 1)), calls.shape(in(q + 2)),
               shape, op.getScale());
  const bool halves = calls.type(in(q)) != DataType::F32, drops = !op.getRatio().isZero();
  if (halves || drops || op.getCausal())
    calls.with(op.getCausal());
  if (halves || drops)
    calls.with(op.getRatio(), static_cast<int64_t>(op.getKey()));
  if (halves) // the host computes in f32 alone, and nothing else has several algorithms
    calls.with(calls.type(in(q)), calls.algorithm());
  return calls;
}

KERNEL(AttentionOp) {
  return attention(*this, AttentionPass::Forward, "forward", 0, 3,
                   {in(0), in(1), in(2), getMask() ? in(3) : noSlot, out(0), out(1), scratchSlot});
}
KERNEL(AttentionBackwardOp) {
  return attention(
      *this, AttentionPass::Backward, "backward", 1, 6,
      {in(0), in(1), in(2), in(3), getMask() ? in(6) : noSlot, in(4), in(5), out(0), out(1), out(2), scratchSlot});
}

/// Of `depthProducts` products of rows, keys and depth, and `columnProducts` of rows, keys and columns.
template <typename Op> static int64_t productsOf(Op op, int64_t depthProducts, int64_t columnProducts) {
  const int64_t keys = ranked(op.getK()).getShape().drop_back().back();
  const int64_t work =
      2 * keys * (depthProducts * elements(op.getQ().getType()) + columnProducts * elements(op.getY().getType()));
  return op.getCausal() ? work / 2 : work;
}
int64_t AttentionOp::flops() { return productsOf(*this, 1, 1); }
int64_t AttentionBackwardOp::flops() { return productsOf(*this, 3, 2); }

PrecisionPreference AttentionOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference AttentionBackwardOp::precisionPreference() { return PrecisionPreference::Product; }
bool AttentionOp::isOperandWide(unsigned i) { return i == 3; }
bool AttentionOp::isResultWide(unsigned i) { return i == 1; }
bool AttentionBackwardOp::isOperandWide(unsigned i) { return i >= 5; }
