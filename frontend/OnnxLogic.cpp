// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic and choices on data. Truth values are the numbers 1 and 0, and integers are float32, exact up to
// 2^24, from where they take part in arithmetic.
#include "frontend/Compositions.h"
#include "frontend/ElementTypes.h"
#include "onnx/onnx_pb.h"
#include <limits>

using namespace mlir;

namespace sluice {
namespace {

using train::Comparison;

/// 1 where x is 0, else 0.
Value negated(NodeImport &node, Value x) {
  return x ? compared(node, x, node.scalar(0, "false"), Comparison::Equal) : Value();
}

/// `swapped` compares the second operand with the first.
template <Comparison predicate, bool swapped> LogicalResult importComparison(NodeImport &node) {
  Value a = node.tensor(0), b = node.tensor(1);
  return node.result(swapped ? compared(node, b, a, predicate) : compared(node, a, b, predicate));
}

LogicalResult importNot(NodeImport &node) { return node.result(negated(node, node.tensor(0))); }

LogicalResult importAnd(NodeImport &node) {
  Value b = node.tensor(1);
  return node.result(binary<train::MulOp>(node, node.tensor(0), b));
}

LogicalResult importOr(NodeImport &node) {
  Value b = node.tensor(1), sum = binary<train::AddOp>(node, node.tensor(0), b);
  return sum ? node.result(compared(node, node.scalar(0, "false"), sum, Comparison::Less)) : failure();
}

LogicalResult importXor(NodeImport &node) {
  Value b = node.tensor(1);
  return node.result(negated(node, compared(node, node.tensor(0), b, Comparison::Equal)));
}

/// Nothing else differs from itself.
LogicalResult importIsNaN(NodeImport &node) {
  Value x = node.tensor(0);
  return node.result(negated(node, compared(node, x, x, Comparison::Equal)));
}

/// Where neither sign is asked for, x < x is false everywhere, NaN included.
LogicalResult importIsInf(NodeImport &node) {
  const bool above = node.attributes.integer("detect_positive", 1),
             below = node.attributes.integer("detect_negative", 1);
  Value x = node.tensor(0);
  if (!above && !below)
    return node.result(compared(node, x, x, Comparison::Less));
  const double infinity = std::numeric_limits<double>::infinity();
  Value size = above && below ? unary<train::AbsOp>(node, x) : x;
  return node.result(
      size ? compared(node, size, node.scalar(above ? infinity : -infinity, "infinity"), Comparison::Equal) : Value());
}

/// 1, 0 or -1, which no gradient passes.
LogicalResult importSign(NodeImport &node) {
  Value x = node.tensor(0), zero = x ? node.scalar(0, "zero") : Value();
  Value negative = compared(node, x, zero, Comparison::Less);
  return node.result(binary<train::SubOp>(node, compared(node, zero, x, Comparison::Less), negative));
}

/// The second value where a position of the new dimension is the index, counted from either end, else the first.
LogicalResult importOneHot(NodeImport &node) {
  Value index = node.tensor(0);
  const HostTensor *depth = index ? node.constant(1, "the depth") : nullptr;
  const HostTensor *values = depth ? node.constant(2, "the two values") : nullptr;
  if (!values)
    return failure();
  const int64_t count = depth->size() == 1 ? toInteger(depth->number(0)) : 0;
  if (values->size() != 2 || count < 1 || count > HostTensor::maximumElements)
    return node.error("needs one depth from 1 to " + std::to_string(HostTensor::maximumElements) +
                      " and two values, has " + (depth->size() == 1 ? std::to_string(count) : shapeText(depth->shape)) +
                      " and " + std::to_string(values->size()) + " values");
  const int64_t rank = typeOf(index).getRank(), axis = node.axis(node.attributes.integer("axis", -1), rank + 1);
  if (axis < 0)
    return failure();
  SmallVector<int64_t> shape(shapeOf(index));
  shape.insert(shape.begin() + axis, 1);
  std::vector<int64_t> column(rank - axis + 1, 1);
  column[0] = count;
  HostTensor front = *HostTensor::zeros(column, /*integral=*/false), back = front;
  for (int64_t i = 0; i < count; ++i) {
    front.floats[i] = static_cast<double>(i);
    back.floats[i] = static_cast<double>(i - count);
  }
  Value wide = node.reshape(index, shape);
  Value fromEnd = compared(node, wide, node.table(back, "positions-from-end"), Comparison::Equal);
  Value fromFront = compared(node, wide, node.table(front, "positions"), Comparison::Equal);
  Value hot = binary<train::AddOp>(node, fromFront, fromEnd);
  const double off = values->number(0), on = values->number(1);
  Value y = scaled(node, hot, on - off);
  return node.result(off == 0 || !y ? y : binary<train::AddOp>(node, y, node.scalar(off, "off")));
}

LogicalResult importWhere(NodeImport &node) {
  Use branch;
  branch.kind = Use::Branch;
  Value operands[] = {node.tensor(0), node.tensor(1, branch), node.tensor(2, branch)};
  return node.result(selected(node, operands[0], operands[1], operands[2]));
}

/// Conversions between float types keep float32, those to truth values compare with 0, those to integers cut fractions
/// off; integers stay what they are.
LogicalResult importCast(NodeImport &node) {
  const auto to = static_cast<int32_t>(node.attributes.integer("to", 0));
  if (isFloatType(to))
    return node.result(node.tensor(0));
  if (to == onnx::TensorProto::BOOL)
    return node.result(negated(node, negated(node, node.tensor(0))));
  const bool integer = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32;
  if (!integer)
    return node.error("casts of " + std::string(node.isIntegral(0) ? "integers" : "float32 activations") + " to " +
                      elementTypeName(to) + " are not supported; cast to floats, bool, int64 or int32");
  return node.result(node.isIntegral(0) ? node.moved(0) : rounded(node, node.tensor(0), train::Rounding::TowardZero));
}

} // namespace

void noteIntegral(NodeImport &node) {
  static const std::set<std::string> truths = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And",
                                               "Or",    "Xor",  "Not",         "IsNaN",   "IsInf"};
  const std::string &type = node.proto().op_type();
  const int typed = type == "Where" || type == "CastLike" || type == "DequantizeLinear" ? 1
                    : type == "OneHot" ? 2
                                       : 0; // whose type the result has
  const bool integral =
      truths.count(type) || (type == "Cast" ? !isFloatType(node.attributes.integer("to", 0)) : node.isIntegral(typed));
  if (integral)
    for (const std::string &output : node.proto().output())
      node.shared().integral.insert(output);
}

void addLogic(NodeImporters &table) {
  table["Equal"] = importComparison<Comparison::Equal, false>;
  table["Less"] = importComparison<Comparison::Less, false>;
  table["LessOrEqual"] = importComparison<Comparison::LessOrEqual, false>;
  table["Greater"] = importComparison<Comparison::Less, true>;
  table["GreaterOrEqual"] = importComparison<Comparison::LessOrEqual, true>;
  table["Not"] = importNot;
  table["And"] = importAnd;
  table["Or"] = importOr;
  table["Xor"] = importXor;
  table["IsNaN"] = importIsNaN;
  table["IsInf"] = importIsInf;
  table["Sign"] = importSign;
  table["OneHot"] = importOneHot;
  table["Where"] = importWhere;
  table["Cast"] = importCast;
}

} // namespace sluice
