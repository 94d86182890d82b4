// SPDX-License-Identifier: Apache-2.0
// Positions are sums of the indices times the elements that one step along their dimension skips, in float32, which
// NodeImport::idsOf limits to what that tells apart.
#include "frontend/DataPositions.h"

using namespace mlir;

namespace sluice {
namespace {

using train::Comparison;

/// A position that indices add up to, and whether all of them lie in their extents; null for no index so far.
struct Position {
  Value at, inside;

  void add(NodeImport &node, Value part) { at = at ? binary<train::AddOp>(node, at, part) : part; }

  /// `index` counts along an extent of which a step skips `stride` elements.
  void addIndex(NodeImport &node, Value index, int64_t extent, int64_t stride) {
    Value zero = node.scalar(0, "zero"),
          limit = node.scalar(static_cast<double>(extent), "extent" + std::to_string(extent));
    if (!index || !zero || !limit)
      return;
    Value fromEnd = binary<train::AddOp>(node, index, limit);
    Value from = selected(node, compared(node, index, zero, Comparison::Less), fromEnd, index);
    Value ends = compared(node, from, limit, Comparison::Less);
    Value fits = binary<train::MulOp>(node, compared(node, zero, from, Comparison::LessOrEqual), ends);
    inside = inside ? binary<train::MulOp>(node, inside, fits) : fits;
    add(node, stride == 1 ? from : scaled(node, from, static_cast<double>(stride)));
  }

  Value ids(NodeImport &node, int64_t places) const {
    Value number = selected(node, inside, at, node.scalar(-1, "outside"));
    number = number ? node.reshape(number, {typeOf(number).getNumElements()}) : number;
    return node.idsOf(number, places, indicesName(node));
  }

  static std::string indicesName(NodeImport &node) { return "indices '" + node.proto().input(1) + "'"; }
};

/// 0, step, 2 * step and so on, in a shape of which one extent is `count` and the others 1.
Value counted(NodeImport &node, std::vector<int64_t> shape, int64_t count, int64_t step, const std::string &purpose) {
  auto numbers = HostTensor::zeros(std::move(shape), /*integral=*/false);
  if (!numbers) {
    (void)node.error("counts " + std::to_string(count) + " places, more than the " +
                     std::to_string(HostTensor::maximumElements) + " that are computed at compile time");
    return {};
  }
  for (int64_t i = 0; i < count; ++i)
    numbers->floats[i] = static_cast<double>(i * step);
  return node.table(std::move(*numbers), purpose);
}

/// The node's indices as numbers; null after an error.
Value numbersOf(NodeImport &node) {
  if (node.isIntegral(1))
    return node.tensor(1);
  (void)node.error("indices '" + (node.has(1) ? node.proto().input(1) : "") +
                   "' must be integers: an input of the model, a constant, or computed from these");
  return {};
}

LogicalResult misfit(NodeImport &node, Value indices, ArrayRef<int64_t> shape) {
  return node.error("indices of shape " + shapeText(shapeOf(indices).vec()) + " do not fit a tensor of shape " +
                    shapeText(shape.vec()));
}

} // namespace

/// Along `axis` the index counts; along all other dimensions an element lies where its index does, which is a constant.
/// A dimension in which the indices have one element adds nothing: its only place is the first one.
Value elementsByData(NodeImport &node, ArrayRef<int64_t> shape, int64_t axis) {
  Value indices = numbersOf(node);
  if (!indices)
    return {};
  const size_t rank = shape.size();
  ArrayRef<int64_t> extents = shapeOf(indices);
  bool fits = extents.size() == rank;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = static_cast<int64_t>(i) == axis || extents[i] <= shape[i];
  if (!fits) {
    (void)misfit(node, indices, shape);
    return {};
  }
  node.boundIds(node.moved(1), shape[axis]);
  Position position;
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0; stride *= shape[i]) {
    if (static_cast<int64_t>(i) == axis) {
      position.addIndex(node, indices, shape[i], stride);
    } else if (extents[i] > 1) {
      std::vector<int64_t> along(rank, 1);
      along[i] = extents[i];
      position.add(node, counted(node, along, extents[i], stride, "along" + std::to_string(i)));
    }
  }
  return position.ids(node, stride);
}

/// An index is a tuple [length] that counts along the dimensions after the batch. Programs compare an input's ids with
/// one extent, so that they check tuples of one number alone; kernels check the others by the id -1.
std::optional<BlocksByData> blocksByData(NodeImport &node, ArrayRef<int64_t> shape, int64_t batchDims) {
  Value indices = numbersOf(node);
  if (!indices)
    return {};
  ArrayRef<int64_t> extents = shapeOf(indices);
  const auto rank = static_cast<int64_t>(shape.size()), indexRank = static_cast<int64_t>(extents.size());
  const int64_t length = indexRank > 0 ? extents.back() : 0;
  if (length < 1 || batchDims < 0 || batchDims >= indexRank || length > rank - batchDims ||
      shape.take_front(batchDims) != extents.take_front(batchDims)) {
    (void)misfit(node, indices, shape);
    return {};
  }
  if (length == 1)
    node.boundIds(node.moved(1), shape[batchDims]);
  BlocksByData named;
  named.blocks = llvm::product_of(shape.take_front(batchDims + length));
  named.size = llvm::product_of(shape.drop_front(batchDims + length));
  const int64_t batches = llvm::product_of(shape.take_front(batchDims));
  const int64_t tuples = typeOf(indices).getNumElements() / (batches * length);
  Value rows = node.reshape(indices, {batches, tuples, length});
  Position position;
  int64_t stride = 1;
  for (int64_t i = length; i-- > 0; stride *= shape[batchDims + i])
    position.addIndex(node, slab(node, rows, 2, i, 1), shape[batchDims + i], stride);
  if (batches > 1)
    position.add(node, counted(node, {batches, 1, 1}, batches, stride, "batches"));
  named.ids = position.ids(node, named.blocks);
  named.shape.assign(extents.begin(), extents.end() - 1);
  llvm::append_range(named.shape, shape.drop_front(batchDims + length));
  return named.ids ? std::optional(std::move(named)) : std::nullopt;
}

} // namespace sluice
