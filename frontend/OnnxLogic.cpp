// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic and choices on data. Truth values are the numbers 1 and 0, and integers are float32, exact up to
// 2^24, from where they take part in arithmetic.
#include "frontend/Compositions.h"
#include "frontend/ElementTypes.h"
#include "onnx/onnx_pb.h"

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
  return node.result(binary<train::MulOp>(node, node.tensor(0), node.tensor(1)));
}

LogicalResult importOr(NodeImport &node) {
  Value sum = binary<train::AddOp>(node, node.tensor(0), node.tensor(1));
  return sum ? node.result(compared(node, node.scalar(0, "false"), sum, Comparison::Less)) : failure();
}

LogicalResult importXor(NodeImport &node) {
  return node.result(negated(node, compared(node, node.tensor(0), node.tensor(1), Comparison::Equal)));
}

/// Nothing else differs from itself.
LogicalResult importIsNaN(NodeImport &node) {
  Value x = node.tensor(0);
  return node.result(negated(node, compared(node, x, x, Comparison::Equal)));
}

LogicalResult importWhere(NodeImport &node) {
  Use branch;
  branch.kind = Use::Branch;
  Value operands[] = {node.tensor(0), node.tensor(1, branch), node.tensor(2, branch)};
  return node.result(selected(node, operands[0], operands[1], operands[2]));
}

/// Conversions between float types keep float32, those to truth values compare with 0; integers stay what they are.
LogicalResult importCast(NodeImport &node) {
  const auto to = static_cast<int32_t>(node.attributes.integer("to", 0));
  if (to == onnx::TensorProto::FLOAT)
    return node.result(node.tensor(0));
  if (to == onnx::TensorProto::BOOL)
    return node.result(negated(node, negated(node, node.tensor(0))));
  const bool integer = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32;
  if (!integer || !node.isIntegral(0))
    return node.error("casts of " + std::string(node.isIntegral(0) ? "integers" : "float32 activations") + " to " +
                      elementTypeName(to) +
                      " are not supported; there are casts to float32 and bool, and of integers " +
                      "to int64 and int32");
  return node.result(node.moved(0));
}

} // namespace

void noteIntegral(NodeImport &node) {
  static const std::set<std::string> truths = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
                                               "And",   "Or",   "Xor",         "Not",     "IsNaN"};
  const std::string &type = node.proto().op_type();
  const int typed = type == "Where" || type == "CastLike" ? 1 : 0; // the input whose type the result has
  const bool integral =
      truths.count(type) ||
      (type == "Cast" ? node.attributes.integer("to", 0) != onnx::TensorProto::FLOAT : node.isIntegral(typed));
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
  table["Where"] = importWhere;
  table["Cast"] = importCast;
}

} // namespace sluice
