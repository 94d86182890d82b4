// SPDX-License-Identifier: Apache-2.0
// Reading the attributes of an ONNX node. The checker has already made sure of their types.
#ifndef SLUICE_FRONTEND_ATTRIBUTES_H
#define SLUICE_FRONTEND_ATTRIBUTES_H

#include "onnx/onnx_pb.h"
#include <string>
#include <vector>

namespace sluice {

/// A node's attributes by name, those that it lacks by what the caller gives as the op's default. Lists are empty
/// without their attribute. Refers to the node, which must live as long.
class Attributes {
public:
  explicit Attributes(const onnx::NodeProto &node) : node(node) {}

  bool has(const char *name) const { return find(name); }
  int64_t integer(const char *name, int64_t otherwise) const {
    auto *attribute = find(name);
    return attribute ? attribute->i() : otherwise;
  }
  float number(const char *name, float otherwise) const {
    auto *attribute = find(name);
    return attribute ? attribute->f() : otherwise;
  }
  std::string text(const char *name, const char *otherwise) const {
    auto *attribute = find(name);
    return attribute ? attribute->s() : otherwise;
  }
  std::vector<int64_t> integers(const char *name) const {
    auto *attribute = find(name);
    return attribute ? std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end())
                     : std::vector<int64_t>();
  }
  std::vector<float> numbers(const char *name) const {
    auto *attribute = find(name);
    return attribute ? std::vector<float>(attribute->floats().begin(), attribute->floats().end())
                     : std::vector<float>();
  }
  std::vector<std::string> texts(const char *name) const {
    auto *attribute = find(name);
    return attribute ? std::vector<std::string>(attribute->strings().begin(), attribute->strings().end())
                     : std::vector<std::string>();
  }
  const onnx::TensorProto *tensor(const char *name) const {
    auto *attribute = find(name);
    return attribute && attribute->has_t() ? &attribute->t() : nullptr;
  }

private:
  const onnx::AttributeProto *find(const char *name) const {
    for (const auto &attribute : node.attribute())
      if (attribute.name() == name)
        return &attribute;
    return nullptr;
  }

  const onnx::NodeProto &node;
};

} // namespace sluice

#endif
