// SPDX-License-Identifier: Apache-2.0
// Every layer that is asked for gets its tensors once, and its nodes where it stands.
#include "frontend/AdapterInsertion.h"

#include "frontend/AdapterLayers.h"
#include "frontend/AdapterNodes.h"
#include "frontend/Attributes.h"
#include "frontend/HostTensor.h"
#include "frontend/NodeWalk.h"
#include "frontend/Refusals.h"

#include <algorithm>
#include <optional>
#include <set>

namespace sluice {
namespace {

class Insertion {
public:
  Insertion(OnnxFile &file, TrainingSpec &spec, const NamePatterns &targets)
      : file(file), spec(spec), request(*spec.adapter), layers(file, request, targets) {
    const onnx::GraphProto &graph = file.model().graph();
    for (const onnx::TensorProto &initializer : graph.initializer())
      names.insert(initializer.name());
    for (const onnx::ValueInfoProto &input : graph.input())
      names.insert(input.name());
    forEachNode(graph.node(),
                [&](const onnx::NodeProto &node) { names.insert(node.output().begin(), node.output().end()); });
  }

  Result<std::string> run() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    AdapterNodes adapters(request, file.opset(), names, nodes);
    for (const onnx::NodeProto &node : file.model().graph().node()) {
      const std::optional<Layer> layer = layers.targetOf(node);
      if (!layer) {
        *nodes.Add() = node;
        continue;
      }
      if (Status supported = check(*layer, node); !supported)
        return supported.takeError();
      if (Status added = addTensors(*layer); !added)
        return added.takeError();
      adapters.stand(*layer, node);
    }
    if (spec.adapterParts.empty())
      return Error{"--adapter: " +
                   (request.targets.empty()
                        ? "no layer of the model has a weight matrix of more than " + std::to_string(request.rank) +
                              " rows and columns; convolutions have one where targets=REGEX names them"
                        : "targets=" + request.targets +
                              " matches the whole name of no weight of a MatMul, Gemm or Conv node; "
                              "--list-parameters names them")};
    spec.detached = adapters.detached();
    if (Status replaced = file.replaceNodes(nodes); !replaced)
      return replaced.takeError();
    return std::string(request.hasMagnitude ? "DoRA's " : "") + "adapters of rank " + std::to_string(request.rank) +
           " stand beside " + counted(spec.adapterParts.size() / (request.hasMagnitude ? 3 : 2), "weight") + ", " +
           counted(numbers, "number") + " in all; " + "all else is held fixed but for what --train names";
  }

private:
  /// What no adapter stands beside.
  Status check(const Layer &layer, const onnx::NodeProto &node) const {
    const std::string what = "--adapter: '" + layer.weight + "' ", instead = ": leave it out of targets";
    if (layer.groups != 1)
      return Error{what + "is of a convolution in " + std::to_string(layer.groups) +
                   " groups, which the adapter's matrices together would not have" + instead};
    if (!request.hasMagnitude)
      return Success{};
    const Attributes attributes(node);
    if (node.op_type() == "Gemm" && (attributes.number("alpha", 1) != 1 || attributes.number("beta", 1) != 1))
      return Error{what + "is of a Gemm node with alpha or beta, which dora does not stand beside" + instead};
    return Success{};
  }

  /// The tensors of a weight's adapter, once.
  Status addTensors(const Layer &layer) {
    const AdapterTensors tensors(layer);
    if (spec.adapterParts.count(tensors.first))
      return Success{};
    if (request.rank >= std::min(layer.inputs, layer.outputs))
      return Error{"--adapter: rank " + std::to_string(request.rank) + " is not below the extents of '" + layer.weight +
                   "', " + std::to_string(layer.inputs) + " inputs and " + std::to_string(layer.outputs) +
                   " outputs: choose a smaller one, or leave it out of targets and train it as it is with --train"};
    std::vector<std::pair<std::string, std::vector<int64_t>>> added = {{tensors.first, {request.rank, layer.inputs}},
                                                                       {tensors.second, {layer.outputs, request.rank}}};
    if (!layer.window.empty()) {
      added[0].second.pop_back();
      added[0].second.insert(added[0].second.end(), layer.window.begin(), layer.window.end());
      added[1].second.insert(added[1].second.end(), layer.window.size() - 1, 1);
    }
    if (request.hasMagnitude)
      added.push_back({tensors.magnitude, layer.magnitudeShape()});
    for (const auto &[name, shape] : added) {
      if (!names.insert(name).second)
        return Error{"--adapter: the model has '" + name +
                     "' already; a model with adapters is trained with "
                     "--freeze='.*' --train='.*[.]lora_[AB][.].*'"};
      onnx::TensorProto zeros;
      zeros.set_data_type(onnx::TensorProto::FLOAT);
      for (int64_t extent : shape)
        zeros.add_dims(extent);
      const size_t count = static_cast<size_t>(elementCount(shape).value_or(0));
      zeros.set_raw_data(std::string(count * sizeof(float), '\0'));
      if (Status taken = file.addInitializer(zeros, name); !taken)
        return taken;
      numbers += count;
    }
    spec.adapterParts[tensors.first] = AdapterPart::First;
    spec.adapterParts[tensors.second] = AdapterPart::Second;
    if (request.hasMagnitude)
      spec.adapterParts[tensors.magnitude] = AdapterPart::Magnitude;
    return Success{};
  }

  OnnxFile &file;
  TrainingSpec &spec;
  const AdapterRequest &request;
  const Layers layers;
  std::set<std::string> names; ///< of all values and tensors
  size_t numbers = 0;          ///< elements of the new tensors
};

} // namespace

Result<std::string> insertAdapters(OnnxFile &file, TrainingSpec &spec) {
  Result<NamePatterns> targets = spec.adapter->targets.empty()
                                     ? Result<NamePatterns>(NamePatterns())
                                     : NamePatterns::compile("--adapter", {NamePattern(spec.adapter->targets)});
  if (!targets)
    return targets.takeError();
  spec.adapterParts.clear();
  return Insertion(file, spec, *targets).run();
}

} // namespace sluice
