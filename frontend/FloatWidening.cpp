// SPDX-License-Identifier: Apache-2.0
// Types are rewritten in the model itself, before anything is inferred or inlined, so that importer, library and export
// template see one model.
#include "frontend/FloatWidening.h"

#include "frontend/ElementTypes.h"
#include "onnx/onnx_pb.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/CodecRules.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace sluice {
namespace {

using onnx::TensorProto;

bool isOther(int64_t type) { return isFloatType(type) && type != TensorProto::FLOAT; }

float limited(double number) {
  constexpr double largest = std::numeric_limits<float>::max();
  return static_cast<float>(std::isfinite(number) ? std::clamp(number, -largest, largest) : number);
}

template <typename Stored, typename Rule> std::string converted(std::string_view bytes, Rule rule) {
  std::string result(bytes.size() / sizeof(Stored) * sizeof(float), '\0');
  for (size_t i = 0; i < bytes.size() / sizeof(Stored); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    const float number = rule(stored);
    std::memcpy(result.data() + i * sizeof number, &number, sizeof number);
  }
  return result;
}

std::string asFloats(int32_t type, std::string_view bytes) {
  if (type == TensorProto::DOUBLE)
    return converted<double>(bytes, limited);
  if (type == TensorProto::FLOAT16)
    return converted<uint16_t>(bytes, floatOfHalf);
  return converted<uint16_t>(bytes, [](uint16_t bits) { return widened(BFloat16{bits}); });
}

void widenType(onnx::TypeProto &type) {
  if (type.has_tensor_type() && isOther(type.tensor_type().elem_type()))
    type.mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  if (type.has_sequence_type() && type.sequence_type().has_elem_type())
    widenType(*type.mutable_sequence_type()->mutable_elem_type());
  if (type.has_optional_type() && type.optional_type().has_elem_type())
    widenType(*type.mutable_optional_type()->mutable_elem_type());
}

/// A new message instead of the old one, whose data may stand in any of several fields, or in another file.
void widenTensor(TensorProto &tensor, std::string_view bytes) {
  TensorProto wide;
  wide.set_name(tensor.name());
  *wide.mutable_dims() = tensor.dims();
  wide.set_data_type(TensorProto::FLOAT);
  wide.set_raw_data(asFloats(tensor.data_type(), bytes));
  tensor.Swap(&wide);
}

/// A tensor of a node or of one of its graphs, never in another file. One that has not the bytes that it says is left
/// as it is, for who reads it to refuse.
void widenConstant(TensorProto &constant) {
  if (!isOther(constant.data_type()) || constant.data_location() == TensorProto::EXTERNAL)
    return;
  TensorIndex index{std::string()};
  onnx::GraphProto holder;
  *holder.add_initializer() = constant;
  if (index.addInitializers(holder))
    widenTensor(constant, index.find(constant.name())->bytes);
}

void widenValues(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &values) {
  for (onnx::ValueInfoProto &value : values)
    widenType(*value.mutable_type());
}

void widenNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes);

/// But for initializers.
void widenGraph(onnx::GraphProto &graph) {
  widenValues(*graph.mutable_input());
  widenValues(*graph.mutable_output());
  widenValues(*graph.mutable_value_info());
  widenNodes(*graph.mutable_node());
}

/// Attributes that name an element type are known by name, as numbers of others could mean anything.
void widenAttribute(onnx::AttributeProto &attribute) {
  static const std::set<std::string> types = {"to", "dtype", "output_dtype", "stash_type", "softmax_precision"};
  if (attribute.type() == onnx::AttributeProto::INT && types.count(attribute.name()) && isOther(attribute.i()))
    attribute.set_i(TensorProto::FLOAT);
  if (attribute.has_t())
    widenConstant(*attribute.mutable_t());
  if (attribute.has_g()) {
    for (TensorProto &initializer : *attribute.mutable_g()->mutable_initializer())
      widenConstant(initializer);
    widenGraph(*attribute.mutable_g());
  }
}

void widenNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
  for (onnx::NodeProto &node : nodes)
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      widenAttribute(attribute);
}

bool holdsOther(const onnx::GraphProto &graph) {
  return std::any_of(graph.initializer().begin(), graph.initializer().end(),
                     [](const TensorProto &tensor) { return isOther(tensor.data_type()); }) ||
         std::any_of(graph.input().begin(), graph.input().end(),
                     [](const onnx::ValueInfoProto &input) { return isOther(input.type().tensor_type().elem_type()); });
}

size_t storedBytes(int32_t type) { return type == TensorProto::DOUBLE ? sizeof(double) : sizeof(uint16_t); }

} // namespace

/// Before the first copy is made: a small file may name large external data, and the same bytes many times.
Status checkWidened(const onnx::ModelProto &model, const TensorIndex &tensors, const Limits &limits) {
  int64_t bytes = 0;
  for (const TensorProto &initializer : model.graph().initializer()) {
    const int32_t type = initializer.data_type();
    if (!isOther(type))
      continue;
    const size_t elements = tensors.find(initializer.name())->bytes.size() / storedBytes(type);
    bytes += static_cast<int64_t>(elements * sizeof(float));
    if (bytes > limits.widenedBytes)
      return Error{"initializer '" + initializer.name() + "', with those before it as float32, " +
                   overLimit(std::to_string(bytes) + " bytes", limits.widenedBytes, "widened-bytes") +
                   "; store weights as float32 in a file of external data, which is not copied"};
  }
  return Success{};
}

/// Views that `tensors` has of the model's own bytes dangle after a change, since weights get new bytes.
bool widenFloats(onnx::ModelProto &model, const TensorIndex &tensors) {
  if (!holdsOther(model.graph()))
    return false;
  for (TensorProto &initializer : *model.mutable_graph()->mutable_initializer())
    if (isOther(initializer.data_type()))
      widenTensor(initializer, tensors.find(initializer.name())->bytes);
  widenGraph(*model.mutable_graph());
  for (onnx::FunctionProto &function : *model.mutable_functions()) {
    widenNodes(*function.mutable_node());
    widenValues(*function.mutable_value_info());
    for (onnx::AttributeProto &attribute : *function.mutable_attribute_proto())
      widenAttribute(attribute);
  }
  return true;
}

} // namespace sluice
