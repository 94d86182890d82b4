// SPDX-License-Identifier: Apache-2.0
// See DecodeAttention.h. Operands of train.attention may be views of one tensor: a decode step has the same views of
// the tensor's one token.
#include "passes/DecodeAttention.h"

#include "ir/Cache.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }

static Value reshaped(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return ReshapeOp::create(b, loc, RankedTensorType::get(shape, typeOf(value).getElementType()), value);
}

DecodeAttention::DecodeAttention(AttentionOp attention, const TextExtents &extents) : op(attention), e(extents) {
  if (op.getMasks().empty() && !op.getCausal())
    refuse("lets tokens see those after them");
  if (op.getRatio().convertToDouble() > 0)
    refuse("drops scores at random");
  const Value keys = sharedBefore(op.getK()), values = sharedBefore(op.getV());
  const bool shared = keys && values && shapeOf(keys)[1] == shapeOf(values)[1];
  q = rowsOf(op.getQ(), op.getQViewAttr());
  k = shared ? rowsOf(keys, {}) : rowsOf(op.getK(), op.getKViewAttr());
  v = shared ? rowsOf(values, {}) : rowsOf(op.getV(), op.getVViewAttr());
}

void DecodeAttention::refuse(const std::string &why) {
  if (reason.empty())
    reason = why;
}

/// Keys, or values, [texts, groups, 1, tokens, columns] that a broadcast gives to several heads each; else null.
Value DecodeAttention::sharedBefore(Value value) const {
  auto heads = value.getDefiningOp<ReshapeOp>();
  auto repeated = heads ? heads.getX().getDefiningOp<BroadcastToOp>() : BroadcastToOp();
  if (!repeated || !repeated.getFactor().isExactlyValue(1))
    return {};
  const ArrayRef<int64_t> x = shapeOf(repeated.getX()), y = shapeOf(repeated.getY()), z = shapeOf(value);
  const bool known = x.size() == 5 && x[2] == 1 && y.size() == 5 && x.take_front(2) == y.take_front(2) &&
                     x.take_back(2) == y.take_back(2) && z.size() == 4 && z[0] == y[0] && z[1] == y[1] * y[2] &&
                     z.take_back(2) == y.take_back(2);
  return known ? repeated.getX() : Value();
}

HeadRows DecodeAttention::rowsOf(Value value, ViewAttr view) {
  HeadRows rows{value, view, 0, 0, {}};
  SmallVector<int64_t> shape(view ? view.getShape() : shapeOf(value));
  if (!view && shape.size() == 5)
    shape.erase(shape.begin() + 2); // of sharedBefore()
  const size_t rank = shape.size();
  if (rank < 3 || rank > 4 || (rank == 4 ? shape[0] != e.texts : shape[0] % e.texts != 0) ||
      shape[rank - 2] != e.tokens || (view && shape[0] != e.texts)) {
    refuse("has heads that are not those of one text each");
    return rows;
  }
  rows.heads = rank == 4 ? shape[1] : shape[0] / e.texts;
  rows.columns = shape[rank - 1];
  // In order, elements of a token are heads apart, and those of a text all of its heads.
  const int64_t tokenStep = view ? view.getSteps()[rank - 2] : rows.columns,
                textStep = view ? view.getSteps()[0] : rows.heads * e.tokens * rows.columns;
  const auto tokens = axisOf(shapeOf(value), tokenStep, e.tokens), texts = axisOf(shapeOf(value), textStep, e.texts);
  if (!tokens || !texts)
    refuse("reads heads that do not stand evenly apart");
  else
    rows.axes = {*tokens, *texts};
  if (view && reason.empty() && !viewOfToken(rows))
    refuse("reads heads that do not stand evenly apart");
  return rows;
}

/// The view of one token's tensor, [texts, heads, 1, columns]; null where a token's elements lie between others'.
ViewAttr DecodeAttention::viewOfToken(const HeadRows &rows) const {
  const int64_t token = stepOf(shapeOf(rows.value), rows.axes.tokens), all = token * e.tokens;
  const auto shrunk = [&](int64_t step) -> int64_t { // 0: it has no place
    return step <= token ? step : step % all == 0 ? step / e.tokens : 0;
  };
  const ArrayRef<int64_t> steps = rows.view.getSteps();
  const int64_t first = rows.view.getOffset() / all * token + rows.view.getOffset() % all;
  const int64_t text = e.texts == 1 ? 1 : shrunk(steps[0]), head = steps.size() == 3 ? shrunk(steps[1]) : 1;
  if (rows.view.getOffset() % all >= token || text == 0 || head == 0)
    return {};
  return ViewAttr::get(op.getContext(), {e.texts, rows.heads, 1, rows.columns}, first, {text, head, token});
}

Need DecodeAttention::needOfMask(Value mask) const {
  const ArrayRef<int64_t> shape = shapeOf(mask);
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] == 1)
    return {Need::Whole};
  if (e.dependent.contains(mask))
    return {Need::Token, {{rank - 2, 1, 1}, {0, 1, 1}}};
  return {Need::Row, {}, 2, 4};
}

NeededOperands DecodeAttention::needs(const Need &need) {
  NeededOperands needed{{}, reason};
  if (!reason.empty())
    return needed;
  const size_t rank = shapeOf(op.getY()).size();
  const auto placeOf = [&](size_t dim) {
    const DenseI64ArrayAttr order = op.getYOrderAttr();
    return order ? static_cast<size_t>(llvm::find(order.asArrayRef(), dim) - order.asArrayRef().begin()) : dim;
  };
  const TextAxes own = {{placeOf(rank - 2), 1, 1}, {placeOf(0), 1, rank == 4 ? 1 : q.heads}};
  if (!(need.axes.tokens == own.tokens) || (e.texts > 1 && !(need.axes.texts == own.texts)))
    refuse("has its tokens in another dimension than its rows");
  for (Value mask : op.getMasks()) {
    const ArrayRef<int64_t> shape = shapeOf(mask);
    const bool ofTexts = shape.size() < rank || shape[0] == 1 || shape[0] == e.texts;
    if (shape.size() > 4 || !ofTexts || (rank == 3 && e.dependent.contains(mask)))
      refuse("has a mask that is not that of one text each");
  }
  needed.why = reason;
  if (!reason.empty())
    return needed;
  for (const HeadRows *part : {&q, &k, &v})
    needed.values.push_back({part->value, {Need::Token, part->axes}});
  for (Value mask : op.getMasks())
    needed.values.push_back({mask, needOfMask(mask)});
  return needed;
}

std::array<RankedTensorType, 2> DecodeAttention::caches(int64_t rows) const {
  const auto type = [&](const HeadRows &part) {
    return RankedTensorType::get({e.texts, part.heads, rows, part.columns}, typeOf(part.value).getElementType());
  };
  return {type(k), type(v)};
}

/// The view with four dimensions; of three, those of texts, tokens and columns, heads have one more.
static ViewAttr withHeads(ViewAttr view) {
  if (!view || view.getShape().size() == 4)
    return view;
  const ArrayRef<int64_t> shape = view.getShape(), steps = view.getSteps();
  return ViewAttr::get(view.getContext(), {shape[0], 1, shape[1], shape[2]}, view.getOffset(), {steps[0], 1, steps[1]});
}

void DecodeAttention::storeAll(std::array<VariableOp, 2> variables) {
  OpBuilder b(op);
  for (auto [part, variable] : llvm::zip_equal(std::array{&k, &v}, variables)) {
    const Value cache = ReadOp::create(b, op.getLoc(), variable.getType(), variable.getSymName());
    const Value rows = part->view
                           ? part->value
                           : reshaped(b, op.getLoc(), part->value, {e.texts, part->heads, e.tokens, part->columns});
    CacheRowsOp::create(b, op.getLoc(), cache.getType(), rows, Value(), cache, withHeads(part->view));
  }
}

Value DecodeAttention::tokenRows(OpBuilder &b, const HeadRows &rows, Value token) const {
  return rows.view ? token : reshaped(b, op.getLoc(), token, {e.texts, rows.heads, 1, rows.columns});
}

Value DecodeAttention::build(OpBuilder &b, std::array<VariableOp, 2> variables, Value places,
                             llvm::function_ref<Value(const NeededValue &)> made) {
  const Location loc = op.getLoc();
  const auto token = [&](const HeadRows &rows) {
    return tokenRows(b, rows, made({rows.value, {Need::Token, rows.axes}}));
  };
  const auto viewOf = [&](const HeadRows &rows) { return rows.view ? viewOfToken(rows) : ViewAttr(); };
  SmallVector<Value> stored;
  for (auto [part, variable] : llvm::zip_equal(std::array{&k, &v}, variables)) {
    const Value cache = ReadOp::create(b, loc, variable.getType(), variable.getSymName());
    stored.push_back(CacheRowsOp::create(b, loc, cache.getType(), token(*part), places, cache, viewOf(*part)));
  }
  SmallVector<Value> masks;
  for (Value mask : op.getMasks())
    masks.push_back(made({mask, needOfMask(mask)}));
  const auto type = RankedTensorType::get({e.texts, q.heads, 1, v.columns}, typeOf(op.getY()).getElementType());
  const Value y = CachedAttentionOp::create(b, loc, type, token(q), stored[0], stored[1], places, masks,
                                            op.getScaleAttr(), viewOf(q));
  return inOrder(b, y);
}

/// In the dimensions and the order of the attention's own result.
Value DecodeAttention::inOrder(OpBuilder &b, Value y) const {
  const DenseI64ArrayAttr order = op.getYOrderAttr();
  const size_t rank = shapeOf(op.getY()).size();
  const Value same = rank == 4 ? y : reshaped(b, op.getLoc(), y, {e.texts * q.heads, 1, v.columns});
  if (!order)
    return same;
  SmallVector<int64_t> others(order.asArrayRef()); // without the row, of which there is one
  llvm::erase(others, static_cast<int64_t>(rank) - 2);
  if (!llvm::is_sorted(others))
    return TransposeOp::create(b, op.getLoc(), same, order);
  SmallVector<int64_t> shape;
  for (int64_t dim : order.asArrayRef())
    shape.push_back(shapeOf(same)[dim]);
  return reshaped(b, op.getLoc(), same, shape);
}
