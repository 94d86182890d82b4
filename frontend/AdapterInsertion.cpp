// SPDX-License-Identifier: Apache-2.0
// Layers are MatMul and Gemm nodes whose second factor is an initializer, as it lies or transposed. What stands beside
// one comes right behind it, so that the graph's order stays topological.
#include "frontend/AdapterInsertion.h"

#include "frontend/Attributes.h"
#include "frontend/NodeProtos.h"
#include "frontend/NodeWalk.h"
#include "frontend/OnnxGraph.h"
#include "frontend/Refusals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace sluice {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// A product of rows with a matrix of the file.
struct Layer {
  std::string weight;
  int64_t inputs, outputs;
};

/// A node that is called as its result is.
onnx::NodeProto nodeOf(const char *op, const std::vector<std::string> &inputs, const std::string &result) {
  onnx::NodeProto node = makeNode(op, inputs);
  node.set_name(result);
  node.add_output(result);
  return node;
}

/// The layers of a graph, and which of them are asked for.
class Layers {
public:
  Layers(const OnnxFile &file, const AdapterRequest &request, const NamePatterns &targets)
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

  /// The layer that the node is, where it is one that is asked for.
  std::optional<Layer> find(const onnx::NodeProto &node) const {
    const std::optional<Layer> layer = layerOf(node);
    return layer && isTarget(*layer, node) ? layer : std::nullopt;
  }

private:
  std::optional<Layer> layerOf(const onnx::NodeProto &node) const {
    const bool gemm = node.op_type() == "Gemm";
    if (!isStandard(node) || (!gemm && node.op_type() != "MatMul") || node.input_size() < 2 ||
        node.output_size() != 1 || Attributes(node).integer("transA", 0))
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
    return Layer{name, tensor->shape[turned ? 1 : 0], tensor->shape[turned ? 0 : 1]};
  }

  /// Without a pattern all matrices are targets but those of a model's last layers, and those that are tables, too.
  bool isTarget(const Layer &layer, const onnx::NodeProto &node) const {
    if (!request.targets.empty())
      return targets.matches(layer.weight);
    const auto reads = readers.find(layer.weight);
    const bool isTable = std::any_of(reads->second.begin(), reads->second.end(),
                                     [](const onnx::NodeProto *reader) { return reader->op_type() == "Gather"; });
    return !isTable && request.rank < std::min(layer.inputs, layer.outputs) && !endsTheModel(node.output(0));
  }

  /// Whether a value is an output, but for biases, factors and views.
  bool endsTheModel(std::string value) const {
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

  const OnnxFile &file;
  const AdapterRequest &request;
  const NamePatterns &targets;
  std::set<std::string> initializers; ///< of the file
  std::set<std::string> outputs;      ///< of the graph
  std::map<std::string, const onnx::NodeProto *> makers;
  std::map<std::string, std::vector<const onnx::NodeProto *>> readers; ///< those of bodies, too
};

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
    Nodes nodes;
    for (const onnx::NodeProto &node : file.model().graph().node()) {
      const std::optional<Layer> layer = layers.find(node);
      if (!layer) {
        *nodes.Add() = node;
        continue;
      }
      if (Status added = addTensors(*layer); !added)
        return added.takeError();
      stand(*layer, node, nodes);
    }
    if (spec.adapterParts.empty())
      return Error{"--adapter: " + (request.targets.empty()
                                        ? "no layer of the model has a weight matrix of more than " +
                                              std::to_string(request.rank) + " rows and columns"
                                        : "targets=" + request.targets +
                                              " matches the whole name of no weight of a MatMul or Gemm node; "
                                              "--list-parameters names them")};
    if (Status replaced = file.replaceNodes(nodes); !replaced)
      return replaced.takeError();
    return "adapters of rank " + std::to_string(request.rank) + " stand beside " +
           counted(spec.adapterParts.size() / 2, "weight") + ", " + counted(numbers, "number") + " in all; " +
           "all else is held fixed but for what --train names";
  }

private:
  std::string partOf(const Layer &layer, const char *part) const {
    const std::string suffix = ".weight", &name = layer.weight;
    const bool ends =
        name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
    return (ends ? name.substr(0, name.size() - suffix.size()) : name) + part + suffix;
  }
  std::string firstOf(const Layer &layer) const { return partOf(layer, ".lora_A"); }
  std::string secondOf(const Layer &layer) const { return partOf(layer, ".lora_B"); }

  /// Both matrices of a weight, once.
  Status addTensors(const Layer &layer) {
    if (spec.adapterParts.count(firstOf(layer)))
      return Success{};
    if (request.rank >= std::min(layer.inputs, layer.outputs))
      return Error{"--adapter: rank " + std::to_string(request.rank) + " is not below the extents of '" + layer.weight +
                   "', " + std::to_string(layer.inputs) + " inputs and " + std::to_string(layer.outputs) +
                   " outputs: choose a smaller one, or leave it out of targets and train it as it is with --train"};
    const std::pair<std::string, std::vector<int64_t>> tensors[] = {{firstOf(layer), {request.rank, layer.inputs}},
                                                                    {secondOf(layer), {layer.outputs, request.rank}}};
    for (const auto &[name, shape] : tensors) {
      if (!names.insert(name).second)
        return Error{"--adapter: the model has '" + name +
                     "' already; a model with adapters is trained with "
                     "--freeze='.*' --train='.*[.]lora_[AB][.].*'"};
      onnx::TensorProto zeros;
      zeros.set_data_type(onnx::TensorProto::FLOAT);
      zeros.add_dims(shape[0]);
      zeros.add_dims(shape[1]);
      const size_t count = static_cast<size_t>(shape[0] * shape[1]);
      zeros.set_raw_data(std::string(count * sizeof(float), '\0'));
      if (Status added = file.addInitializer(zeros, name); !added)
        return added;
      numbers += count;
    }
    spec.adapterParts[firstOf(layer)] = AdapterPart::First;
    spec.adapterParts[secondOf(layer)] = AdapterPart::Second;
    return Success{};
  }

  /// A name that the model does not have.
  std::string fresh(std::string name) {
    while (!names.insert(name).second)
      name += "_";
    return name;
  }

  /// A node that makes one number, of whichever type.
  std::string constant(const std::string &name, int32_t type, const std::string &bytes, Nodes &nodes) {
    const std::string output = fresh(name);
    onnx::NodeProto node = nodeOf("Constant", {}, output);
    onnx::TensorProto &value = setConstant(node);
    value.set_data_type(type);
    value.set_raw_data(bytes);
    *nodes.Add() = std::move(node);
    return output;
  }

  std::string number(const std::string &name, double value, Nodes &nodes) {
    const float rounded = static_cast<float>(value);
    return constant(name, onnx::TensorProto::FLOAT,
                    std::string(reinterpret_cast<const char *>(&rounded), sizeof rounded), nodes);
  }

  /// x with the request's dropout.
  std::string dropped(const std::string &x, const std::string &scope, Nodes &nodes) {
    if (request.dropout == 0)
      return x;
    const std::string output = fresh(scope + "/dropout");
    std::vector<std::string> inputs = {x};
    const bool byInputs = file.opset() >= 12;
    if (byInputs) {
      inputs.push_back(number(scope + "/ratio", request.dropout, nodes));
      inputs.push_back(constant(scope + "/training", onnx::TensorProto::BOOL, std::string(1, '\1'), nodes));
    }
    onnx::NodeProto &node = *nodes.Add() = nodeOf("Dropout", inputs, output);
    if (!byInputs)
      setNumber(node, "ratio", request.dropout);
    return output;
  }

  /// The layer's node, and its adapter behind it.
  void stand(const Layer &layer, const onnx::NodeProto &node, Nodes &nodes) {
    const std::string &result = node.output(0), scope = result + "/lora";
    const double scale = request.alpha / (request.rootOfRank ? std::sqrt(static_cast<double>(request.rank))
                                                             : static_cast<double>(request.rank));
    onnx::NodeProto base = node;
    const std::string alone = fresh(result + "/base");
    base.set_output(0, alone);
    *nodes.Add() = std::move(base);
    const std::string x = dropped(node.input(0), scope, nodes), narrow = fresh(scope + "_A"),
                      wide = fresh(scope + "_B");
    std::string added = wide;
    const auto product = [&](const char *op, const std::string &a, const std::string &b,
                             const std::string &output) -> onnx::NodeProto & {
      return *nodes.Add() = nodeOf(op, {a, b}, output);
    };
    if (node.op_type() == "Gemm") {
      setInteger(product("Gemm", x, firstOf(layer), narrow), "transB", 1);
      onnx::NodeProto &second = product("Gemm", narrow, secondOf(layer), wide);
      setInteger(second, "transB", 1);
      setNumber(second, "alpha", scale);
    } else {
      const std::string first = fresh(scope + "_A_t"), second = fresh(scope + "_B_t");
      added = fresh(scope + "_scaled");
      setIntegers(*nodes.Add() = nodeOf("Transpose", {firstOf(layer)}, first), "perm", {1, 0});
      setIntegers(*nodes.Add() = nodeOf("Transpose", {secondOf(layer)}, second), "perm", {1, 0});
      product("MatMul", x, first, narrow);
      product("MatMul", narrow, second, wide);
      product("Mul", wide, number(scope + "_scale", scale, nodes), added);
    }
    onnx::NodeProto &sum = *nodes.Add() = makeNode("Add", {alone, added});
    sum.set_name(scope);
    sum.add_output(result);
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
