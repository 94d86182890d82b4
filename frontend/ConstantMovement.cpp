// SPDX-License-Identifier: Apache-2.0
// Folding of ops that move elements of host tensors. Axes come from an attribute or, in later opsets, from an input.
#include "frontend/ConstantMovement.h"
#include "frontend/Attributes.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace sluice {

Error tooLarge(const Shape &shape) {
  return {"constant of shape " + shapeText(shape) + " is too large to fold", Error::Kind::TooLarge};
}

Result<Shape> integers(const Fold &fold, size_t input, const char *name) {
  if (!fold.has(input))
    return Attributes(fold.node).integers(name);
  if (!fold.in(input).integral)
    return Error{std::string(name) + " must be integers"};
  return fold.in(input).ints;
}

Result<int64_t> axisWithin(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return Error{"axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank)};
  return axis < 0 ? axis + rank : axis;
}

Result<Shape> axes(const Fold &fold, size_t input, int64_t rank) {
  Result<Shape> given = integers(fold, input, "axes");
  if (!given)
    return given;
  for (int64_t &axis : *given) {
    Result<int64_t> within = axisWithin(axis, rank);
    if (!within)
      return within.takeError();
    axis = *within;
  }
  return given;
}

Result<int64_t> axisAttribute(const Fold &fold, int64_t otherwise, int64_t rank) {
  return axisWithin(Attributes(fold.node).integer("axis", otherwise), rank);
}

int64_t extentBefore(const Shape &shape, int64_t axis) {
  return std::accumulate(shape.begin(), shape.begin() + axis, int64_t(1), std::multiplies<>());
}
int64_t extentAfter(const Shape &shape, int64_t axis) {
  return std::accumulate(shape.begin() + axis + 1, shape.end(), int64_t(1), std::multiplies<>());
}

namespace {

Result<HostTensor> gather(const Fold &fold) {
  const HostTensor &data = fold.in(0), &indices = fold.in(1);
  if (!indices.integral)
    return Error{"indices must be integers"};
  Result<int64_t> axis = axisAttribute(fold, 0, data.shape.size());
  if (!axis)
    return axis.takeError();
  Shape shape(data.shape.begin(), data.shape.begin() + *axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + *axis + 1, data.shape.end());
  auto result = HostTensor::zeros(shape, data.integral);
  if (!result)
    return tooLarge(shape);
  int64_t extent = data.shape[*axis], inner = extentAfter(data.shape, *axis), at = 0;
  for (int64_t outer = 0; outer < extentBefore(data.shape, *axis); ++outer)
    for (int64_t index : indices.ints) {
      int64_t row = index < 0 ? index + extent : index;
      if (row < 0 || row >= extent)
        return Error{"index " + std::to_string(index) + " is outside the extent " + std::to_string(extent)};
      for (int64_t i = 0; i < inner; ++i)
        result->set(at++, data, (outer * extent + row) * inner + i);
    }
  return *result;
}

Result<HostTensor> concat(const Fold &fold) {
  const HostTensor &first = fold.in(0);
  Result<int64_t> axis = axisAttribute(fold, 0, first.shape.size());
  if (!axis)
    return axis.takeError();
  Shape shape = first.shape;
  shape[*axis] = 0;
  for (size_t i = 0; i < fold.inputs.size(); ++i) {
    if (!fold.has(i) || fold.in(i).shape.size() != shape.size() || fold.in(i).integral != first.integral)
      return Error{"operands of unlike rank or type"};
    shape[*axis] += fold.in(i).shape[*axis];
  }
  auto result = HostTensor::zeros(shape, first.integral);
  if (!result)
    return tooLarge(shape);
  int64_t at = 0, inner = extentAfter(shape, *axis);
  for (int64_t outer = 0; outer < extentBefore(shape, *axis); ++outer)
    for (const HostTensor *part : fold.inputs) {
      int64_t run = part->shape[*axis] * inner;
      if (extentBefore(part->shape, *axis) != extentBefore(shape, *axis) || (outer + 1) * run > part->size() ||
          at + run > result->size())
        return Error{"shapes " + shapeText(first.shape) + " and " + shapeText(part->shape) + " do not join"};
      for (int64_t i = 0; i < run; ++i)
        result->set(at++, *part, outer * run + i);
    }
  return *result;
}

Result<HostTensor> reshaped(const HostTensor &x, Shape shape) {
  if (!HostTensor::fits(shape) || elementCount(shape) != x.size())
    return Error{"cannot reshape " + shapeText(x.shape) + " to " + shapeText(shape)};
  HostTensor result = x;
  result.shape = std::move(shape);
  return result;
}

Result<HostTensor> unsqueeze(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  Result<Shape> added = integers(fold, 1, "axes");
  Result<Shape> list = added ? axes(fold, 1, x.shape.size() + added->size()) : added;
  if (!list)
    return list.takeError();
  if (x.shape.size() + list->size() > HostTensor::maximumRank)
    return Error{"constants are folded up to rank " + std::to_string(HostTensor::maximumRank) + ", not " +
                 std::to_string(x.shape.size() + list->size())};
  Shape shape = x.shape;
  std::sort(list->begin(), list->end());
  for (int64_t axis : *list) {
    if (axis > static_cast<int64_t>(shape.size()))
      return Error{"axes repeat"};
    shape.insert(shape.begin() + axis, 1);
  }
  return reshaped(x, shape);
}

Result<HostTensor> squeeze(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  Result<Shape> list = axes(fold, 1, x.shape.size());
  if (!list)
    return list.takeError();
  Shape shape;
  for (int64_t i = 0; i < static_cast<int64_t>(x.shape.size()); ++i)
    if (list->empty() ? x.shape[i] != 1 : !std::count(list->begin(), list->end(), i))
      shape.push_back(x.shape[i]);
  return reshaped(x, shape);
}

Result<HostTensor> reshape(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  Result<Shape> given = integers(fold, 1, "shape");
  if (!given)
    return given.takeError();
  Shape &shape = *given;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < x.shape.size() && !Attributes(fold.node).integer("allowzero", 0))
      shape[i] = x.shape[i];
    if (shape[i] < 0)
      open = i;
    else if (__builtin_mul_overflow(known, shape[i], &known))
      return tooLarge(shape);
  }
  if (open >= 0)
    shape[open] = known ? x.size() / known : 0;
  return reshaped(x, shape);
}

/// One axis of a Slice: how many elements, from where, with which step.
struct Range {
  int64_t start, step, count;
};

/// As ONNX limits both ends: to [0, extent] with a positive step, else start to [0, extent - 1] and end to -1 at least.
Range clampRange(int64_t start, int64_t end, int64_t step, int64_t extent) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  start = std::clamp(start < 0 ? start + extent : start, std::max<int64_t>(low, 0), high);
  end = std::clamp(end < 0 ? (end < -extent ? low : end + extent) : end, low, step > 0 ? extent : extent - 1);
  int64_t distance = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
  return {start, step, distance <= 0 ? 0 : (distance - 1) / stride + 1};
}

/// The rows of `range` along `axis`.
Result<HostTensor> takeRows(const HostTensor &x, int64_t axis, Range range) {
  Shape shape = x.shape;
  shape[axis] = range.count;
  auto result = HostTensor::zeros(shape, x.integral);
  if (!result)
    return tooLarge(shape);
  int64_t at = 0, inner = extentAfter(x.shape, axis);
  for (int64_t outer = 0; outer < extentBefore(x.shape, axis); ++outer)
    for (int64_t row = 0; row < range.count; ++row)
      for (int64_t i = 0; i < inner; ++i)
        result->set(at++, x, (outer * x.shape[axis] + range.start + row * range.step) * inner + i);
  return *result;
}

Result<HostTensor> slice(const Fold &fold) {
  HostTensor x = fold.in(0);
  Result<Shape> given[] = {integers(fold, 1, "starts"), integers(fold, 2, "ends"), integers(fold, 4, "steps"),
                           axes(fold, 3, x.shape.size())};
  for (Result<Shape> &one : given)
    if (!one)
      return one.takeError();
  auto &[starts, ends, steps, list] = given;
  if (!fold.has(4))
    steps->assign(starts->size(), 1);
  if (list->empty())
    for (size_t i = 0; i < std::min(starts->size(), x.shape.size()); ++i)
      list->push_back(i);
  if (list->size() != starts->size() || ends->size() != starts->size() || steps->size() != starts->size())
    return Error{"starts, ends, axes and steps differ in length"};
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = (*list)[i], step = (*steps)[i];
    if (step == 0 || step == INT64_MIN)
      return Error{"slice with step " + std::to_string(step)};
    if (x.shape[axis] == 0)
      continue;
    Result<HostTensor> rows = takeRows(x, axis, clampRange((*starts)[i], (*ends)[i], step, x.shape[axis]));
    if (!rows)
      return rows;
    x = std::move(*rows);
  }
  return x;
}

/// Which dimension each one of the result was; backwards where the node does not say.
Result<Shape> permutation(const Fold &fold, size_t rank) {
  Shape order = Attributes(fold.node).integers("perm"), all(rank);
  std::iota(all.begin(), all.end(), 0);
  if (order.empty())
    order.assign(all.rbegin(), all.rend());
  if (order.size() != rank || !std::is_permutation(order.begin(), order.end(), all.begin()))
    return Error{"perm is no permutation of " + std::to_string(rank) + " dimensions"};
  return order;
}

Result<HostTensor> transpose(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  size_t rank = x.shape.size();
  Result<Shape> order = permutation(fold, rank);
  if (!order)
    return order.takeError();
  Shape shape(rank), strides(rank);
  for (size_t i = 0; i < rank; ++i) {
    shape[i] = x.shape[(*order)[i]];
    strides[i] = extentAfter(x.shape, (*order)[i]);
  }
  auto result = HostTensor::zeros(shape, x.integral);
  for (int64_t at = 0; at < result->size(); ++at) {
    int64_t from = 0, rest = at;
    for (size_t i = rank; i-- > 0; rest /= shape[i])
      from += rest % shape[i] * strides[i];
    result->set(at, x, from);
  }
  return *result;
}

// They wrap like the 64-bit integers of ONNX.
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

Result<HostTensor> range(const Fold &fold) {
  for (size_t i = 0; i < 3; ++i)
    if (fold.in(i).size() != 1)
      return Error{"range bounds must be scalars"};
  double start = fold.in(0).number(0), limit = fold.in(1).number(0), delta = fold.in(2).number(0);
  double count = delta == 0 ? -1 : std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count >= 0 && count <= HostTensor::maximumElements))
    return Error{"range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
                 std::to_string(delta) + " cannot be folded"};
  auto result = HostTensor::zeros({static_cast<int64_t>(count)},
                                  fold.in(0).integral && fold.in(1).integral && fold.in(2).integral);
  for (int64_t i = 0; i < result->size(); ++i)
    if (result->integral)
      result->ints[i] = sum(fold.in(0).ints[0], product(i, fold.in(2).ints[0]));
    else
      result->floats[i] = static_cast<float>(start + i * delta);
  return *result;
}

Result<HostTensor> expand(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  Result<Shape> wanted = integers(fold, 1, "shape");
  if (!wanted)
    return wanted.takeError();
  auto shape = broadcastShapes(x.shape, *wanted);
  auto result = shape ? HostTensor::zeros(*shape, x.integral) : std::nullopt;
  if (!shape)
    return Error{"cannot expand " + shapeText(x.shape) + " to " + shapeText(*wanted)};
  if (!result)
    return tooLarge(*shape);
  for (int64_t i = 0; i < result->size(); ++i)
    result->set(i, x, broadcastIndex(i, *shape, x.shape));
  return *result;
}

} // namespace

void addMovement(Folders &table) {
  table["Gather"] = gather;
  table["Concat"] = concat;
  table["Unsqueeze"] = unsqueeze;
  table["Squeeze"] = squeeze;
  table["Reshape"] = reshape;
  table["Slice"] = slice;
  table["Transpose"] = transpose;
  table["Range"] = range;
  table["Expand"] = expand;
}

/// Folders read these inputs without a look whether they are there. Of ops that are not named the first one is enough:
/// they ask before they read others.
size_t neededInputs(const std::string &opType) {
  static const std::set<std::string> three = {"Range", "Where", "OneHot", "ScatterND", "ScatterElements"};
  static const std::set<std::string> two = {"Add",
                                            "Sub",
                                            "Mul",
                                            "Div",
                                            "Mod",
                                            "Pow",
                                            "Equal",
                                            "Less",
                                            "LessOrEqual",
                                            "Greater",
                                            "GreaterOrEqual",
                                            "And",
                                            "Or",
                                            "Xor",
                                            "Gather",
                                            "GatherElements",
                                            "GatherND",
                                            "Reshape",
                                            "Expand",
                                            "Tile",
                                            "CumSum"};
  return three.count(opType) ? 3 : two.count(opType) ? 2 : 1;
}

} // namespace sluice
