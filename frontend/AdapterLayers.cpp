// SPDX-License-Identifier: Apache-2.0
// A weight is followed back through views to the initializer that it is.
#include "frontend/AdapterLayers.h"

#include "frontend/Attributes.h"
#include "frontend/HostTensor.h"
#include "frontend/NodeWalk.h"
#include "frontend/OnnxGraph.h"

#include <algorithm>

namespace sluice {

Layers::Layers(const OnnxFile &file, const AdapterRequest &request, const NamePatterns &targets)
    : file(file), request(request), targets(targets) {
  const onnx::GraphProto &graph = file.model().graph();
  for (const onnx::TensorProto &initializer : graph.initializer())
    initializers.insert(initializer.name());
  for (const onnx::ValueInfoProto &output : graph.output())
    outputs.insert(output.name());
  forEachNode(graph.node(), [&](const onnx::NodeProto &node) {
    for (const std::string &input : node.input())
      readers[input].push_back(&node);
  });
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      makers[output] = &node;
}

std::optional<Layer> Layers::targetOf(const onnx::NodeProto &node) const {
  const std::optional<Layer> layer = layerOf(node);
  return layer && isTarget(*layer, node) ? layer : std::nullopt;
}

std::optional<Layer> Layers::convolutionOf(const onnx::NodeProto &node) const {
  std::string name = node.input_size() > 1 ? node.input(1) : "";
  for (auto maker = makers.find(name); maker != makers.end(); maker = makers.find(name)) {
    if (!isStandard(*maker->second) || maker->second->op_type() != "Identity")
      return std::nullopt;
    name = maker->second->input(0);
  }
  const FileTensor *tensor = initializers.count(name) ? file.tensor(name) : nullptr;
  if (!tensor || tensor->elementType != onnx::TensorProto::FLOAT || tensor->shape.size() < 3)
    return std::nullopt;
  Layer layer{name, 1, tensor->shape[0], true, {tensor->shape.begin() + 1, tensor->shape.end()}};
  layer.groups = Attributes(node).integer("group", 1);
  layer.inputs = elementCount(layer.window).value_or(0);
  return layer;
}

std::optional<Layer> Layers::layerOf(const onnx::NodeProto &node) const {
  if (isStandard(node) && node.op_type() == "Conv" && node.output_size() == 1)
    return convolutionOf(node);
  const bool gemm = node.op_type() == "Gemm";
  if (!isStandard(node) || (!gemm && node.op_type() != "MatMul") || node.input_size() < 2 || node.output_size() != 1 ||
      Attributes(node).integer("transA", 0))
    return std::nullopt;
  bool turned = Attributes(node).integer("transB", 0) != 0;
  std::string name = node.input(1);
  for (auto maker = makers.find(name); maker != makers.end(); maker = makers.find(name)) {
    const onnx::NodeProto &view = *maker->second;
    if (!isStandard(view) || (view.op_type() != "Identity" && view.op_type() != "Transpose"))
      return std::nullopt;
    turned ^= view.op_type() == "Transpose"; // of a matrix there is no other order but the one that changes nothing
    if (const auto order = Attributes(view).integers("perm"); !order.empty() && order != std::vector<int64_t>{1, 0})
      return std::nullopt;
    name = view.input(0);
  }
  const FileTensor *tensor = initializers.count(name) ? file.tensor(name) : nullptr;
  if (!tensor || tensor->elementType != onnx::TensorProto::FLOAT || tensor->shape.size() != 2)
    return std::nullopt;
  return Layer{name, tensor->shape[turned ? 1 : 0], tensor->shape[turned ? 0 : 1], turned};
}

/// Without a pattern all matrices are targets but those of a model's last layers, and those that are tables, too.
bool Layers::isTarget(const Layer &layer, const onnx::NodeProto &node) const {
  if (!request.targets.empty())
    return targets.matches(layer.weight);
  if (!layer.window.empty())
    return false;
  const auto reads = readers.find(layer.weight);
  const bool isTable = std::any_of(reads->second.begin(), reads->second.end(),
                                   [](const onnx::NodeProto *reader) { return reader->op_type() == "Gather"; });
  return !isTable && request.rank < std::min(layer.inputs, layer.outputs) && !endsTheModel(node.output(0));
}

/// Whether a value is an output, but for biases, factors and views.
bool Layers::endsTheModel(std::string value) const {
  for (size_t steps = 0; steps <= makers.size(); ++steps) {
    if (outputs.count(value))
      return true;
    const auto reads = readers.find(value);
    if (reads == readers.end() || reads->second.size() != 1)
      return false;
    const onnx::NodeProto &reader = *reads->second[0];
    if (!isView(reader) && reader.op_type() != "Add" && reader.op_type() != "Mul" && reader.op_type() != "Div")
      return false;
    value = reader.output(0);
  }
  return false;
}

} // namespace sluice
