// SPDX-License-Identifier: Apache-2.0
// Liveness from the trained output backwards, and the search for weights.
#include "frontend/OnnxGraph.h"
#include "frontend/HostTensor.h"
#include "frontend/NodeWalk.h"
#include "frontend/TiedNames.h"
#include "onnx/onnx_pb.h"
#include <algorithm>

namespace sluice {
namespace {

/// Views in a row that are looked through, for each of them.
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

/// Names that live nodes read; the trained outputs among them.
std::set<std::string> findLive(const onnx::GraphProto &graph, OnnxGraph &result) {
  std::set<std::string> live;
  for (const GraphOutput &output : result.outputs)
    live.insert(output.name);
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
    const auto isKnown = [&known](const std::string &name) { return known.count(name) != 0; };
    if (taken.count(&node) || !std::all_of(reads.begin(), reads.end(), isKnown))
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

/// Whether a matrix or filter of the file stands where ops have their weight, as it is or as what nodes make of the
/// file's tensors alone, as weight normalization does. Where none does, the exporter wrote weights as Constant nodes,
/// and those are trained instead.
bool findWeights(const onnx::GraphProto &proto, const OnnxGraph &graph) {
  std::set<std::string> weights = graph.roles.weights; // trained float tensors and what is made of them
  std::set<std::string> known;                         // what no input of the model takes part in
  for (const auto &initializer : proto.initializer()) {
    known.insert(initializer.name());
    if (initializer.data_type() == onnx::TensorProto::FLOAT && initializer.dims_size() >= 2 &&
        !graph.roles.held.count(initializer.name()))
      weights.insert(initializer.name());
  }
  for (const onnx::NodeProto *node : graph.nodes) {
    const auto &reads = node->input();
    if (std::all_of(reads.begin(), reads.end(), [&](const auto &name) { return name.empty() || known.count(name); })) {
      known.insert(node->output().begin(), node->output().end());
      if (std::any_of(reads.begin(), reads.end(), [&](const auto &name) { return weights.count(name); }))
        weights.insert(node->output().begin(), node->output().end());
    }
    for (int i : weightPositions(node->op_type()))
      if (i < node->input_size() && weights.count(node->input(i)))
        return true;
  }
  return false;
}

void readOutput(const onnx::ValueInfoProto &declared, GraphOutput &output) {
  if (!declared.type().has_tensor_type() || !declared.type().tensor_type().has_shape())
    return;
  output.isDeclared = true;
  for (const auto &dim : declared.type().tensor_type().shape().dim())
    output.shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
}

/// The first output, or those that --output and --loss name; any values of the graph will do.
Status chooseOutputs(const onnx::GraphProto &proto, const TrainingSpec &spec, OnnxGraph &graph) {
  std::set<std::string> made;
  for (const onnx::NodeProto &node : proto.node())
    made.insert(node.output().begin(), node.output().end());
  std::string outputs;
  for (const auto &output : proto.output()) {
    made.insert(output.name());
    outputs += (outputs.empty() ? "'" : ", '") + output.name() + "'";
  }
  for (const OutputLoss &loss : lossesOf(spec)) {
    const std::string name = loss.output.empty() ? proto.output(0).name() : loss.output;
    if (!made.count(name) && !spec.turns.empty())
      return Error{"--turn: loss=" + name + " names no value of the graph; the model's outputs are " + outputs};
    if (!made.count(name))
      return Error{(spec.output.empty() ? "--loss=" + name + "=" + toString(loss.kind) : "--output=" + name) +
                   " names no value of the graph; the model's outputs are " + outputs};
    if (!graph.output(name))
      graph.outputs.push_back({name, {}});
  }
  for (const auto &output : proto.output()) {
    const auto trained = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                      [&](const GraphOutput &one) { return one.name == output.name(); });
    if (trained == graph.outputs.end())
      graph.otherOutputs.push_back(output.name());
    else
      readOutput(output, *trained);
  }
  return Success{};
}

} // namespace

bool isStandard(const onnx::NodeProto &node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

bool isView(const onnx::NodeProto &node) {
  static const std::set<std::string> views = {"Identity", "Transpose", "Reshape", "Unsqueeze",
                                              "Squeeze",  "Cast",      "Flatten"};
  return isStandard(node) && node.input_size() > 0 && node.output_size() > 0 && views.count(node.op_type());
}

const GraphOutput *OnnxGraph::output(const std::string &name) const {
  const auto found =
      std::find_if(outputs.begin(), outputs.end(), [&](const GraphOutput &one) { return one.name == name; });
  return found == outputs.end() ? nullptr : &*found;
}

std::string OnnxGraph::outputNames() const {
  std::string names;
  for (const GraphOutput &output : outputs)
    names += (names.empty() ? "'" : ", '") + output.name + "'";
  return (outputs.size() == 1 ? "output " : "outputs ") + names;
}

std::pair<const onnx::NodeProto *, int> OnnxGraph::readerBehindViews(const std::string &name) const {
  auto reader = firstReader.find(name);
  for (int views = 0; reader != firstReader.end() && isView(*reader->second.first); ++views)
    reader = views < longestViews ? firstReader.find(reader->second.first->output(0)) : firstReader.end();
  return reader == firstReader.end() ? std::pair<const onnx::NodeProto *, int>() : reader->second;
}

/// What nodes read first, and more than once.
static void noteReaders(OnnxGraph &graph) {
  graph.firstReader.clear();
  graph.readTwice.clear();
  for (const onnx::NodeProto *node : graph.nodes)
    for (int i = 0; i < node->input_size(); ++i)
      if (!node->input(i).empty())
        if (!graph.firstReader.emplace(node->input(i), std::pair(node, i)).second)
          graph.readTwice.insert(node->input(i));
}

OnnxGraph OnnxGraph::ofTurn(const OnnxFile &file, const TrainingSpec &turn) const {
  const onnx::GraphProto &proto = file.model().graph();
  OnnxGraph own = *this;
  own.outputs.clear();
  own.otherOutputs.clear();
  own.nodes.clear();
  own.otherNodes.clear();
  for (const OutputLoss &loss : lossesOf(turn))
    if (!own.output(loss.output))
      own.outputs.push_back(*output(loss.output));
  for (const auto &named : proto.output())
    if (!own.output(named.name()))
      own.otherOutputs.push_back(named.name());
  const std::set<std::string> live = findLive(proto, own);
  noteReaders(own);
  findOthers(proto, live, own);
  return own;
}

/// Each part needs those before it: outputs decide which nodes are live, these which inputs are asked for shapes, and
/// roles look at all readers of a tensor. Shapes of values between are not known yet.
Result<OnnxGraph> OnnxGraph::build(const OnnxFile &file, const TrainingSpec &spec) {
  const onnx::GraphProto &proto = file.model().graph();
  OnnxGraph graph;
  if (Status chosen = chooseOutputs(proto, spec, graph); !chosen)
    return chosen.takeError();
  std::set<std::string> live = findLive(proto, graph);
  noteReaders(graph);
  std::set<std::string> initializers;
  for (const auto &initializer : proto.initializer())
    initializers.insert(initializer.name());

  std::vector<const onnx::ValueInfoProto *> inputs;
  for (const auto &input : proto.input())
    if (live.count(input.name()) && !initializers.count(input.name()))
      inputs.push_back(&input);
  if (inputs.empty())
    return Error{graph.outputNames() + (graph.outputs.size() == 1 ? " depends" : " depend") + " on no input"};
  if (Status shapes = findInputShapes(inputs, proto, spec, graph); !shapes)
    return shapes.takeError();
  Result<BatchNormForms> batchNorms = BatchNormForms::find(graph.nodes, file.opset(), spec);
  if (!batchNorms)
    return batchNorms.takeError();
  graph.batchNorms = std::move(*batchNorms);
  Result<HandRoles> hand = HandRoles::of(spec);
  if (!hand)
    return hand.takeError();
  for (auto &[name, others] : tiedNames(proto, graph))
    graph.tied.emplace(name, std::move(others));
  hand->tied = graph.tied;
  graph.roles = findRoles(file, graph, endsInOwnLoss(spec), *hand);
  // PyTorch's exporter writes parameters as initializers, whatever reads them.
  graph.constantsAreWeights = file.exporter() != Exporter::PyTorch && !findWeights(proto, graph);
  if (spec.output.empty() || endsInOwnLoss(spec)) // who names an output predicts that one
    findOthers(proto, live, graph);
  return graph;
}

} // namespace sluice
