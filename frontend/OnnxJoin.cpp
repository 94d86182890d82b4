// SPDX-License-Identifier: Apache-2.0
// Ops that put slabs of tensors together or take them apart along dimensions: Concat, Split, Slice, Gather of one row,
// Pad with zeros.
#include "frontend/NodeImport.h"

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
  return node.result(node.folded(node.make<train::ConcatOp>(ValueRange(operands), static_cast<uint64_t>(axis))));
}

Value slab(NodeImport &node, Value x, int64_t axis, int64_t start, int64_t length) {
  if (!x)
    return x;
  return node.folded(node.make<train::SliceOp>(x, static_cast<uint64_t>(axis), static_cast<uint64_t>(start),
                                               static_cast<uint64_t>(length)));
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

LogicalResult importSlice(NodeImport &node) {
  Value x = node.tensor(0);
  auto starts = node.integers("starts", 1), ends = node.integers("ends", 2), axes = node.integers("axes", 3);
  auto steps = node.integers("steps", 4);
  if (!x || !node.shared().error.empty())
    return failure();
  if (!starts || !ends || starts->size() != ends->size() || (axes && axes->size() != starts->size()))
    return node.error("starts, ends and axes differ in length");
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = node.axis(axes ? (*axes)[i] : i, typeOf(x).getRank());
    if (axis < 0)
      return failure();
    if (steps && (i >= steps->size() || (*steps)[i] != 1))
      return node.error("only slices with step 1 are supported");
    int64_t extent = shapeOf(x)[axis];
    auto clamp = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? (at < -extent ? 0 : at + extent) : at, 0, extent);
    };
    int64_t start = clamp((*starts)[i]), end = clamp((*ends)[i]);
    if (end <= start)
      return node.error("slice [" + std::to_string((*starts)[i]) + ", " + std::to_string((*ends)[i]) + ") of extent " +
                        std::to_string(extent) + " is empty");
    x = slab(node, x, axis, start, end - start);
    if (!x)
      return failure();
  }
  return node.result(x);
}

/// A single constant index: a slab of one, without its dimension when the index is a scalar.
LogicalResult importGather(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *index = x ? node.constant(1, "the index") : nullptr;
  if (!index)
    return failure();
  int64_t axis = node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank());
  if (axis < 0)
    return failure();
  if (index->size() != 1 || index->shape.size() > 1 || !index->integral)
    return node.error("only a single integer index is supported, not indices of shape " + shapeText(index->shape));
  int64_t extent = shapeOf(x)[axis], at = index->ints[0] < 0 ? index->ints[0] + extent : index->ints[0];
  if (at < 0 || at >= extent)
    return node.error("index " + std::to_string(index->ints[0]) + " is outside the extent " + std::to_string(extent));
  Value row = slab(node, x, axis, at, 1);
  if (!row)
    return failure();
  SmallVector<int64_t> shape(shapeOf(row));
  if (index->shape.empty())
    shape.erase(shape.begin() + axis);
  return node.result(node.reshape(row, shape));
}

/// Constant zeros of a shape, one variable each.
Value zeros(NodeImport &node, ArrayRef<int64_t> shape, const std::string &purpose) {
  Value zero = node.scalar(0, purpose);
  return zero ? node.makeAs<train::BroadcastToOp>(shape, zero, node.f32(1)) : Value();
}

/// Zero padding as a concatenation with zeros; negative pads cut.
LogicalResult importPad(NodeImport &node) {
  Value x = node.tensor(0);
  auto pads = node.integers("pads", 1);
  if (!x || !node.shared().error.empty())
    return failure();
  const HostTensor *value = node.has(2) ? node.constant(2, "the padding value") : nullptr;
  if (node.attributes.text("mode", "constant") != "constant" || node.attributes.number("value", 0) != 0 ||
      node.has(3) || (node.has(2) && (!value || value->size() != 1 || value->number(0) != 0)))
    return node.error("only padding with zeros over all dimensions is supported");
  int64_t rank = typeOf(x).getRank();
  if (!pads || static_cast<int64_t>(pads->size()) != 2 * rank)
    return node.error("needs " + std::to_string(2 * rank) + " pads, has " + std::to_string(pads ? pads->size() : 0));
  for (int64_t axis = 0; axis < rank; ++axis) {
    int64_t before = (*pads)[axis], after = (*pads)[rank + axis], extent = shapeOf(x)[axis];
    if (std::min(before, after) < -extent || std::max(before, after) > (1 << 30) ||
        extent + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 1)
      return node.error("pads " + std::to_string(before) + " and " + std::to_string(after) + " do not fit the extent " +
                        std::to_string(extent));
    x = slab(node, x, axis, std::max<int64_t>(0, -before),
             extent + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
    SmallVector<Value> parts;
    SmallVector<int64_t> shape(x ? shapeOf(x) : ArrayRef<int64_t>());
    for (int side = 0; x && side < 2; ++side) {
      shape[axis] = side == 0 ? before : after;
      if (side == 1)
        parts.push_back(x);
      if (shape[axis] > 0)
        parts.push_back(zeros(node, shape, "zero"));
    }
    if (!x || llvm::is_contained(parts, Value()))
      return failure();
    auto op = parts.size() > 1 ? node.make<train::ConcatOp>(ValueRange(parts), static_cast<uint64_t>(axis))
                               : train::ConcatOp();
    if (parts.size() > 1 && !op)
      return failure();
    x = parts.size() > 1 ? op.getY() : x;
  }
  return node.result(x);
}

} // namespace

void addJoins(NodeImporters &table) {
  table["Concat"] = importConcat;
  table["Split"] = importSplit;
  table["Slice"] = importSlice;
  table["Gather"] = importGather;
  table["Pad"] = importPad;
}

} // namespace sluice
