// SPDX-License-Identifier: Apache-2.0
// One walk in the file's order that binds the type variables of each schema; without shapes, whose inference would cost
// more and fail for other reasons.
#include "frontend/TypeRules.h"

#include "frontend/Attributes.h"
#include "frontend/ElementTypes.h"
#include "frontend/NodeImport.h"
#include "frontend/OnnxGraph.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

#include <map>
#include <optional>
#include <unordered_map>

namespace sluice {
namespace {

/// Element types of the values of a graph, 0 where they are unknown.
struct Types {
  const Types *outer = nullptr; ///< of the graph around a body
  std::unordered_map<std::string, int32_t> own{};
  int32_t find(const std::string &name) const {
    for (const Types *at = this; at; at = at->outer)
      if (auto found = at->own.find(name); found != at->own.end())
        return found->second;
    return 0;
  }
};

using Parameter = onnx::OpSchema::FormalParameter;

/// As schemas write the type of a tensor: "tensor(int64)", "tensor(float)", "tensor(double)".
std::string tensorText(int32_t type) {
  const std::string name = type == onnx::TensorProto::FLOAT    ? "float"
                           : type == onnx::TensorProto::DOUBLE ? "double"
                                                               : elementTypeName(type);
  return "tensor(" + name + ")";
}

/// "tensor(int64)" as an element type; nothing for type variables and other types.
std::optional<int32_t> elementTypeOf(const std::string &text) {
  static const std::map<std::string, int32_t> types = [] {
    std::map<std::string, int32_t> types;
    for (int32_t type = onnx::TensorProto::FLOAT; type <= onnx::TensorProto::BFLOAT16; ++type)
      types[tensorText(type)] = type;
    return types;
  }();
  auto found = types.find(text);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

/// The formal parameter of an actual one; null where there are too many, which the checker refuses.
const Parameter *formal(const std::vector<Parameter> &parameters, int at) {
  if (parameters.empty())
    return nullptr;
  const size_t last = parameters.size() - 1, index = std::min<size_t>(at, last);
  return static_cast<size_t>(at) > last && parameters[last].GetOption() != onnx::OpSchema::Variadic
             ? nullptr
             : &parameters[index];
}

bool allows(const Parameter &parameter, int32_t type) {
  // Files of halves are read as float32 whatever opset gave the op halves; of types without whole bytes others judge.
  if (isFloatType(type) || (elementSize(type) == 0 && type != onnx::TensorProto::STRING))
    return true;
  for (const std::string *allowed : parameter.GetTypes())
    if (elementTypeOf(*allowed) == type)
      return true;
  return parameter.GetTypes().empty();
}

/// What attributes say of the results of ops whose operands do not.
std::optional<int32_t> typeByAttribute(const onnx::NodeProto &node) {
  const Attributes attributes(node);
  if (node.op_type() == "Cast")
    return static_cast<int32_t>(attributes.integer("to", 0));
  if (node.op_type() == "Constant" || node.op_type() == "ConstantOfShape") {
    if (const onnx::TensorProto *value = attributes.tensor("value"))
      return value->data_type();
    if (attributes.has("value_int") || attributes.has("value_ints"))
      return onnx::TensorProto::INT64;
    return onnx::TensorProto::FLOAT;
  }
  return std::nullopt;
}

/// Follows element types from inputs and initializers through the nodes, subgraphs included. A result of which nothing
/// is known has type 0, and whatever reads it is not judged.
class TypeWalk {
public:
  explicit TypeWalk(int64_t opset) : opset(opset) {}

  /// Bodies see the types of their surroundings, whose own names do not change.
  Status graph(const onnx::GraphProto &graph, const Types *outer = nullptr) {
    Types types{outer};
    for (const auto &initializer : graph.initializer())
      types.own[initializer.name()] = initializer.data_type();
    for (const auto &input : graph.input())
      types.own[input.name()] = input.type().has_tensor_type() ? input.type().tensor_type().elem_type() : 0;
    for (const onnx::NodeProto &node : graph.node()) {
      if (Status checked = this->node(node, types); !checked)
        return checked;
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          if (Status checked = this->graph(attribute.g(), &types); !checked)
            return checked;
    }
    return Success{};
  }

private:
  /// The first operand that gave a type variable of the schema its type.
  struct Binding {
    int32_t type;
    int input;
  };

  Status node(const onnx::NodeProto &node, Types &types) const {
    const onnx::OpSchema *schema =
        isStandard(node) ? onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), "") : nullptr;
    for (const std::string &output : node.output())
      types.own[output] = 0;
    if (!schema)
      return Success{};
    std::map<std::string, Binding> bound;
    for (int i = 0; i < node.input_size(); ++i) {
      const int32_t type = types.find(node.input(i));
      const Parameter *parameter = formal(schema->inputs(), i);
      if (!parameter || type == 0)
        continue;
      if (!allows(*parameter, type))
        return Error{describe(node, opset) + " reads '" + node.input(i) + "' of " + elementTypeName(type) +
                     ", which the op does not take; put a Cast before it"};
      if (parameter->GetOption() == onnx::OpSchema::Variadic && !parameter->GetIsHomogeneous())
        continue;
      auto [other, first] = bound.try_emplace(parameter->GetTypeStr(), Binding{type, i});
      if (!first && other->second.type != type && !elementTypeOf(parameter->GetTypeStr()))
        return Error{describe(node, opset) + " reads '" + node.input(other->second.input) + "' of " +
                     elementTypeName(other->second.type) + " and '" + node.input(i) + "' of " + elementTypeName(type) +
                     ", which must have one type; put a Cast before it"};
    }
    for (int i = 0; i < node.output_size(); ++i)
      if (auto type = typeOfResult(node, *schema, bound, i); type && !node.output(i).empty())
        types.own[node.output(i)] = *type;
    return Success{};
  }

  /// By an attribute, by the type variable that an operand has bound, or because the op has one type alone.
  static std::optional<int32_t> typeOfResult(const onnx::NodeProto &node, const onnx::OpSchema &schema,
                                             const std::map<std::string, Binding> &bound, int output) {
    if (auto type = typeByAttribute(node))
      return type;
    const Parameter *parameter = formal(schema.outputs(), output);
    if (!parameter || (parameter->GetOption() == onnx::OpSchema::Variadic && !parameter->GetIsHomogeneous()))
      return std::nullopt;
    if (auto found = bound.find(parameter->GetTypeStr()); found != bound.end())
      return found->second.type;
    return parameter->GetTypes().size() == 1 ? elementTypeOf(**parameter->GetTypes().begin()) : std::nullopt;
  }

  const int64_t opset;
};

} // namespace

Status checkElementTypes(const onnx::ModelProto &model, int64_t opset) { return TypeWalk(opset).graph(model.graph()); }

} // namespace sluice
