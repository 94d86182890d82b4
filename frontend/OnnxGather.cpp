// SPDX-License-Identifier: Apache-2.0
// Ops that take elements by indices: Gather and its kin as slabs, as embeddings, or as picked elements of rows.
#include "frontend/Compositions.h"
#include "frontend/DataPositions.h"
#include "frontend/IndexedPositions.h"

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

/// Runs of x, [blocks, size], at positions, in a shape.
Value blocksAt(NodeImport &node, Value x, const HostTensor &positions, int64_t size, ArrayRef<int64_t> shape) {
  const int64_t blocks = typeOf(x).getNumElements() / size;
  Value ids = node.indices(positions, "indices");
  return node.reshape(rowsOf(node, node.reshape(x, {blocks, size}), ids), shape);
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
  const int64_t batchDims = node.attributes.integer("batch_dims", 0);
  if (!x)
    return failure();
  const HostTensor *index = node.known(1);
  if (!index) {
    auto named = blocksByData(node, shapeOf(x), batchDims);
    return named ? node.result(node.reshape(rowsOf(node, node.reshape(x, {named->blocks, named->size}), named->ids),
                                            named->shape))
                 : failure();
  }
  Result<IndexedBlocks> named = blockPositions(shapeOf(x).vec(), *index, batchDims);
  return named ? node.result(blocksAt(node, x, named->positions, named->size, named->shape))
               : node.error(named.error());
}

} // namespace

void addGathers(NodeImporters &table) {
  table["Gather"] = importGather;
  table["GatherElements"] = importGatherElements;
  table["GatherND"] = importGatherNd;
}

} // namespace sluice
