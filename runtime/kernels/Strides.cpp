// SPDX-License-Identifier: Apache-2.0
// Strides of reorders, reshapes, sums and slabs.
#include "runtime/kernels/Strides.h"

#include <algorithm>

namespace sluice {

namespace {

using Dimensions = std::vector<StridedDimension>;

[[noreturn]] void reject(const char *op, const char *node, const std::string &what) {
  throw std::invalid_argument(std::string(op) + " '" + node + "': " + what);
}

Dimensions permuted(const char *node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation) {
  const std::vector<int64_t> sx = physicalStrides(x), sy = physicalStrides(y);
  if (permutation.size() != sx.size() || sx.size() != sy.size())
    reject("reorder", node,
           "ranks " + std::to_string(sx.size()) + " and " + std::to_string(sy.size()) + " with a permutation of " +
               std::to_string(permutation.size()));
  Dimensions result;
  for (int i = 0; i < y.shape.rank; ++i) {
    const int from = permutation.begin()[i];
    if (from < 0 || from >= x.shape.rank || x.shape[from] != y.shape[i])
      reject("reorder", node,
             "dimension " + std::to_string(i) + " of extent " + std::to_string(y.shape[i]) +
                 " does not match input dimension " + std::to_string(from));
    result.push_back({y.shape[i], sx[static_cast<size_t>(from)], sy[static_cast<size_t>(i)]});
  }
  return result;
}

/// Equal row-major element order, different shapes: splits both sides' dimensions, innermost first, until they agree.
Dimensions reshaped(const char *node, const Tensor &x, const Tensor &y) {
  const std::vector<int64_t> sx = physicalStrides(x), sy = physicalStrides(y);
  Dimensions result;
  int i = x.shape.rank - 1, j = y.shape.rank - 1;
  int64_t leftX = i >= 0 ? x.shape[i] : 1,
          leftY = j >= 0 ? y.shape[j] : 1; // parts not yet matched, and their strides' factors
  int64_t doneX = 1, doneY = 1;
  while (i >= 0 || j >= 0) {
    if (i >= 0 && leftX == 1) {
      leftX = --i >= 0 ? x.shape[i] : 1, doneX = 1;
      continue;
    }
    if (j >= 0 && leftY == 1) {
      leftY = --j >= 0 ? y.shape[j] : 1, doneY = 1;
      continue;
    }
    const int64_t part = std::min(leftX, leftY);
    if (i < 0 || j < 0 || leftX % part || leftY % part)
      reject("reorder", node,
             "extents " + std::to_string(leftX) + " and " + std::to_string(leftY) + " have no common split");
    result.push_back({part, sx[static_cast<size_t>(i)] * doneX, sy[static_cast<size_t>(j)] * doneY});
    leftX /= part, leftY /= part, doneX *= part, doneY *= part;
  }
  return result;
}

/// Outermost first in y's memory, neighbours merged that both sides walk alike.
Dimensions simplified(Dimensions all) {
  all.erase(std::remove_if(all.begin(), all.end(), [](const StridedDimension &d) { return d.extent == 1; }), all.end());
  std::sort(all.begin(), all.end(),
            [](const StridedDimension &a, const StridedDimension &b) { return a.strideY > b.strideY; });
  Dimensions result;
  for (const StridedDimension &d : all)
    if (!result.empty() && result.back().strideX == d.extent * d.strideX &&
        result.back().strideY == d.extent * d.strideY)
      result.back() = {result.back().extent * d.extent, d.strideX, d.strideY};
    else
      result.push_back(d);
  if (result.empty())
    result.push_back({1, 1, 1});
  return result;
}

} // namespace

std::vector<int> physicalOrder(const Tensor &tensor) {
  std::vector<int> order;
  for (int i = 0; i < tensor.shape.rank; ++i)
    order.push_back(dimensionAt(i, tensor.shape.rank, tensor.layout));
  return order;
}

std::vector<int64_t> physicalStrides(const Tensor &tensor) {
  std::vector<int64_t> strides(static_cast<size_t>(tensor.shape.rank));
  const std::vector<int> order = physicalOrder(tensor);
  int64_t step = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[static_cast<size_t>(*d)] = step;
    step *= tensor.shape[*d];
  }
  return strides;
}

Dimensions reorderDimensions(const char *node, const Tensor &x, const Tensor &y,
                             std::initializer_list<int> permutation) {
  const auto real = [](const Tensor &t) { return t.type == DataType::F32 || isHalf(t.type); };
  const bool casts = (real(x) && real(y)) || (x.type == DataType::I64 && y.type == DataType::F32) ||
                     (x.type == DataType::F32 && y.type == DataType::I64);
  if ((x.type != y.type && !casts) || x.shape.elements() != y.shape.elements())
    reject("reorder", node,
           std::to_string(x.shape.elements()) + " elements of " + std::to_string(byteWidth(x.type)) + " bytes become " +
               std::to_string(y.shape.elements()) + " of " + std::to_string(byteWidth(y.type)));
  return simplified(permutation.size() ? permuted(node, x, y, permutation) : reshaped(node, x, y));
}

std::vector<SumDimension> sumDimensions(const char *node, const Tensor &x, const Tensor &y) {
  int64_t strideY[Shape::maxRank] = {};
  const int missing = x.shape.rank - y.shape.rank;
  int64_t step = 1;
  const std::vector<int> orderY = physicalOrder(y);
  for (auto d = orderY.rbegin(); d != orderY.rend(); ++d) {
    if (missing < 0 || (y.shape[*d] != 1 && y.shape[*d] != x.shape[missing + *d]))
      throw std::invalid_argument(std::string("sum of '") + node + "': extent " + std::to_string(y.shape[*d]) +
                                  " in dimension " + std::to_string(*d) + " does not match the operand of rank " +
                                  std::to_string(x.shape.rank));
    strideY[missing + *d] = y.shape[*d] == 1 ? 0 : step;
    step *= y.shape[*d];
  }
  std::vector<SumDimension> result;
  int64_t strideX = 1;
  const std::vector<int> orderX = physicalOrder(x);
  for (auto d = orderX.rbegin(); d != orderX.rend(); ++d) { // innermost first
    const SumDimension next{x.shape[*d], strideX, strideY[*d], strideY[*d] == 0};
    strideX *= x.shape[*d];
    if (next.extent == 1)
      continue;
    if (!result.empty() && result.back().reduced == next.reduced &&
        next.strideY == result.back().strideY * result.back().extent)
      result.back().extent *= next.extent;
    else
      result.push_back(next);
  }
  if (result.empty())
    result.push_back({1, 1, 0, true});
  return result; // x is contiguous, so merging never looks at its strides
}

/// Whether x is y but for its extent along `axis`.
static bool isSlab(const Tensor &y, const Tensor &x, int axis) {
  bool same = x.type == y.type && x.layout == y.layout && x.shape.rank == y.shape.rank;
  for (int i = 0; i < y.shape.rank && same; ++i)
    same = i == axis || x.shape[i] == y.shape[i];
  return same;
}

JoinedRows joinedRows(const char *node, const Tensor &y, TensorList xs, int axis) {
  if (axis < 0 || axis >= y.shape.rank)
    reject("join", node, "axis " + std::to_string(axis) + " is not one of " + std::to_string(y.shape.rank));
  const int64_t step = physicalStrides(y)[static_cast<size_t>(axis)] * static_cast<int64_t>(byteWidth(y.type));
  JoinedRows rows{0, y.shape[axis] * step, {}};
  int64_t together = 0;
  for (const Tensor &x : xs) {
    if (!isSlab(y, x, axis))
      reject("join", node,
             "operand " + std::to_string(rows.widths.size()) + " has another type, layout or extent than the result");
    rows.widths.push_back(x.shape[axis] * step);
    together += x.shape[axis];
  }
  if (together != y.shape[axis])
    reject("join", node,
           "operands have " + std::to_string(together) + " of " + std::to_string(y.shape[axis]) + " in dimension " +
               std::to_string(axis));
  rows.outer = rows.bytes ? static_cast<int64_t>(y.bytes()) / rows.bytes : 0;
  return rows;
}

Slab::Slab(Node node, const Tensor &large, const Tensor &small, int axis, int64_t begin) : Kernel(node) {
  if (large.type != small.type || large.layout != small.layout || large.shape.rank != small.shape.rank || axis < 0 ||
      axis >= large.shape.rank)
    reject("slab", node,
           "types, layouts and ranks differ, or axis " + std::to_string(axis) + " is not one of " +
               std::to_string(large.shape.rank));
  for (int i = 0; i < large.shape.rank; ++i)
    if (i == axis ? begin < 0 || begin + small.shape[i] > large.shape[i] : small.shape[i] != large.shape[i])
      reject("slab", node,
             "extent " + std::to_string(small.shape[i]) + " at " + std::to_string(i == axis ? begin : 0) + " of " +
                 std::to_string(large.shape[i]) + " in dimension " + std::to_string(i));
  const auto step = physicalStrides(large)[static_cast<size_t>(axis)] * static_cast<int64_t>(byteWidth(large.type));
  start = begin * step;
  largeStride = large.shape[axis] * step;
  smallStride = small.shape[axis] * step;
  outer = largeStride ? static_cast<int64_t>(large.bytes()) / largeStride : 0;
}

} // namespace sluice
