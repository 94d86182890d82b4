// SPDX-License-Identifier: Apache-2.0
// Ops that address elements by indices: Gather and its kin as slabs or as embeddings, scatters as embeddings of what is
// there with the updates behind it.
#include "frontend/Compositions.h"
#include "frontend/IndexedPositions.h"
#include <limits>

using namespace mlir;

namespace sluice {
namespace {

/// First of the rows that constant indices name when they are neighbours in order; -1 otherwise, or after an error.
int64_t firstOfRun(NodeImport &node, const HostTensor &index, int64_t extent) {
  int64_t first = -1;
  for (int64_t i = 0; i < index.size(); ++i) {
    int64_t at = index.ints[i] < 0 ? index.ints[i] + extent : index.ints[i];
    if (at < 0 || at >= extent) {
      (void)node.error("index " + std::to_string(index.ints[i]) + " is outside the extent " + std::to_string(extent));
      return -1;
    }
    if (i == 0)
      first = at;
    else if (at != first + i)
      return -1;
  }
  return first;
}

/// The rows of a table [rows, ...] that ids name; null after an error.
Value rowsOf(NodeImport &node, Value table, Value ids) {
  auto op = table && ids ? node.make<train::EmbeddingOp>(table, ids) : train::EmbeddingOp();
  return op ? op.getY() : Value();
}

/// x with the dimension `axis` replaced by those of ids, which count along it: an embedding of x with that dimension in
/// front.
Value gathered(NodeImport &node, Value x, int64_t axis, Value ids) {
  if (axis == 0)
    return rowsOf(node, x, ids);
  SmallVector<int64_t> shape(shapeOf(x).take_front(axis));
  llvm::append_range(shape, shapeOf(ids));
  llvm::append_range(shape, shapeOf(x).drop_front(axis + 1));
  auto [outer, inner] = around(shapeOf(x), axis);
  const int64_t extent = shapeOf(x)[axis], count = typeOf(ids).getNumElements(), turn[] = {1, 0, 2};
  Value table = outer == 1 ? x : permuted(node, node.reshape(x, {outer, extent, inner}), turn);
  Value rows = rowsOf(node, node.reshape(table, {extent, outer * inner}), ids);
  if (outer > 1)
    rows = permuted(node, node.reshape(rows, {count, outer, inner}), turn);
  return node.reshape(rows, shape);
}

/// Neighbours that constant indices name are a slab, without its dimension when the index is a scalar; others, and
/// indices that are data, make an embedding.
LogicalResult importGather(NodeImport &node) {
  const HostTensor *index = node.known(1);
  Use use;
  if (!index || !index->shape.empty()) // several rows
    use.kind = Use::Table;
  Value x = node.tensor(0, use);
  int64_t axis = x ? node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank()) : -1;
  if (axis < 0)
    return failure();
  const int64_t extent = shapeOf(x)[axis];
  const bool constant = index && index->integral && index->size() > 0;
  const int64_t first = constant ? firstOfRun(node, *index, extent) : -1;
  if (!node.shared().error.empty())
    return failure();
  if (first >= 0) {
    SmallVector<int64_t> shape(shapeOf(x).take_front(axis));
    llvm::append_range(shape, index->shape);
    llvm::append_range(shape, shapeOf(x).drop_front(axis + 1));
    return node.result(node.reshape(slab(node, x, axis, first, index->size()), shape));
  }
  Value ids = node.ids(1, extent);
  return ids ? node.result(gathered(node, x, axis, ids)) : failure();
}

/// The indices of the others, which address elements of the flattened operand. Null after an error.
const HostTensor *constantIndices(NodeImport &node) { return node.constant(1, "indices of single elements"); }

/// Runs of x, [blocks, size], at positions, in a shape.
Value blocksAt(NodeImport &node, Value x, const HostTensor &positions, int64_t size, ArrayRef<int64_t> shape) {
  const int64_t blocks = typeOf(x).getNumElements() / size;
  return node.reshape(rowsOf(node, node.reshape(x, {blocks, size}), node.indices(positions, "indices")), shape);
}

LogicalResult importGatherElements(NodeImport &node) {
  Value x = node.tensor(0, {Use::Table});
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank()) : -1;
  if (axis < 0)
    return failure();
  const HostTensor *index = node.known(1);
  if (!index)
    return gatherByData(node, x, axis);
  Result<HostTensor> positions = elementPositions(shapeOf(x).vec(), *index, axis);
  if (!positions)
    return node.error(positions.error());
  const std::vector<int64_t> shape = std::exchange(positions->shape, {positions->size()});
  return node.result(blocksAt(node, x, *positions, 1, shape));
}

LogicalResult importGatherNd(NodeImport &node) {
  Value x = node.tensor(0, {Use::Table});
  const HostTensor *index = x ? constantIndices(node) : nullptr;
  if (!index)
    return failure();
  Result<IndexedBlocks> named = blockPositions(shapeOf(x).vec(), *index, node.attributes.integer("batch_dims", 0));
  return named ? node.result(blocksAt(node, x, named->positions, named->size, named->shape))
               : node.error(named.error());
}

/// One behind the other, [old + added, size].
Value stacked(NodeImport &node, Value old, Value added) { return old ? joined(node, {old, added}, 0) : added; }

/// x [blocks, size] with the updates [count, size] in place of the blocks at their positions; of several the last one.
Value replaced(NodeImport &node, Value x, Value updates, const HostTensor &positions) {
  const int64_t blocks = shapeOf(x)[0], count = positions.size();
  HostTensor ids = *HostTensor::zeros({blocks}, /*integral=*/true);
  std::fill(ids.ints.begin(), ids.ints.end(), -1);
  for (int64_t i = 0; i < count; ++i)
    ids.ints[positions.ints[i]] = i;
  const bool all = !llvm::is_contained(ids.ints, -1);
  for (int64_t i = 0; i < blocks && !all; ++i)
    ids.ints[i] = ids.ints[i] < 0 ? i : blocks + ids.ints[i];
  return rowsOf(node, stacked(node, all ? Value() : x, updates), node.indices(std::move(ids), "indices"));
}

/// What leaves any other number as it is.
double neutral(Scatter how) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return how == Scatter::Add ? 0 : how == Scatter::Multiply ? 1 : how == Scatter::Largest ? -infinity : infinity;
}

/// Of equal ones the first takes the gradient.
Value met(NodeImport &node, Value a, Value b, Scatter how) {
  if (how == Scatter::Add)
    return binary<train::AddOp>(node, a, b);
  if (how == Scatter::Multiply)
    return binary<train::MulOp>(node, a, b);
  const bool largest = how == Scatter::Largest;
  Value first = compared(node, largest ? b : a, largest ? a : b, train::Comparison::LessOrEqual);
  return selected(node, first, a, b);
}

/// x [blocks, size] with the updates at their positions added to it, or whatever `how` says: all blocks' first updates
/// at once, then their second and so on; where a block has no more, a row that changes nothing.
Value combined(NodeImport &node, Value x, Value updates, const HostTensor &positions, Scatter how) {
  constexpr size_t mostSums = 16;
  const int64_t blocks = shapeOf(x)[0], count = positions.size();
  std::vector<std::vector<int64_t>> rounds;
  std::vector<size_t> seen(blocks, 0);
  for (int64_t i = 0; i < count; ++i) {
    const size_t round = seen[positions.ints[i]]++;
    if (round >= mostSums) {
      (void)node.error("lets more than " + std::to_string(mostSums) + " updates meet in one place, which is not " +
                       "supported; sum them before");
      return {};
    }
    if (round == rounds.size())
      rounds.emplace_back(blocks, count); // the row that changes nothing
    rounds[round][positions.ints[i]] = i;
  }
  Value table = joined(node, {updates, node.filled({1, shapeOf(x)[1]}, neutral(how), "nothing")}, 0);
  for (size_t round = 0; x && round < rounds.size(); ++round) {
    Value ids = node.indices(HostTensor::vector(std::move(rounds[round])), "indices" + std::to_string(round));
    x = met(node, x, rowsOf(node, table, ids), how);
  }
  return x;
}

/// x with updates at positions of its blocks of `size` elements.
LogicalResult scatter(NodeImport &node, Value x, const HostTensor &positions, int64_t size) {
  const std::string word = node.attributes.text("reduction", "none");
  const std::optional<Scatter> how = parseScatter(word);
  if (!how)
    return node.error("reduction '" + word + "' is none of none, add, mul, max and min");
  Value updates = node.tensor(2);
  if (!updates)
    return failure();
  const int64_t blocks = typeOf(x).getNumElements() / size, count = positions.size();
  if (typeOf(updates).getNumElements() / size != count || typeOf(updates).getNumElements() % size)
    return node.error("updates of shape " + shapeText(shapeOf(updates).vec()) + " do not fit " + std::to_string(count) +
                      " places of " + std::to_string(size) + " elements in a tensor of shape " +
                      shapeText(shapeOf(x).vec()));
  if (!HostTensor::fits({blocks}))
    return node.error("writes into " + std::to_string(blocks) + " places, more than the " +
                      std::to_string(HostTensor::maximumElements) + " that are computed at compile time");
  Value rows = node.reshape(x, {blocks, size}), added = node.reshape(updates, {count, size});
  if (!rows || !added)
    return failure();
  Value y =
      how == Scatter::Replace ? replaced(node, rows, added, positions) : combined(node, rows, added, positions, *how);
  return node.result(node.reshape(y, shapeOf(x)));
}

LogicalResult importScatterElements(NodeImport &node) {
  Value x = node.tensor(0);
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank()) : -1;
  const HostTensor *index = axis >= 0 ? constantIndices(node) : nullptr;
  if (!index)
    return failure();
  Result<HostTensor> positions = elementPositions(shapeOf(x).vec(), *index, axis);
  return positions ? scatter(node, x, *positions, 1) : node.error(positions.error());
}

LogicalResult importScatterNd(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *index = x ? constantIndices(node) : nullptr;
  if (!index)
    return failure();
  Result<IndexedBlocks> named = blockPositions(shapeOf(x).vec(), *index, /*batchDims=*/0);
  return named ? scatter(node, x, named->positions, named->size) : node.error(named.error());
}

} // namespace

void addGathers(NodeImporters &table) {
  table["Gather"] = importGather;
  table["GatherElements"] = importGatherElements;
  table["GatherND"] = importGatherNd;
  table["Scatter"] = importScatterElements; // its name before opset 11
  table["ScatterElements"] = importScatterElements;
  table["ScatterND"] = importScatterNd;
}

} // namespace sluice
