// SPDX-License-Identifier: Apache-2.0
// Liveness from the trained output backwards, input shapes with --batch and --dim applied, and the search for weights.
#include "frontend/OnnxGraph.h"
#include "frontend/HostTensor.h"
#include "frontend/NodeWalk.h"
#include "onnx/onnx_pb.h"
#include <algorithm>

namespace sluice {
namespace {

/// Views behind one another that are looked through, for each of them.
constexpr int longestViews = 100;

/// Names that a node reads, and those that its bodies do, which may be of the graph around them.
void addReads(const onnx::NodeProto &node, std::set<std::string> &live) {
  for (const std::string &name : node.input())
    if (!name.empty())
      live.insert(name);
  forEachBody(node, [&](const onnx::GraphProto &body) {
    for (const onnx::NodeProto &inner : body.node())
      addReads(inner, live);
    for (const auto &output : body.output())
      live.insert(output.name());
  });
}

/// Names that live nodes read; the output among them.
std::set<std::string> findLive(const onnx::GraphProto &graph, OnnxGraph &result) {
  std::set<std::string> live = {result.output};
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto &node = graph.node(i);
    if (std::none_of(node.output().begin(), node.output().end(),
                     [&](const auto &name) { return !name.empty() && live.count(name); }))
      continue;
    result.nodes.push_back(&node);
    addReads(node, live);
  }
  std::reverse(result.nodes.begin(), result.nodes.end());
  return live;
}

/// The nodes that only other outputs of the model need, as far as these read no input and no weight of their own.
void findOthers(const onnx::GraphProto &proto, const std::set<std::string> &live, OnnxGraph &graph) {
  std::set<std::string> known = live, wanted(graph.otherOutputs.begin(), graph.otherOutputs.end());
  for (const auto &initializer : proto.initializer())
    if (initializer.data_type() != onnx::TensorProto::FLOAT)
      known.insert(initializer.name());
  std::set<const onnx::NodeProto *> taken(graph.nodes.begin(), graph.nodes.end());
  for (const onnx::NodeProto *node : graph.nodes)
    known.insert(node->output().begin(), node->output().end());
  for (const onnx::NodeProto &node : proto.node()) {
    std::set<std::string> reads;
    addReads(node, reads);
    if (taken.count(&node) || !std::includes(known.begin(), known.end(), reads.begin(), reads.end()))
      continue;
    known.insert(node.output().begin(), node.output().end());
    graph.otherNodes.push_back(&node);
  }
  std::vector<const onnx::NodeProto *> needed;
  for (auto node = graph.otherNodes.rbegin(); node != graph.otherNodes.rend(); ++node) {
    const auto &outputs = (*node)->output();
    if (std::none_of(outputs.begin(), outputs.end(), [&](const auto &name) { return wanted.count(name); }))
      continue;
    needed.push_back(*node);
    addReads(**node, wanted);
  }
  graph.otherNodes.assign(needed.rbegin(), needed.rend());
}

/// The name by which --dim knows a dimension.
std::string dimName(const onnx::ValueInfoProto &input, int i) {
  const auto &dim = input.type().tensor_type().shape().dim(i);
  return dim.has_dim_param() && !dim.dim_param().empty() ? dim.dim_param()
                                                         : input.name() + "[" + std::to_string(i) + "]";
}

Error openDimension(const onnx::ValueInfoProto &input, int i) {
  std::string name = dimName(input, i);
  return Error{"input '" + input.name() + "' leaves dimension " + std::to_string(i) + " ('" + name +
               "') open; fix it with " + (i == 0 ? "--batch=N or " : "") + "--dim " + name + "=N"};
}

/// Applies --batch and --dim to the inputs.
class InputShapes {
public:
  InputShapes(const TrainingSpec &spec, OnnxGraph &graph) : spec(spec), graph(graph) {}

  Status add(const onnx::ValueInfoProto &input) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return Error{"input '" + input.name() + "' is not a tensor of known rank"};
    GraphInput entry{input.name(), input.type().tensor_type().elem_type(), {}};
    for (int i = 0; i < input.type().tensor_type().shape().dim_size(); ++i) {
      int64_t extent = extentOf(input, i);
      if (extent == 0)
        return openDimension(input, i);
      if (extent < 0)
        return Error{"input '" + input.name() + "' has the negative extent " + std::to_string(extent)};
      entry.shape.push_back(extent);
    }
    if (std::string why = refusedShape(entry.shape, spec.limits); !why.empty())
      return Error{"input '" + input.name() + "' " + why};
    if (graph.inputs.empty() && !entry.shape.empty())
      graph.batch = entry.shape[0];
    graph.inputs.push_back(std::move(entry));
    return Success{};
  }

  /// --dim names that no input has.
  Status checkNames() const {
    for (const auto &[name, extent] : spec.dims)
      if (!used.count(name)) {
        std::string known;
        for (const std::string &other : names)
          known += (known.empty() ? "" : ", ") + other;
        return Error{"--dim " + name + "=" + std::to_string(extent) +
                     " names no open dimension of an input; there are: " + (known.empty() ? "none" : known)};
      }
    return Success{};
  }

  /// Data files hold one sample a row, so every input begins with the batch.
  Status checkBatches() const {
    for (const GraphInput &input : graph.inputs) {
      if (input.shape.empty() || input.shape[0] != graph.batch)
        return Error{"input '" + input.name + "' of shape " + shapeText(input.shape) +
                     " does not begin with the batch of " + std::to_string(graph.batch) + " that '" +
                     graph.inputs[0].name + "' has"};
      if (input.name == "target" && spec.loss != AttachedLoss::None)
        return Error{"input 'target' has the name of the attached loss's target; rename it"};
    }
    return Success{};
  }

private:
  /// 0 when open.
  int64_t extentOf(const onnx::ValueInfoProto &input, int i) {
    const auto &dim = input.type().tensor_type().shape().dim(i);
    bool fixed = dim.has_dim_value() && dim.dim_value() != 0;
    std::string name = fixed ? std::to_string(dim.dim_value()) : dimName(input, i);
    if (!fixed)
      names.insert(name);
    if (i == 0 && !sawFirst) {
      batchName = name;
      sawFirst = true;
      if (spec.batch && fixed && dim.dim_value() != *spec.batch)
        graph.replacedBatch = dim.dim_value();
    }
    auto given = fixed ? spec.dims.end() : spec.dims.find(name);
    if (given != spec.dims.end()) {
      used.insert(name);
      return given->second;
    }
    // Inputs share the batch when they share its name or number; an unnamed first dimension is the batch too.
    bool unnamed = !fixed && name == input.name() + "[0]";
    if (i == 0 && spec.batch && (name == batchName || unnamed))
      return *spec.batch;
    return fixed ? dim.dim_value() : 0;
  }

  const TrainingSpec &spec;
  OnnxGraph &graph;
  std::string batchName;
  bool sawFirst = false;
  std::set<std::string> names, used;
};

/// Input positions of an op's weights.
std::vector<int> weightPositions(const std::string &opType) {
  if (opType == "Conv" || opType == "ConvTranspose" || opType == "BatchNormalization")
    return {1, 2};
  if (opType == "Gemm")
    return {0, 1, 2};
  if (opType == "LSTM" || opType == "GRU" || opType == "RNN")
    return {1, 2, 3};
  if (opType == "Gather")
    return {0};
  return opType == "MatMul" ? std::vector<int>{0, 1} : std::vector<int>();
}

bool findWeights(const onnx::GraphProto &proto, const OnnxGraph &graph) {
  std::set<std::string> weights = graph.roles.weights; // trained float tensors and views of them
  for (const auto &initializer : proto.initializer())
    if (initializer.data_type() == onnx::TensorProto::FLOAT && initializer.dims_size() >= 2 &&
        !graph.roles.held.count(initializer.name()))
      weights.insert(initializer.name());
  for (const onnx::NodeProto *node : graph.nodes) {
    if (isView(*node) && weights.count(node->input(0)))
      weights.insert(node->output(0));
    for (int i : weightPositions(node->op_type()))
      if (i < node->input_size() && weights.count(node->input(i)))
        return true;
  }
  return false;
}

void readOutput(const onnx::ValueInfoProto &output, OnnxGraph &graph) {
  if (!output.type().has_tensor_type() || !output.type().tensor_type().has_shape())
    return;
  graph.outputDeclared = true;
  for (const auto &dim : output.type().tensor_type().shape().dim())
    graph.outputShape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
}

/// The first output, or the one that --output names; any value of the graph will do.
Status chooseOutput(const onnx::GraphProto &proto, const std::string &name, OnnxGraph &graph) {
  graph.output = name.empty() ? proto.output(0).name() : name;
  bool isMade = false;
  for (const auto &output : proto.output())
    if (output.name() == graph.output) {
      readOutput(output, graph);
      isMade = true;
    } else {
      graph.otherOutputs.push_back(output.name());
    }
  for (const onnx::NodeProto &node : proto.node())
    isMade |= std::count(node.output().begin(), node.output().end(), graph.output) > 0;
  if (isMade)
    return Success{};
  std::string outputs;
  for (const std::string &output : graph.otherOutputs)
    outputs += (outputs.empty() ? "'" : ", '") + output + "'";
  return Error{"--output=" + name + " names no value of the graph; the model's outputs are " + outputs};
}

} // namespace

bool isStandard(const onnx::NodeProto &node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

bool isView(const onnx::NodeProto &node) {
  static const std::set<std::string> views = {"Identity", "Transpose", "Reshape", "Unsqueeze",
                                              "Squeeze",  "Cast",      "Flatten"};
  return isStandard(node) && node.input_size() > 0 && node.output_size() > 0 && views.count(node.op_type());
}

std::pair<const onnx::NodeProto *, int> OnnxGraph::readerBehindViews(const std::string &name) const {
  auto reader = firstReader.find(name);
  for (int views = 0; reader != firstReader.end() && isView(*reader->second.first); ++views)
    reader = views < longestViews ? firstReader.find(reader->second.first->output(0)) : firstReader.end();
  return reader == firstReader.end() ? std::pair<const onnx::NodeProto *, int>() : reader->second;
}

Result<OnnxGraph> OnnxGraph::build(const OnnxFile &file, const TrainingSpec &spec) {
  const onnx::GraphProto &proto = file.model().graph();
  OnnxGraph graph;
  if (Status chosen = chooseOutput(proto, spec.output, graph); !chosen)
    return chosen.takeError();
  std::set<std::string> live = findLive(proto, graph);
  for (const onnx::NodeProto *node : graph.nodes)
    for (int i = 0; i < node->input_size(); ++i)
      if (!node->input(i).empty())
        if (!graph.firstReader.emplace(node->input(i), std::pair(node, i)).second)
          graph.readTwice.insert(node->input(i));
  std::set<std::string> initializers;
  for (const auto &initializer : proto.initializer())
    initializers.insert(initializer.name());

  InputShapes shapes(spec, graph);
  for (const auto &input : proto.input())
    if (live.count(input.name()) && !initializers.count(input.name()))
      if (Status added = shapes.add(input); !added)
        return added.takeError();
  if (graph.inputs.empty())
    return Error{"output '" + graph.output + "' depends on no input"};
  if (Status named = shapes.checkNames(); !named)
    return named.takeError();
  if (spec.batch && graph.batch != *spec.batch)
    return Error{"--batch=" + std::to_string(*spec.batch) + " conflicts with " + std::to_string(graph.batch) +
                 " from --dim"};
  if (Status batches = shapes.checkBatches(); !batches)
    return batches.takeError();
  Result<BatchNormForms> batchNorms = BatchNormForms::find(graph.nodes, file.opset(), spec);
  if (!batchNorms)
    return batchNorms.takeError();
  graph.batchNorms = std::move(*batchNorms);
  Result<HandRoles> hand = HandRoles::of(spec);
  if (!hand)
    return hand.takeError();
  graph.roles = findRoles(file, graph, spec.loss == AttachedLoss::None, *hand);
  graph.constantsAreWeights = !findWeights(proto, graph);
  if (spec.loss == AttachedLoss::None)
    findOthers(proto, live, graph);
  return graph;
}

} // namespace sluice
