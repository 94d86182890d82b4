// SPDX-License-Identifier: Apache-2.0
// Ops that move no values (Reshape, Flatten, Squeeze, Unsqueeze) or move them all (Transpose, DepthToSpace), Expand and
// Softmax.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

LogicalResult importReshape(NodeImport &node) {
  Value x = node.moved(0);
  auto given = x ? node.integers("shape", 1) : std::nullopt;
  if (!given)
    return failure();
  ArrayRef<int64_t> from = shapeOf(x);
  SmallVector<int64_t> shape(given->begin(), given->end());
  // Files exported with a fixed batch hold it as a literal, which --batch replaces.
  int64_t stale = node.graph().replacedBatch;
  if (stale && !shape.empty() && shape[0] == stale && !from.empty() && from[0] == node.graph().batch)
    shape[0] = node.graph().batch;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < from.size() && !node.attributes.integer("allowzero", 0))
      shape[i] = from[i];
    if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
      return node.error("shape " + shapeText(*given) + " is not valid");
    if (shape[i] == -1)
      open = i;
    else if (__builtin_mul_overflow(known, shape[i], &known))
      return node.error("the size of shape " + shapeText(*given) + " overflows");
  }
  if (open >= 0)
    shape[open] = known > 0 ? typeOf(x).getNumElements() / known : 0;
  return node.result(viewed(node, x, shape));
}

LogicalResult importFlatten(NodeImport &node) {
  Value x = node.moved(0);
  if (!x)
    return failure();
  int64_t rank = typeOf(x).getRank(), axis = node.attributes.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return node.error("axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  axis += axis < 0 ? rank : 0;
  SmallVector<int64_t> shape = {1, 1};
  for (int64_t i = 0; i < rank; ++i)
    shape[i < axis ? 0 : 1] *= shapeOf(x)[i];
  return node.result(node.reshape(x, shape));
}

LogicalResult importSqueeze(NodeImport &node) {
  Value x = node.moved(0);
  auto axes = node.integers("axes", 1);
  if (!x || !node.shared().error.empty())
    return failure();
  int64_t rank = typeOf(x).getRank();
  SmallVector<bool> dropped(rank, false);
  for (int64_t given : axes.value_or(std::vector<int64_t>())) {
    int64_t axis = node.axis(given, rank);
    if (axis < 0)
      return failure();
    if (shapeOf(x)[axis] != 1)
      return node.error("cannot squeeze dimension " + std::to_string(axis) + " of extent " +
                        std::to_string(shapeOf(x)[axis]));
    dropped[axis] = true;
  }
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < rank; ++i)
    if (axes ? !dropped[i] : shapeOf(x)[i] != 1)
      shape.push_back(shapeOf(x)[i]);
  return node.result(node.reshape(x, shape));
}

LogicalResult importUnsqueeze(NodeImport &node) {
  Value x = node.moved(0);
  auto axes = node.integers("axes", 1);
  if (!x || !node.shared().error.empty())
    return failure();
  if (!axes)
    return node.error("axes are missing");
  int64_t rank = typeOf(x).getRank() + axes->size();
  std::vector<bool> added(rank, false);
  for (int64_t given : *axes) {
    int64_t axis = node.axis(given, rank);
    if (axis < 0)
      return failure();
    if (added[axis])
      return node.error("axis " + std::to_string(given) + " is given twice");
    added[axis] = true;
  }
  SmallVector<int64_t> shape;
  auto next = shapeOf(x).begin();
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(added[i] ? 1 : *next++);
  return node.result(viewed(node, x, shape));
}

/// A transposition of more dimensions than tensors have: neighbours that stay neighbours count as one dimension, those
/// of extent 1 as none.
LogicalResult transposeTall(NodeImport &node, Value x, ArrayRef<int64_t> permutation) {
  const int64_t rank = typeOf(x).getRank();
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (permutation.size() != all.size() || !std::is_permutation(all.begin(), all.end(), permutation.begin()))
    return node.error("perm is no permutation of " + std::to_string(rank) + " dimensions");
  SmallVector<int64_t> shape, next(rank, -1); // of the result; the next dimension of x with more than one element
  for (int64_t i = rank - 1, behind = -1; i >= 0; --i) {
    next[i] = behind;
    behind = shapeOf(x)[i] == 1 ? behind : i;
  }
  struct Group {
    int64_t first, last, extent;
  };
  SmallVector<Group> groups; // in the order of the result
  for (int64_t i : permutation) {
    const int64_t extent = shapeOf(x)[i];
    shape.push_back(extent);
    if (extent == 1)
      continue;
    if (!groups.empty() && next[groups.back().last] == i)
      groups.back() = {groups.back().first, i, groups.back().extent * extent};
    else
      groups.push_back({i, i, extent});
  }
  SmallVector<int64_t> merged, order; // of x; where each group of the result is among them
  SmallVector<Group> sorted = groups;
  llvm::sort(sorted, [](const Group &a, const Group &b) { return a.first < b.first; });
  for (const Group &group : sorted)
    merged.push_back(group.extent);
  for (const Group &group : groups)
    order.push_back(llvm::find_if(sorted, [&](const Group &one) { return one.first == group.first; }) - sorted.begin());
  return node.result(viewed(node, permuted(node, node.reshape(x, merged), order), shape));
}

LogicalResult importTranspose(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  std::vector<int64_t> permutation = node.attributes.integers("perm");
  if (permutation.empty())
    for (int64_t i = typeOf(x).getRank(); i > 0; --i)
      permutation.push_back(i - 1);
  if (isTall(node, shapeOf(x).size()))
    return transposeTall(node, x, permutation);
  return node.result(node.folded(node.make<train::TransposeOp>(x, ArrayRef<int64_t>(permutation))));
}

/// Both orders of blocks are a reshape to six dimensions and a transpose.
template <bool toSpace> LogicalResult importBlocks(NodeImport &node) {
  Value x = node.tensor(0);
  int64_t block = node.attributes.integer("blocksize", 0);
  if (!x)
    return failure();
  auto s = shapeOf(x);
  int64_t area = block > 0 && block < (1 << 15) ? block * block : 0;
  if (s.size() != 4 || !area || (toSpace ? s[1] % area : s[2] % block || s[3] % block))
    return node.error("block size " + std::to_string(block) + " does not fit shape " + shapeText(s.vec()));
  bool columnsFirst = node.attributes.text("mode", "DCR") == "CRD";
  SmallVector<int64_t> split, order, merged;
  if (!toSpace) {
    split = {s[0], s[1], s[2] / block, block, s[3] / block, block};
    order = {0, 3, 5, 1, 2, 4};
    merged = {s[0], s[1] * area, s[2] / block, s[3] / block};
  } else if (columnsFirst) {
    split = {s[0], s[1] / area, block, block, s[2], s[3]};
    order = {0, 1, 4, 2, 5, 3};
    merged = {s[0], s[1] / area, s[2] * block, s[3] * block};
  } else {
    split = {s[0], block, block, s[1] / area, s[2], s[3]};
    order = {0, 3, 4, 1, 5, 2};
    merged = {s[0], s[1] / area, s[2] * block, s[3] * block};
  }
  auto op = node.make<train::TransposeOp>(node.reshape(x, split), ArrayRef<int64_t>(order));
  return op ? node.result(node.reshape(op, merged)) : failure();
}

LogicalResult importExpand(NodeImport &node) {
  Value x = node.tensor(0);
  auto given = x ? node.integers("shape", 1) : std::nullopt;
  if (!given)
    return failure();
  auto shape = broadcastShapes(shapeOf(x).vec(), *given);
  if (!shape || !elementCount(*shape))
    return node.error("cannot expand " + shapeText(shapeOf(x).vec()) + " to " + shapeText(*given));
  return node.result(node.makeAs<train::BroadcastToOp>(*shape, x, node.f32(1)));
}

/// Before opset 13 the dimensions from `axis` on were flattened into the one that is normalized.
template <bool logarithm> LogicalResult importSoftmax(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  bool flattens = node.opset < 13;
  int64_t rank = typeOf(x).getRank(), axis = node.axis(node.attributes.integer("axis", flattens ? 1 : -1), rank);
  if (axis < 0)
    return failure();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? outer : inner) *= shapeOf(x)[i];
  bool several = flattens && inner != shapeOf(x)[axis];
  Value flat = several ? node.reshape(x, {outer, inner}) : x;
  auto op = node.make<train::SoftmaxOp>(flat, static_cast<uint64_t>(several ? 1 : axis), logarithm);
  return op ? node.result(node.reshape(op, shapeOf(x))) : failure();
}

} // namespace

void addViews(NodeImporters &table) {
  table["Reshape"] = importReshape;
  table["Flatten"] = importFlatten;
  table["Squeeze"] = importSqueeze;
  table["Unsqueeze"] = importUnsqueeze;
  table["Transpose"] = importTranspose;
  table["DepthToSpace"] = importBlocks<true>;
  table["SpaceToDepth"] = importBlocks<false>;
  table["Expand"] = importExpand;
  table["Softmax"] = importSoftmax<false>;
  table["LogSoftmax"] = importSoftmax<true>;
}

} // namespace sluice
