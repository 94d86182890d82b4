// SPDX-License-Identifier: Apache-2.0
// Folding of ops that address elements of host tensors by indices: masks that are written slice by slice, tables of
// relative positions.
#include "frontend/Attributes.h"
#include "frontend/ConstantMovement.h"
#include "frontend/IndexedPositions.h"
#include <algorithm>

namespace sluice {
namespace {

/// Runs of `size` elements of `x`, by their positions in such runs.
Result<HostTensor> taken(const HostTensor &x, const HostTensor &positions, int64_t size, const Shape &shape) {
  auto result = HostTensor::zeros(shape, x.integral);
  if (!result)
    return tooLarge(shape);
  for (int64_t i = 0; i < result->size(); ++i)
    result->set(i, x, positions.ints[i / size] * size + i % size);
  return *result;
}

Result<HostTensor> gatherElements(const Fold &fold) {
  Result<int64_t> axis = axisAttribute(fold, 0, fold.in(0).shape.size());
  if (!axis)
    return axis.takeError();
  Result<HostTensor> positions = elementPositions(fold.in(0).shape, fold.in(1), *axis);
  return positions ? taken(fold.in(0), *positions, 1, positions->shape) : positions;
}

Result<HostTensor> gatherNd(const Fold &fold) {
  Result<IndexedBlocks> named =
      blockPositions(fold.in(0).shape, fold.in(1), Attributes(fold.node).integer("batch_dims", 0));
  return named ? taken(fold.in(0), named->positions, named->size, named->shape) : named.takeError();
}

/// Writes one update into x, where another element is already.
void meet(HostTensor &x, int64_t at, const HostTensor &updates, int64_t from, Scatter how) {
  if (how == Scatter::Replace)
    return x.set(at, updates, from);
  HostTensor value = *HostTensor::zeros({}, x.integral);
  value.set(0, updates, from);
  if (x.integral) {
    const auto a = static_cast<uint64_t>(x.ints[at]), b = static_cast<uint64_t>(value.ints[0]); // they wrap
    x.ints[at] = how == Scatter::Add        ? static_cast<int64_t>(a + b)
                 : how == Scatter::Multiply ? static_cast<int64_t>(a * b)
                 : how == Scatter::Largest  ? std::max(x.ints[at], value.ints[0])
                                            : std::min(x.ints[at], value.ints[0]);
    return;
  }
  const double a = x.floats[at], b = value.floats[0];
  x.floats[at] = static_cast<float>(how == Scatter::Add        ? a + b
                                    : how == Scatter::Multiply ? a * b
                                    : how == Scatter::Largest  ? std::max(a, b)
                                                               : std::min(a, b));
}

/// Input 0 with updates of `size` elements at each of `positions`, which the caller has checked to lie in it. One after
/// the other in the order of the updates: without a reduction the last one stays where several meet.
Result<HostTensor> scattered(const Fold &fold, const HostTensor &positions, int64_t size) {
  const std::string word = Attributes(fold.node).text("reduction", "none");
  const std::optional<Scatter> how = parseScatter(word);
  const HostTensor &updates = fold.in(2);
  if (!how)
    return Error{"reduction '" + word + "' is none of none, add, mul, max and min"};
  if (updates.size() != positions.size() * size || updates.integral != fold.in(0).integral)
    return Error{"updates of shape " + shapeText(updates.shape) + " do not fit indices of shape " +
                 shapeText(fold.in(1).shape) + " into a tensor of shape " + shapeText(fold.in(0).shape)};
  HostTensor result = fold.in(0);
  for (int64_t i = 0; i < updates.size(); ++i)
    meet(result, positions.ints[i / size] * size + i % size, updates, i, *how);
  return result;
}

Result<HostTensor> scatterElements(const Fold &fold) {
  Result<int64_t> axis = axisAttribute(fold, 0, fold.in(0).shape.size());
  if (!axis)
    return axis.takeError();
  Result<HostTensor> positions = elementPositions(fold.in(0).shape, fold.in(1), *axis);
  return positions ? scattered(fold, *positions, 1) : positions;
}

Result<HostTensor> scatterNd(const Fold &fold) {
  Result<IndexedBlocks> named = blockPositions(fold.in(0).shape, fold.in(1), /*batchDims=*/0);
  return named ? scattered(fold, named->positions, named->size) : named.takeError();
}

/// The second of `values` where the new dimension counts as an index says, the first elsewhere.
Result<HostTensor> oneHot(const Fold &fold) {
  const HostTensor &indices = fold.in(0), &depth = fold.in(1), &values = fold.in(2);
  if (depth.size() != 1 || values.size() != 2)
    return Error{"needs one depth and two values, has " + std::to_string(depth.size()) + " and " +
                 std::to_string(values.size())};
  const int64_t extent = toInteger(depth.number(0));
  Result<int64_t> axis =
      axisWithin(Attributes(fold.node).integer("axis", -1), static_cast<int64_t>(indices.shape.size()) + 1);
  if (!axis)
    return axis.takeError();
  Shape shape = indices.shape;
  shape.insert(shape.begin() + *axis, extent);
  auto result = HostTensor::zeros(shape, values.integral);
  if (!result)
    return tooLarge(shape);
  for (int64_t i = 0; i < result->size(); ++i)
    result->set(i, values, 0);
  const int64_t inner = extentAfter(shape, *axis);
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t index = toInteger(indices.number(i)), at = index < 0 && index >= -extent ? index + extent : index;
    if (at >= 0 && at < extent)
      result->set((i / inner * extent + at) * inner + i % inner, values, 1);
  }
  return *result;
}

/// [rank, count]: where elements are not zero.
Result<HostTensor> nonZero(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.size(); ++i)
    if (x.number(i) != 0)
      found.push_back(i);
  const Shape shape = {static_cast<int64_t>(x.shape.size()), static_cast<int64_t>(found.size())};
  auto result = HostTensor::zeros(shape, /*integral=*/true);
  if (!result)
    return tooLarge(shape);
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t axis = x.shape.size(), rest = found[i]; axis-- > 0; rest /= x.shape[axis])
      result->ints[axis * found.size() + i] = static_cast<int64_t>(rest % x.shape[axis]);
  return *result;
}

Result<HostTensor> tile(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  Result<Shape> repeats = integers(fold, 1, "repeats");
  if (!repeats)
    return repeats.takeError();
  if (repeats->size() != x.shape.size())
    return Error{"has " + std::to_string(repeats->size()) + " repeats for rank " + std::to_string(x.shape.size())};
  Shape shape = x.shape;
  for (size_t i = 0; i < shape.size(); ++i)
    if ((*repeats)[i] < 0 || __builtin_mul_overflow(shape[i], (*repeats)[i], &shape[i]))
      return Error{"cannot repeat an extent of " + std::to_string(x.shape[i]) + " " + std::to_string((*repeats)[i]) +
                   " times"};
  auto result = HostTensor::zeros(shape, x.integral);
  if (!result)
    return tooLarge(shape);
  for (int64_t i = 0; i < result->size(); ++i) {
    // From the last axis on, `rest` is split into indices and `stride` into what a step skips in x.
    int64_t from = 0, rest = i, stride = 1;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis], stride *= x.shape[axis])
      from += rest % shape[axis] % x.shape[axis] * stride;
    result->set(i, x, from);
  }
  return *result;
}

/// The upper or lower triangles of matrices, the rest zero.
Result<HostTensor> trilu(const Fold &fold) {
  HostTensor result = fold.in(0);
  const size_t rank = result.shape.size();
  if (rank < 2 || (fold.has(1) && (!fold.in(1).integral || fold.in(1).size() != 1)))
    return Error{"needs matrices and a whole number for the diagonal, has " + shapeText(result.shape)};
  const int64_t rows = result.shape[rank - 2], columns = result.shape[rank - 1],
                diagonal = fold.has(1) ? std::clamp<int64_t>(fold.in(1).ints[0], -rows, columns) : 0;
  const bool upper = Attributes(fold.node).integer("upper", 1);
  const HostTensor zero = *HostTensor::zeros({}, result.integral);
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t distance = i % columns - i / columns % rows;
    if (upper ? distance < diagonal : distance > diagonal)
      result.set(i, zero, 0);
  }
  return result;
}

} // namespace

void addIndexing(Folders &table) {
  table["GatherElements"] = gatherElements;
  table["GatherND"] = gatherNd;
  table["ScatterElements"] = scatterElements;
  table["ScatterND"] = scatterNd;
  table["OneHot"] = oneHot;
  table["NonZero"] = nonZero;
  table["Tile"] = tile;
  table["Trilu"] = trilu;
}

} // namespace sluice
