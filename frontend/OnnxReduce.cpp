// SPDX-License-Identifier: Apache-2.0
// Reductions over chosen dimensions: sums of some function of the elements, maxima, products.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

/// Which dimensions of x a node reduces.
struct Reduction {
  Value x;
  SmallVector<bool> reduced;
  SmallVector<int64_t> kept, dropped; ///< shapes of the result, with reduced extents 1 and without them
  int64_t count = 1;                  ///< elements that become one
};

/// `x` is null after an error.
Reduction readReduction(NodeImport &node) {
  Reduction reduction;
  Value x = node.tensor(0);
  auto axes = node.integers("axes", 1);
  if (!x || !node.shared().error.empty())
    return reduction;
  const int64_t rank = typeOf(x).getRank();
  const bool none = !axes || axes->empty();
  reduction.reduced.assign(rank, none && !node.attributes.integer("noop_with_empty_axes", 0));
  for (int64_t given : axes.value_or(std::vector<int64_t>())) {
    int64_t axis = node.axis(given, rank);
    if (axis < 0)
      return reduction;
    reduction.reduced[axis] = true;
  }
  reduction.kept.assign(shapeOf(x).begin(), shapeOf(x).end());
  for (int64_t i = 0; i < rank; ++i) {
    if (reduction.reduced[i])
      reduction.count *= std::exchange(reduction.kept[i], 1);
    else
      reduction.dropped.push_back(reduction.kept[i]);
  }
  reduction.x = x;
  return reduction;
}

/// The result in the shape that the node asks for; null after an error.
LogicalResult finish(NodeImport &node, const Reduction &reduction, Value y) {
  if (!y)
    return failure();
  return node.result(node.attributes.integer("keepdims", 1) ? y : node.reshape(y, reduction.dropped));
}

Value sumOver(NodeImport &node, const Reduction &reduction, Value x, double factor = 1) {
  const bool same = x && factor == 1 && shapeOf(x) == ArrayRef<int64_t>(reduction.kept);
  return same ? x : summed(node, x, reduction.kept, factor);
}

/// The mean over all spatial dimensions of an image or a volume is a pool, which keeps its layout.
Value meanOver(NodeImport &node, const Reduction &reduction) {
  const auto &reduced = reduction.reduced;
  Value x = reduction.x;
  if (reduced.size() < 4 || reduced.size() > 5 || reduced[0] || reduced[1] ||
      !std::all_of(reduced.begin() + 2, reduced.end(), [](bool is) { return is; }))
    return sumOver(node, reduction, x, 1.0 / static_cast<double>(reduction.count));
  const SmallVector<int64_t> ones(reduced.size() - 2, 1), zeros(2 * ones.size(), 0);
  auto pool =
      node.make<train::AveragePoolOp>(x, shapeOf(x).drop_front(2), ones, zeros, false, false, DenseI64ArrayAttr());
  return pool ? pool.getY() : Value();
}

/// Largest elements, dimension by dimension: each one is the height of an image that a window of that height pools.
/// Equal ones count once, the first takes the gradient.
Value maximumOver(NodeImport &node, const Reduction &reduction, Value x) {
  for (size_t axis = 0; x && axis < reduction.reduced.size(); ++axis) {
    SmallVector<int64_t> shape(shapeOf(x));
    if (!reduction.reduced[axis] || shape[axis] == 1)
      continue;
    auto [outer, inner] = around(shape, axis);
    Value image = node.reshape(x, {outer, 1, shape[axis], inner});
    int64_t kernel[] = {shape[axis], 1}, ones[] = {1, 1}, zeros[] = {0, 0, 0, 0};
    auto pool = image ? node.make<train::MaxPoolOp>(image, kernel, ones, zeros, ones, false) : train::MaxPoolOp();
    shape[axis] = 1;
    x = pool ? node.reshape(pool.getY(), shape) : Value();
  }
  return x;
}

/// Halves multiplied with each other until one element is left.
Value productOver(NodeImport &node, const Reduction &reduction) {
  Value x = reduction.x;
  for (int64_t axis = 0; axis < static_cast<int64_t>(reduction.reduced.size()); ++axis)
    while (x && reduction.reduced[axis] && shapeOf(x)[axis] > 1) {
      const int64_t extent = shapeOf(x)[axis], half = extent / 2;
      Value second = slab(node, x, axis, half, half);
      Value halves = binary<train::MulOp>(node, slab(node, x, axis, 0, half), second);
      x = extent % 2 ? joined(node, {halves, slab(node, x, axis, extent - 1, 1)}, axis) : halves;
    }
  return x;
}

LogicalResult importReduceSum(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, sumOver(node, r, r.x));
}

LogicalResult importReduceMean(NodeImport &node) {
  Reduction r = readReduction(node);
  return r.x ? finish(node, r, meanOver(node, r)) : failure();
}

LogicalResult importReduceSumSquare(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, sumOver(node, r, binary<train::MulOp>(node, r.x, r.x)));
}

LogicalResult importReduceL1(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, sumOver(node, r, unary<train::AbsOp>(node, r.x)));
}

LogicalResult importReduceL2(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, lengthOf(node, sumOver(node, r, binary<train::MulOp>(node, r.x, r.x))));
}

LogicalResult importReduceLogSum(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, unary<train::LogOp>(node, sumOver(node, r, r.x)));
}

/// max + log(sum of e^(x - max)), so that nothing overflows.
LogicalResult importReduceLogSumExp(NodeImport &node) {
  Reduction r = readReduction(node);
  Value largest = maximumOver(node, r, r.x);
  Value terms = unary<train::ExpOp>(node, binary<train::SubOp>(node, r.x, largest));
  return finish(node, r, binary<train::AddOp>(node, largest, unary<train::LogOp>(node, sumOver(node, r, terms))));
}

LogicalResult importReduceMax(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, maximumOver(node, r, r.x));
}

LogicalResult importReduceMin(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, scaled(node, maximumOver(node, r, scaled(node, r.x, -1)), -1));
}

LogicalResult importReduceProd(NodeImport &node) {
  Reduction r = readReduction(node);
  return finish(node, r, productOver(node, r));
}

} // namespace

void addReductions(NodeImporters &table) {
  table["ReduceMean"] = importReduceMean;
  table["ReduceSum"] = importReduceSum;
  table["ReduceSumSquare"] = importReduceSumSquare;
  table["ReduceL1"] = importReduceL1;
  table["ReduceL2"] = importReduceL2;
  table["ReduceLogSum"] = importReduceLogSum;
  table["ReduceLogSumExp"] = importReduceLogSumExp;
  table["ReduceMax"] = importReduceMax;
  table["ReduceMin"] = importReduceMin;
  table["ReduceProd"] = importReduceProd;
}

} // namespace sluice
