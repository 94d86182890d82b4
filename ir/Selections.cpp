// SPDX-License-Identifier: Apache-2.0
// Ops that choose rows or elements by integers, and those that find the integers: tables of rows, picks, the largest.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

INFER(EmbeddingOp) {
  auto table = ranked(op.getTable()), ids = ranked(op.getIds());
  if (table.getRank() < 1 || table.getDimSize(0) < 1 || !ids.getElementType().isInteger(64)) // C1
    return fail(loc, "embedding of ", ids, " in ", table, ", which has no rows or whose ids are no integers");
  SmallVector<int64_t> shape(ids.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  types.push_back(RankedTensorType::get(shape, table.getElementType()));
  return success();
}

INFER(TopOp) {
  auto x = ranked(op.getX());
  const int64_t count = op.getCount(), row = x.getRank() ? x.getShape().back() : 0;
  if (count < 1 || count > row) // C1
    return fail(loc, "the best ", count, " of a row of ", x);
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = count;
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

INFER(PickOp) {
  auto x = ranked(op.getX()), ids = ranked(op.getIds());
  if (x.getRank() < 1 || x.getRank() != ids.getRank() || !ids.getElementType().isInteger(64) ||
      x.getNumElements() < 1 || ids.getNumElements() < 1 ||
      x.getShape().drop_back() != ids.getShape().drop_back()) // C1
    return fail(loc, "picks elements of rows of ", x, " by ids ", ids);
  types.push_back(RankedTensorType::get(ids.getShape(), x.getElementType()));
  return success();
}

GRADIENT(EmbeddingOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getTable()))
    gradients.add(b, getLoc(), getTable(),
                  EmbeddingBackwardOp::create(b, getLoc(), getTable().getType(), dy, getIds()));
  return success();
}

GRADIENT(ScatterRowsOp) {
  Value dy = gradients.of(getY());
  if (dy && !getLargest() && gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(), EmbeddingOp::create(b, getLoc(), dy, getIds()));
  return success();
}

// Positions move by steps.
LogicalResult TopOp::buildGradients(OpBuilder &, Gradients &) { return success(); }

SINGLE(PickOp, PickBackwardOp::create(b, getLoc(), getX().getType(), dy, getIds()))

LogicalResult EmbeddingBackwardOp::verify() {
  return mirrors<EmbeddingOp>(*this, {getDtable(), getIds()}, {}, {getDy()});
}

LogicalResult ScatterRowsOp::verify() {
  if (failed(mirrors<EmbeddingOp>(*this, {getY(), getIds()}, {}, {getX()}, /*silent=*/true))) // C1
    return emitOpError() << "puts rows of " << getX().getType() << " by ids " << getIds().getType() << " into "
                         << getY().getType() << ", whose rows are others";
  return success();
}

LogicalResult PickBackwardOp::verify() { return mirrors<PickOp>(*this, {getDx(), getIds()}, {}, {getDy()}); }

KERNEL(TopOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::Top{calls.shape(in(0)), static_cast<int64_t>(getCount()), getSmallest(), getLast()},
                      "run", {in(0), out(0)});
}

sched::IdsAttr PickOp::ids() {
  return sched::IdsAttr::get(getContext(), getIdsMutable().getOperandNumber(), ranked(getX()).getShape().back(), {});
}
sched::IdsAttr EmbeddingOp::ids() {
  return sched::IdsAttr::get(getContext(), getIdsMutable().getOperandNumber(), ranked(getTable()).getDimSize(0), {});
}

KERNEL(PickOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::Pick{calls.shape(in(0)), calls.shape(in(1))}, "forward", {in(0), in(1), out(0)});
}

KERNEL(PickBackwardOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::Pick{calls.shape(out(0)), calls.shape(in(1))}, "backward", {in(0), in(1), out(0)});
}

// An element is compared with those that are best so far.
int64_t TopOp::flops() {
  return saturatedProduct({elements(getX().getType()), static_cast<int64_t>(llvm::Log2_64_Ceil(getCount()) + 1)});
}
// Each place of dx looks at all ids of its row.
int64_t PickBackwardOp::flops() { return saturatedProduct({elements(getDx().getType()), extents(getIds()).back()}); }

KERNEL(EmbeddingOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::Embedding{calls.shape(in(0)), calls.shape(in(1))}, "forward", {in(0), in(1), out(0)});
}

KERNEL(EmbeddingBackwardOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::Embedding{calls.shape(out(0)), calls.shape(in(1))}, "backward",
                      {in(0), in(1), out(0), scratchSlot});
}

KERNEL(ScatterRowsOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::Embedding{calls.shape(out(0)), calls.shape(in(1))},
                      getLargest() ? "largest" : "backward", {in(0), in(1), out(0), scratchSlot});
}

bool EmbeddingOp::isWeightOperand(unsigned operand) { return operand == 0; }

// Rows that are read, not the table that they lie in.
int64_t EmbeddingOp::flops() { return 0; }
int64_t EmbeddingOp::bytesMoved() { return bytes(getIds().getType()) + 2 * bytes(getY().getType()); }
// The table's gradient is cleared before sums are written.
int64_t EmbeddingBackwardOp::bytesMoved() {
  return bytes(getIds().getType()) + 2 * bytes(getDy().getType()) + bytes(getDtable().getType());
}

int64_t ScatterRowsOp::bytesMoved() {
  return bytes(getIds().getType()) + 2 * bytes(getX().getType()) + bytes(getY().getType());
}

PrecisionPreference EmbeddingOp::precisionPreference() { return PrecisionPreference::Mixed; }
PrecisionPreference EmbeddingBackwardOp::precisionPreference() { return PrecisionPreference::Mixed; }

bool EmbeddingOp::isOperandWide(unsigned) { return true; }
bool EmbeddingBackwardOp::isResultWide(unsigned) { return true; }
