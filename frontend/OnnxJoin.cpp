// SPDX-License-Identifier: Apache-2.0
// Ops that put slabs of tensors together or take them apart along dimensions: Concat, Split, Slice.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

LogicalResult importConcat(NodeImport &node) {
  SmallVector<Value> operands;
  for (int i = 0; i < node.inputs(); ++i) {
    operands.push_back(node.tensor(i));
    if (!operands.back())
      return failure();
  }
  int64_t axis = operands.empty() ? -1 : node.axis(node.attributes.integer("axis", 1), typeOf(operands[0]).getRank());
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

/// The parts of a tensor, which SequenceAt takes by number. One length stands for all parts but a smaller last one.
LogicalResult importSplitToSequence(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *lengths = x ? node.constant(1, "the lengths of the parts") : nullptr;
  if (!lengths)
    return failure();
  int64_t axis = node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank());
  if (axis < 0)
    return failure();
  const int64_t extent = shapeOf(x)[axis];
  SmallVector<Value> &parts = node.shared().sequences[node.proto().output(0)];
  for (int64_t start = 0, i = 0; start < extent; ++i) {
    const bool each = lengths->shape.empty();
    int64_t length = !lengths->integral || (!each && i >= lengths->size()) ? 0 : lengths->ints[each ? 0 : i];
    length = each ? std::min(length, extent - start) : length;
    if (length < 1 || length > extent - start)
      return node.error("part of length " + std::to_string(length) + " from " + std::to_string(start) +
                        " does not fit the extent " + std::to_string(extent));
    parts.push_back(slab(node, x, axis, start, length));
    if (!parts.back())
      return failure();
    start += length;
  }
  return success();
}

LogicalResult importSequenceAt(NodeImport &node) {
  auto sequence = node.shared().sequences.find(node.has(0) ? node.proto().input(0) : "");
  if (sequence == node.shared().sequences.end())
    return node.error("reads a sequence that is not a split tensor");
  const HostTensor *position = node.constant(1, "the position");
  if (!position || position->size() != 1 || !position->integral)
    return position ? node.error("the position must be one whole number") : failure();
  const int64_t parts = sequence->second.size(), at = position->ints[0];
  if (at < -parts || at >= parts)
    return node.error("position " + std::to_string(at) + " is outside the " + std::to_string(parts) + " parts");
  return node.result(sequence->second[at < 0 ? at + parts : at]);
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

/// One dimension of a slice, from `start` until `end`, which is left out; null after an error.
Value slicedAlong(NodeImport &node, Value x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t extent = shapeOf(x)[axis], most = int64_t(1) << 40;
  const bool back = step < 0;
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -most) + extent : at, back ? -1 : 0, back ? extent - 1 : extent);
  };
  const int64_t first = clamp(start), last = clamp(end), stride = std::min(std::abs(std::max(step, -most)), most);
  const int64_t distance = back ? first - last : last - first;
  if (distance <= 0 || step == 0) {
    (void)node.error("slice [" + std::to_string(start) + ", " + std::to_string(end) + ") of extent " +
                     std::to_string(extent) + " by steps of " + std::to_string(step) + " is empty");
    return {};
  }
  const int64_t count = (distance - 1) / stride + 1;
  Value forward = everySo(node, x, axis, back ? first - (count - 1) * stride : first, count, stride);
  return back ? reversed(node, forward, axis) : forward;
}

LogicalResult importSlice(NodeImport &node) {
  Value x = node.tensor(0);
  auto starts = node.integers("starts", 1), ends = node.integers("ends", 2), axes = node.integers("axes", 3);
  auto steps = node.integers("steps", 4);
  if (!x || !node.shared().error.empty())
    return failure();
  const size_t count = starts ? starts->size() : 0;
  if (!starts || !ends || ends->size() != count || (axes && axes->size() != count) || (steps && steps->size() != count))
    return node.error("starts, ends, axes and steps differ in length");
  SmallVector<bool> sliced(typeOf(x).getRank(), false);
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = node.axis(axes ? (*axes)[i] : i, typeOf(x).getRank());
    if (axis >= 0 && std::exchange(sliced[axis], true))
      return node.error("axis " + std::to_string(axis) + " is given twice");
    x = axis < 0 ? Value() : slicedAlong(node, x, axis, (*starts)[i], (*ends)[i], steps ? (*steps)[i] : 1);
    if (!x)
      return failure();
  }
  return node.result(x);
}

} // namespace

void addJoins(NodeImporters &table) {
  table["Concat"] = importConcat;
  table["Split"] = importSplit;
  table["SplitToSequence"] = importSplitToSequence;
  table["SequenceAt"] = importSequenceAt;
  table["Slice"] = importSlice;
}

} // namespace sluice
