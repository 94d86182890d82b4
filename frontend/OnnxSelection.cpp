// SPDX-License-Identifier: Apache-2.0
// Ops that choose the best elements along a dimension: their positions, which no gradient passes, and what stands
// there.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

/// The order of dimensions that has `axis` after all others, or, taken back, brings it from there.
SmallVector<int64_t> turn(int64_t rank, int64_t axis, bool back) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (back)
    std::rotate(order.begin() + axis, order.end() - 1, order.end());
  else
    std::rotate(order.begin() + axis, order.begin() + axis + 1, order.end());
  return order;
}

Value toRows(NodeImport &node, Value x, int64_t axis) {
  return x ? permuted(node, x, turn(typeOf(x).getRank(), axis, /*back=*/false)) : x;
}
Value fromRows(NodeImport &node, Value x, int64_t axis) {
  return x ? permuted(node, x, turn(typeOf(x).getRank(), axis, /*back=*/true)) : x;
}

/// Integers as numbers, for ops that move these alone.
Value numbersOf(NodeImport &node, Value ids) { return ids ? node.makeAs<train::CastOp>(shapeOf(ids), ids) : ids; }

Value best(NodeImport &node, Value rows, int64_t count, bool smallest, bool last) {
  auto op = rows ? node.make<train::TopOp>(rows, static_cast<uint64_t>(count), smallest, last) : train::TopOp();
  return op ? op.getIds() : Value();
}

Value picked(NodeImport &node, Value rows, Value ids) {
  auto op = rows && ids ? node.make<train::PickOp>(rows, ids) : train::PickOp();
  return op ? op.getY() : Value();
}

/// The last dimension is the one that kernels sort; others are permuted there and back. Values are picked by the
/// indices, so that gradients go to the elements that were taken.
LogicalResult importTopK(NodeImport &node) {
  Value x = node.tensor(0);
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", -1), typeOf(x).getRank()) : -1;
  const HostTensor *given = axis < 0 || node.attributes.has("k") ? nullptr : node.constant(1, "k");
  if (axis < 0 || (!given && !node.attributes.has("k")))
    return failure();
  const int64_t count = !given                                  ? node.attributes.integer("k", 0)
                        : given->integral && given->size() == 1 ? given->ints[0]
                                                                : 0;
  if (count < 1 || count > shapeOf(x)[axis])
    return node.error("takes the best " + std::to_string(count) + " of the " + std::to_string(shapeOf(x)[axis]) +
                      " elements along axis " + std::to_string(axis));
  Value rows = toRows(node, x, axis);
  Value ids = best(node, rows, count, node.attributes.integer("largest", 1) == 0, /*last=*/false);
  if (node.used(0) && failed(node.result(fromRows(node, picked(node, rows, ids), axis))))
    return failure();
  if (!node.used(1))
    return success(ids != Value());
  const bool inPlace = axis == typeOf(x).getRank() - 1;
  node.shared().integral.insert(node.proto().output(1));
  return node.result(inPlace ? ids : fromRows(node, numbersOf(node, ids), axis), 1);
}

template <bool smallest> LogicalResult importArgBest(NodeImport &node) {
  Value x = node.tensor(0);
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank()) : -1;
  if (axis < 0)
    return failure();
  SmallVector<int64_t> shape(shapeOf(x));
  shape[axis] = 1;
  if (!node.attributes.integer("keepdims", 1))
    shape.erase(shape.begin() + axis);
  Value ids = best(node, toRows(node, x, axis), 1, smallest, node.attributes.integer("select_last_index", 0) != 0);
  return node.result(node.reshape(ids, shape));
}

/// 1 where the first of the largest elements stands. Before opset 13 the dimensions from `axis` on were one.
LogicalResult importHardmax(NodeImport &node) {
  Value x = node.tensor(0);
  const bool flattens = node.opset < 13;
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", flattens ? 1 : -1), typeOf(x).getRank()) : -1;
  if (axis < 0)
    return failure();
  auto [outer, inner] = around(shapeOf(x), axis);
  const int64_t length = flattens ? shapeOf(x)[axis] * inner : shapeOf(x)[axis];
  Value rows = flattens ? node.reshape(x, {outer, length}) : toRows(node, x, axis);
  Value ids = numbersOf(node, best(node, rows, 1, /*smallest=*/false, /*last=*/false));
  auto positions = HostTensor::zeros({length}, /*integral=*/false);
  if (!positions)
    return node.error("has " + std::to_string(length) + " elements along axis " + std::to_string(axis) +
                      ", more than the " + std::to_string(HostTensor::maximumElements) + " that are supported");
  for (int64_t i = 0; i < length; ++i)
    positions->floats[i] = static_cast<double>(i);
  Value hot = ids ? compared(node, ids, node.table(std::move(*positions), "positions"), train::Comparison::Equal) : ids;
  return node.result(flattens ? node.reshape(hot, shapeOf(x)) : fromRows(node, hot, axis));
}

} // namespace

/// GatherElements of indices that are data: x is cut to the indices' extents in all other dimensions, then each row of
/// indices picks from the row of x beside it.
LogicalResult gatherByData(NodeImport &node, Value x, int64_t axis) {
  if (!node.isIntegral(1))
    return node.error("indices '" + (node.has(1) ? node.proto().input(1) : "") +
                      "' must be integers: an input of the model, a constant, or computed from these");
  Value numbers = node.moved(1);
  const int64_t rank = typeOf(x).getRank();
  if (!numbers)
    return failure();
  if (typeOf(numbers).getRank() != rank)
    return node.error("indices of shape " + shapeText(shapeOf(numbers).vec()) + " do not fit a tensor of shape " +
                      shapeText(shapeOf(x).vec()));
  const int64_t limit = shapeOf(x)[axis];
  const bool inPlace = axis == rank - 1;
  for (int64_t i = 0; x && i < rank; ++i)
    if (i != axis && shapeOf(numbers)[i] != shapeOf(x)[i])
      x = slab(node, x, i, 0, shapeOf(numbers)[i]);
  node.boundIds(numbers, limit);
  Value ordered = inPlace ? numbers : toRows(node, node.tensor(1), axis);
  Value ids = node.idsOf(ordered, limit, "indices '" + node.proto().input(1) + "'");
  return node.result(fromRows(node, picked(node, toRows(node, x, axis), ids), axis));
}

void addSelections(NodeImporters &table) {
  table["TopK"] = importTopK;
  table["ArgMax"] = importArgBest<false>;
  table["ArgMin"] = importArgBest<true>;
  table["Hardmax"] = importHardmax;
}

} // namespace sluice
