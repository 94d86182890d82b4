// SPDX-License-Identifier: Apache-2.0
// Making nodes of a graph beside those of the file.
#ifndef SLUICE_FRONTEND_NODE_PROTOS_H
#define SLUICE_FRONTEND_NODE_PROTOS_H

#include "onnx/onnx_pb.h"
#include <string>
#include <vector>

namespace sluice {

/// A node of the standard's op, without a name and outputs.
inline onnx::NodeProto makeNode(const char *op, const std::vector<std::string> &inputs = {}) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string &input : inputs)
    node.add_input(input);
  return node;
}

/// A new attribute, whose value is to be set.
inline onnx::AttributeProto &addAttribute(onnx::NodeProto &node, const char *name,
                                          onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

inline void setInteger(onnx::NodeProto &node, const char *name, int64_t value) {
  addAttribute(node, name, onnx::AttributeProto::INT).set_i(value);
}

inline void setIntegers(onnx::NodeProto &node, const char *name, const std::vector<int64_t> &values) {
  onnx::AttributeProto &attribute = addAttribute(node, name, onnx::AttributeProto::INTS);
  for (int64_t value : values)
    attribute.add_ints(value);
}

inline void setNumber(onnx::NodeProto &node, const char *name, double value) {
  addAttribute(node, name, onnx::AttributeProto::FLOAT).set_f(static_cast<float>(value));
}

/// The value of a Constant node, to be filled in.
inline onnx::TensorProto &setConstant(onnx::NodeProto &node) {
  return *addAttribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t();
}

} // namespace sluice

#endif
