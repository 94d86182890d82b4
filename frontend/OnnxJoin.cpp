// SPDX-License-Identifier: Apache-2.0
// Ops that put slabs of tensors together or take them apart along dimensions: Concat, Split, Slice.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

/// Of a tensor without elements, which slices leave, nothing is in the result; that of others alone are not
/// concatenated.
LogicalResult importConcat(NodeImport &node) {
  SmallVector<Value> operands;
  for (int i = 0; i < node.inputs(); ++i) {
    const HostTensor *empty = node.known(i);
    if (empty && empty->size() == 0 && node.inputs() > 1)
      continue;
    operands.push_back(node.tensor(i));
    if (!operands.back())
      return failure();
  }
  if (operands.empty())
    return node.error("has no operand with elements");
  const int64_t axis = node.axis(node.attributes.integer("axis", 1), typeOf(operands[0]).getRank());
  if (axis < 0)
    return failure();
  return node.result(joined(node, operands, axis));
}

LogicalResult importSplit(NodeImport &node) {
  Value x = node.tensor(0);
  auto lengths = node.integers("split", 1);
  if (!x || !node.shared().error.empty())
    return failure();
  int64_t axis = node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank());
  if (axis < 0)
    return failure();
  int64_t extent = shapeOf(x)[axis], parts = node.proto().output_size(), start = 0;
  if (const int64_t said = node.attributes.integer("num_outputs", parts); said != parts)
    return node.error("has " + std::to_string(parts) + " outputs, num_outputs is " + std::to_string(said));
  if (!lengths) {
    // Equal parts; the last one may be smaller (opset 18).
    int64_t part = (extent + parts - 1) / std::max<int64_t>(parts, 1);
    lengths.emplace(parts, part);
    lengths->back() = extent - part * (parts - 1);
  }
  if (static_cast<int64_t>(lengths->size()) != parts)
    return node.error("has " + std::to_string(parts) + " outputs for " + std::to_string(lengths->size()) + " lengths");
  for (int64_t i = 0; i < parts; ++i) {
    int64_t length = (*lengths)[i];
    if (length < 1 || length > extent - start)
      return node.error("part of length " + std::to_string(length) + " from " + std::to_string(start) +
                        " does not fit the extent " + std::to_string(extent));
    if (node.used(i) && failed(node.result(slab(node, x, axis, start, length), i)))
      return failure();
    start += length;
  }
  return success();
}

/// Elements start, start + step and so on: every block of `step` has one in front, the last block may be short.
Value everySo(NodeImport &node, Value x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  if (step == 1 || count == 1)
    return slab(node, x, axis, start, count);
  const int64_t whole = start + count * step <= shapeOf(x)[axis] ? count : count - 1;
  Value blocks = slab(node, x, axis, start, whole * step);
  if (!blocks)
    return {};
  SmallVector<int64_t> shape(shapeOf(x));
  auto [outer, inner] = around(shape, axis);
  Value apart = node.reshape(blocks, {outer, whole, step, inner});
  shape[axis] = whole;
  Value fronts = apart ? slab(node, apart, 2, 0, 1) : Value();
  fronts = fronts ? node.reshape(fronts, shape) : Value();
  return whole == count ? fronts : joined(node, {fronts, slab(node, x, axis, start + whole * step, 1)}, axis);
}

Value reversed(NodeImport &node, Value x, int64_t axis) {
  constexpr int64_t mostSlabs = 256;
  const int64_t extent = x ? shapeOf(x)[axis] : 0;
  if (extent > mostSlabs)
    (void)node.error("reverses " + std::to_string(extent) + " elements, more than the " + std::to_string(mostSlabs) +
                     " that are supported");
  SmallVector<Value> slabs;
  for (int64_t i = extent; i > 0 && extent <= mostSlabs; --i)
    slabs.push_back(slab(node, x, axis, i - 1, 1));
  return slabs.empty() ? Value() : joined(node, slabs, axis);
}

/// What a slice takes of one dimension: `count` elements, every `step`-th from `first` on, backwards or not.
struct Range {
  int64_t first, count, step;
  bool back;
};

/// From `start` until `end`, which is left out, as numpy counts.
Range rangeOf(int64_t extent, int64_t start, int64_t end, int64_t step) {
  const int64_t most = int64_t(1) << 40;
  const bool back = step < 0;
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -most) + extent : at, back ? -1 : 0, back ? extent - 1 : extent);
  };
  const int64_t first = clamp(start), last = clamp(end), stride = std::min(std::abs(std::max(step, -most)), most);
  const int64_t distance = back ? first - last : last - first;
  return {first, distance > 0 ? (distance - 1) / stride + 1 : 0, stride, back};
}

/// Null after an error.
Value slicedAlong(NodeImport &node, Value x, int64_t axis, const Range &range) {
  const int64_t first = range.back ? range.first - (range.count - 1) * range.step : range.first;
  Value forward = everySo(node, x, axis, first, range.count, range.step);
  return range.back ? reversed(node, forward, axis) : forward;
}

/// All ranges are read before the first slice is made: an empty result is folded, as no value of the function is empty.
LogicalResult importSlice(NodeImport &node) {
  Value x = node.tensor(0);
  auto starts = node.integers("starts", 1), ends = node.integers("ends", 2), axes = node.integers("axes", 3);
  auto steps = node.integers("steps", 4);
  if (!x || !node.shared().error.empty())
    return failure();
  const size_t count = starts ? starts->size() : 0;
  if (!starts || !ends || ends->size() != count || (axes && axes->size() != count) || (steps && steps->size() != count))
    return node.error("starts, ends, axes and steps differ in length");
  std::vector<int64_t> shape = shapeOf(x).vec();
  SmallVector<std::optional<Range>> ranges(shape.size());
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = node.axis(axes ? (*axes)[i] : i, typeOf(x).getRank()), step = steps ? (*steps)[i] : 1;
    if (axis < 0 || step == 0)
      return axis < 0 ? failure() : node.error("a step of 0 takes nothing");
    if (ranges[axis])
      return node.error("axis " + std::to_string(axis) + " is given twice");
    ranges[axis] = rangeOf(shape[axis], (*starts)[i], (*ends)[i], step);
    shape[axis] = ranges[axis]->count;
  }
  if (llvm::is_contained(shape, 0)) { // what Concat leaves out is known: it has no elements
    HostTensor nothing;
    nothing.shape = std::move(shape);
    nothing.integral = node.isIntegral(0);
    return node.fold(std::move(nothing));
  }
  for (size_t axis = 0; axis < ranges.size(); ++axis)
    if (ranges[axis] && !(x = slicedAlong(node, x, static_cast<int64_t>(axis), *ranges[axis])))
      return failure();
  return node.result(x);
}

} // namespace

void addJoins(NodeImporters &table) {
  table["Concat"] = importConcat;
  table["Split"] = importSplit;
  table["Slice"] = importSlice;
}

} // namespace sluice
