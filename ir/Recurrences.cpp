// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: the op of their steps, and its gradient. What all steps can do at once are products of their own.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RecurrentCell runtimeCell(Cell cell) { return static_cast<RecurrentCell>(cell); }
bool isGru(Cell cell) { return cell == Cell::Gru || cell == Cell::GruLinearBeforeReset; }

/// Extents of a layer, and the shapes of its tensors.
struct Layer {
  int64_t steps, batch, width, gates, saved;

  SmallVector<int64_t> state() const { return {batch, width}; }
  SmallVector<int64_t> sequence(int64_t count = 1) const { return {steps, batch, count * width}; }
};

std::optional<Layer> layerOf(Cell cell, Value gates, Value weight) {
  ArrayRef<int64_t> x = extents(gates), w = extents(weight);
  const int64_t count = gatesOf(runtimeCell(cell));
  if (x.size() != 3 || w.size() != 2 || !positive(x, 3) || !positive(w, 2) || w[0] % count || w[0] / count != w[1] ||
      x[2] != w[0])
    return std::nullopt;
  return Layer{x[0], x[1], w[1], count, savedOf(runtimeCell(cell))};
}

/// Results of a cell after the hidden states.
SmallVector<SmallVector<int64_t>> behindHidden(Cell cell, const Layer &layer) {
  SmallVector<SmallVector<int64_t>> shapes;
  if (layer.saved)
    shapes.push_back(layer.sequence(layer.saved));
  if (cell == Cell::Lstm)
    shapes.push_back(layer.state());
  return shapes;
}

} // namespace

// hidden [T,B,H], then what behindHidden() says of the cell.
INFER(RecurrenceOp) {
  auto layer = layerOf(op.getCell(), op.getGates(), op.getWeight());
  if (!layer) // C1
    return fail(loc, "recurrence of gates ", ranked(op.getGates()), " with weight ", ranked(op.getWeight()),
                ", which are not [T,B,G*H] and [G*H,H] with ", gatesOf(runtimeCell(op.getCell())), " gates");
  const bool lstm = op.getCell() == Cell::Lstm, biased = op.getCell() == Cell::GruLinearBeforeReset;
  const Value extra = op.getExtra();
  const SmallVector<int64_t> wanted = lstm ? layer->state() : SmallVector<int64_t>{layer->width};
  if (extents(op.getInitial()) != ArrayRef(layer->state()) || bool(extra) != (lstm || biased) ||
      (extra && extents(extra) != ArrayRef(wanted))) // C2
    return fail(loc, "recurrence of ", layer->batch, " samples and ", layer->width, " units has the initial state ",
                ranked(op.getInitial()), " and ", extra ? Type(ranked(extra)) : Type(NoneType::get(context)),
                " besides");
  auto add = [&](ArrayRef<int64_t> shape) { types.push_back(RankedTensorType::get(shape, Float32Type::get(context))); };
  add(layer->sequence());
  for (const auto &shape : behindHidden(op.getCell(), *layer))
    add(shape);
  return success();
}

// `states` begin with what the cell saved; of an lstm the first c follows and, where something reads the last one, its
// gradient.
LogicalResult RecurrenceBackwardOp::verify() {
  auto layer = layerOf(getCell(), getDgates(), getWeight());
  SmallVector<SmallVector<int64_t>> states, rest;
  if (layer)
    states = behindHidden(getCell(), *layer);
  if (layer && getCell() == Cell::Lstm) {
    states.resize(getStates().size() == 3 ? 3 : 2, layer->state()); // the last c's gradient may be absent
    rest.push_back(layer->state());
  } else if (layer && isGru(getCell())) {
    rest.push_back(layer->sequence());
  }
  auto have = [](ValueRange values, ArrayRef<SmallVector<int64_t>> shapes) {
    return values.size() == shapes.size() && llvm::all_of(llvm::zip(values, shapes), [](const auto &pair) {
             return extents(std::get<0>(pair)) == ArrayRef(std::get<1>(pair));
           });
  };
  if (!layer || !have({getDy(), getHidden()}, {layer->sequence(), layer->sequence()}) ||
      !have({getInitial()}, {layer->state()}) || !have(getStates(), states)) // C1
    return emitOpError() << "is no gradient of 'train.recurrence', whose gates are " << getDgates().getType()
                         << " and whose weight is " << getWeight().getType();
  if (!have({getDinitial()}, {layer->state()}) || !have(getRest(), rest)) // C2
    return emitOpError() << "has " << getNumResults() << " results, or some of a shape that is not that of "
                         << layer->batch << " samples and " << layer->width << " units";
  return success();
}

/// [T,B,N] as [T*B,N].
static Value flattened(OpBuilder &b, Location loc, Value x) {
  auto type = ranked(x);
  const int64_t columns = type.getDimSize(2);
  return ReshapeOp::create(b, loc,
                           RankedTensorType::get({type.getNumElements() / columns, columns}, type.getElementType()), x);
}

/// States before each step [T*B,H], in the order of time.
static Value statesBefore(OpBuilder &b, RecurrenceOp op) {
  const Location loc = op.getLoc();
  const int64_t steps = extents(op.getHidden())[0];
  SmallVector<int64_t> first(extents(op.getHidden()));
  first[0] = 1;
  Value start = ReshapeOp::create(b, loc, RankedTensorType::get(first, b.getF32Type()), op.getInitial());
  if (steps == 1)
    return flattened(b, loc, start);
  Value others = SliceOp::create(b, loc, op.getHidden(), 0, op.getReverse() ? 1 : 0, steps - 1);
  SmallVector<Value> parts{start, others};
  if (op.getReverse())
    std::swap(parts[0], parts[1]);
  return flattened(b, loc, ConcatOp::create(b, loc, parts, 0));
}

/// The sum of the outer products of rows.
static Value outerProducts(OpBuilder &b, Location loc, Value left, Value right) {
  const FloatAttr one = b.getF32FloatAttr(1);
  return MatmulOp::create(b, loc, left, right, Value(), b.getBoolAttr(true), b.getBoolAttr(false), one, one);
}

/// Of all gates but the last of a gru the factor is the state before.
static Value weightGradient(OpBuilder &b, RecurrenceOp op, RecurrenceBackwardOp back) {
  const Location loc = op.getLoc();
  const Value before = statesBefore(b, op), dgates = back.getDgates();
  if (!isGru(op.getCell()))
    return outerProducts(b, loc, flattened(b, loc, dgates), before);
  const int64_t width = extents(op.getHidden())[2];
  auto gates = [&](int64_t first, int64_t count) {
    return flattened(b, loc, SliceOp::create(b, loc, dgates, 2, first * width, count * width));
  };
  const Value reset = flattened(b, loc, back.getRest().front());
  const Value last =
      op.getCell() == Cell::Gru ? outerProducts(b, loc, gates(2, 1), reset) : outerProducts(b, loc, reset, before);
  return ConcatOp::create(b, loc, ValueRange{outerProducts(b, loc, gates(0, 2), before), last}, 0);
}

// One op goes back through all steps; weights, of which all steps have the same, then take one product over all of them
// instead of a sum in each step. Only h and the last c of an lstm have gradients: what cells save is read by this op
// alone.
GRADIENT(RecurrenceOp) {
  const bool lstm = getCell() == Cell::Lstm, biased = getCell() == Cell::GruLinearBeforeReset;
  const Value dcell = lstm ? gradients.of(getRest().back()) : Value();
  Value dy = gradients.of(getHidden());
  if (!dy && !dcell)
    return success();
  if (!dy) // none of the hidden states is read
    dy = BroadcastToOp::create(b, getLoc(), getHidden().getType(), dcell, b.getF32FloatAttr(0));
  SmallVector<Value> states(getRest().take_front(getRest().empty() ? 0 : 1));
  SmallVector<Type> types{getGates().getType(), getInitial().getType()};
  if (lstm)
    states.push_back(getExtra());
  if (dcell)
    states.push_back(dcell);
  if (lstm || isGru(getCell()))
    types.push_back(lstm ? getExtra().getType() : getHidden().getType());
  auto back = RecurrenceBackwardOp::create(b, getLoc(), types, dy, getWeight(), getInitial(), getHidden(), states,
                                           getCell(), getReverse());
  if (gradients.wanted(getWeight()))
    gradients.add(b, getLoc(), getWeight(), weightGradient(b, *this, back));
  if (biased && gradients.wanted(getExtra()))
    gradients.add(b, getLoc(), getExtra(),
                  SumToOp::create(b, getLoc(), getExtra().getType(), back.getRest().front(), b.getF32FloatAttr(1)));
  if (lstm && gradients.wanted(getExtra()))
    gradients.add(b, getLoc(), getExtra(), back.getRest().front());
  if (gradients.wanted(getInitial()))
    gradients.add(b, getLoc(), getInitial(), back.getDinitial());
  if (gradients.wanted(getGates()))
    gradients.add(b, getLoc(), getGates(), back.getDgates());
  return success();
}

KERNEL(RecurrenceOp) {
  KernelCalls calls(*this);
  const bool lstm = getCell() == Cell::Lstm, saves = !getRest().empty();
  return calls.object(arguments::Recurrence{runtimeCell(getCell()), calls.shape(in(0)), getReverse()}, "forward",
                      {in(0), in(1), in(2), getExtra() ? in(3) : noSlot, out(0), saves ? out(1) : noSlot,
                       lstm ? out(2) : noSlot, scratchSlot});
}

KERNEL(RecurrenceBackwardOp) {
  KernelCalls calls(*this);
  auto state = [&](size_t i) { return i < getStates().size() ? in(4 + static_cast<int64_t>(i)) : noSlot; };
  return calls.object(arguments::Recurrence{runtimeCell(getCell()), calls.shape(out(0)), getReverse()}, "backward",
                      {in(0), in(1), in(2), in(3), state(0), state(1), state(2), out(0), out(1),
                       getRest().empty() ? noSlot : out(2), scratchSlot});
}

bool RecurrenceOp::isWeightOperand(unsigned operand) {
  return operand == 1 || (operand == 3 && getCell() == Cell::GruLinearBeforeReset);
}

/// The products, and about ten operations for each gate besides.
static int64_t flopsOf(Value gates, Value weight) { return elements(gates.getType()) * (2 * extents(weight)[1] + 10); }
/// Products of a step, one after the other: rows are those of a sample each.
static OpWork workOf(Value gates, Value weight) {
  return ProductWork{extents(gates)[1], extents(weight)[1], extents(weight)[0]};
}
OpWork RecurrenceOp::work() { return workOf(getGates(), getWeight()); }
OpWork RecurrenceBackwardOp::work() { return workOf(getDgates(), getWeight()); }

int64_t RecurrenceOp::flops() { return flopsOf(getGates(), getWeight()); }
int64_t RecurrenceBackwardOp::flops() { return flopsOf(getDgates(), getWeight()); }
