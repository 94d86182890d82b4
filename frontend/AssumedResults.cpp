// SPDX-License-Identifier: Apache-2.0
// The library's inference of one node, from the types of its operands here and the small constants among them. It runs
// on models that are refused already: whatever it throws means that nothing is known.
#include "frontend/AssumedResults.h"
#include "onnx/shape_inference/implementation.h"

namespace sluice {
namespace {

/// Operands of a node as the library wants them; it refers to types and data by name and keeps addresses.
struct Operands {
  std::map<std::string, onnx::TypeProto> types;
  std::map<std::string, onnx::TensorProto> data;

  void add(const std::string &name, int32_t elementType, llvm::ArrayRef<int64_t> shape) {
    auto *tensor = types[name].mutable_tensor_type();
    tensor->set_elem_type(elementType);
    tensor->mutable_shape();
    for (int64_t extent : shape)
      tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  }

  void addData(const std::string &name, const HostTensor &value) {
    onnx::TensorProto &tensor = data[name];
    tensor.set_data_type(value.integral ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
    for (int64_t extent : value.shape)
      tensor.add_dims(extent);
    for (int64_t i = 0; i < value.size(); ++i)
      value.integral ? tensor.add_int64_data(value.ints[i]) : tensor.add_float_data(value.floats[i]);
  }
};

constexpr int64_t mostData = 1024; ///< elements of a constant that an inference reads: shapes, axes, scales; it looks
                                   ///< at the first one without a look at their number

/// What is known of the node's operands. One of which nothing is known is left out; inferShapes() then gives up, since
/// the library's inferences read the types of operands without a look whether they are there.
Operands operandsOf(NodeImport &node) {
  Operands operands;
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has(i))
      continue;
    const std::string &name = node.proto().input(i);
    if (mlir::Value value = node.shared().values.lookup(name))
      operands.add(name, typeOf(value).getElementType().isF32() ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64,
                   shapeOf(value));
    else if (const Source *source = node.source(i))
      operands.add(name, source->elementType, source->shape);
    if (const HostTensor *value = node.known(i); value && value->size() > 0 && value->size() <= mostData)
      operands.addData(name, *value);
  }
  return operands;
}

/// Nothing for shapes that are not wholly known: an assumed value must have a type that later nodes can be asked about.
std::optional<std::vector<int64_t>> shapeOfFloats(const onnx::TypeProto &type, const Limits &limits) {
  if (!type.has_tensor_type() || type.tensor_type().elem_type() != onnx::TensorProto::FLOAT ||
      !type.tensor_type().has_shape())
    return std::nullopt;
  std::vector<int64_t> shape;
  for (const auto &extent : type.tensor_type().shape().dim())
    shape.push_back(extent.has_dim_value() ? extent.dim_value() : 0);
  if (llvm::any_of(shape, [](int64_t extent) { return extent < 1; }) || !checkShape(shape, limits))
    return std::nullopt;
  return shape;
}

/// One entry per output: the shape of a float32 tensor within the limits, or nothing where the result is another one or
/// the schema does not say.
std::vector<std::optional<std::vector<int64_t>>> inferShapes(NodeImport &node) {
  std::vector<std::optional<std::vector<int64_t>>> shapes(node.proto().output_size());
  const onnx::OpSchema *schema =
      isStandard(node.proto())
          ? onnx::OpSchemaRegistry::Schema(node.proto().op_type(), static_cast<int>(node.opset), "")
          : nullptr;
  const bool nested = llvm::any_of(node.proto().attribute(),
                                   [](const auto &attribute) { return attribute.has_g() || attribute.graphs_size(); });
  if (!schema || nested)
    return shapes;
  Operands operands = operandsOf(node);
  for (const std::string &input : node.proto().input()) // inferences read types of operands without a look
    if (!input.empty() && !operands.types.count(input))
      return shapes;
  std::unordered_map<std::string, onnx::TypeProto *> types;
  for (auto &[name, type] : operands.types)
    types[name] = &type;
  std::unordered_map<std::string, const onnx::TensorProto *> data;
  for (auto &[name, tensor] : operands.data)
    data[name] = &tensor;
  onnx::NodeProto copy = node.proto();
  try {
    onnx::shape_inference::InferenceContextImpl context(copy, types, data, {}, onnx::ShapeInferenceOptions());
    schema->GetTypeAndShapeInferenceFunction()(context);
    for (size_t i = 0; i < context.allOutputTypes_.size() && i < shapes.size(); ++i)
      shapes[i] = shapeOfFloats(context.allOutputTypes_[i], node.spec().limits);
  } catch (const std::exception &) {
    shapes.assign(shapes.size(), std::nullopt);
  }
  return shapes;
}

} // namespace

/// Assumed results are arguments of the function's block, since no op makes them: the import fails in any case.
void assumeResults(NodeImport &node) {
  FunctionImport &state = node.shared();
  auto shapes = inferShapes(node);
  for (auto [name, shape] : llvm::zip(node.proto().output(), shapes)) {
    if (name.empty())
      continue;
    (shape ? state.assumed : state.unknown).insert(name);
    if (shape)
      state.values[name] = state.builder.getInsertionBlock()->addArgument(
          mlir::RankedTensorType::get(*shape, state.builder.getF32Type()), node.loc());
  }
}

} // namespace sluice
