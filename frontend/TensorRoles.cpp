// SPDX-License-Identifier: Apache-2.0
// Rules in the order in which they decide: what the file says, what structure says, what the name says. A rule that
// asks for structure asks it of all that read the tensor, after views.
#include "frontend/TensorRoles.h"

#include "frontend/HostTensor.h"
#include "frontend/NamePatterns.h"
#include "frontend/ReadTensor.h"
#include "onnx/onnx_pb.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace sluice {

const char *describe(Hold hold) {
  switch (hold) {
  case Hold::Condition:
    return "reaches comparisons alone";
  case Hold::Buffer:
    return "a buffer of the exported program";
  case Hold::ConstantNode:
    return "output of a constant node";
  case Hold::Setting:
    return "needed when compiling";
  case Hold::Number:
    return "a single number that no module names";
  case Hold::Uniform:
    return "equal everywhere, and no module names it";
  case Hold::Named:
    return "has the name of an exporter's constant";
  case Hold::Mask:
    return "zeros and ones, or zeros and a large negative number, as masks have";
  case Hold::Preparation:
    return "no coefficient or intercept of scikit-learn's estimator";
  case Hold::Epsilon:
    return "a small number added to what is divided by";
  case Hold::Root:
    return "a whole number whose root is taken";
  case Hold::LossFactor:
    return "weighs a term of the loss";
  }
  return "";
}

bool isByRule(Hold hold) { return hold > Hold::Setting; }

namespace {

/// Decides by rules which tensors of the file are held fixed although an optimizer could move them. Rules look at
/// values, names and readers; what none of them holds is trained.
class RoleFinder {
public:
  RoleFinder(const OnnxFile &file, const OnnxGraph &graph, bool modelHasLoss) : file(file), graph(graph), reads(graph) {
    if (modelHasLoss)
      lossFactors.emplace(graph, reads);
    findCarriers();
    findKinds();
    fromPyTorch = file.exporter() == Exporter::PyTorch;
    fromTensorFlow = file.exporter() == Exporter::TensorFlow;
  }

  TensorRoles find(const HandRoles &hand) {
    TensorRoles roles;
    std::vector<ReadTensor> tensors = collect();
    modulesAreNamed = std::any_of(tensors.begin(), tensors.end(), [](const ReadTensor &tensor) {
      return tensor.size > 1 && tensor.scheme == NameScheme::Module;
    });
    hasEstimator =
        file.model().producer_name() == "skl2onnx" && std::any_of(tensors.begin(), tensors.end(), isOfEstimator);
    for (const ReadTensor &tensor : tensors) {
      roles.floats.push_back(tensor.name);
      byRule = false;
      const bool byHand = hand.trains(tensor.name);
      const std::optional<Hold> hold = byHand ? std::nullopt : holdOf(tensor);
      if (hold)
        roles.held[tensor.name] = *hold;
      else if (tensor.isConstantNode)
        roles.weights.insert(tensor.name);
      if (!hold && byRule)
        roles.chosen.insert(tensor.name);
      if (!hold && !byHand && fromTensorFlow && isHalfBias(tensor))
        roles.halfBiases.insert(tensor.name);
      if (isRepeated(tensor, graph.batch))
        roles.repeated.insert(tensor.name);
    }
    return roles;
  }

private:
  /// In file order, initializers first; without what no node reads, for its role does not matter.
  std::vector<ReadTensor> collect() const {
    std::vector<ReadTensor> tensors;
    auto add = [&](const std::string &name, bool isConstantNode) {
      const FileTensor *tensor = file.tensor(name);
      const int64_t size = tensor ? elementCount(tensor->shape).value_or(0) : 0;
      if (size < 1 || tensor->elementType != onnx::TensorProto::FLOAT || tensor->stored ||
          reads.directReadsOf(name).empty())
        return; // or it has a form that nothing trains
      float first;
      std::memcpy(&first, tensor->bytes.data(), sizeof first);
      tensors.push_back({name, *tensor, isConstantNode, size, first, size > 1 && isUniform(*tensor), nameScheme(name),
                         reads.readsOf(name)});
    };
    for (const auto &initializer : file.model().graph().initializer())
      add(initializer.name(), false);
    for (const onnx::NodeProto *node : graph.nodes)
      if (isOp(*node, {"Constant"}) && node->output_size() == 1)
        add(node->output(0), true);
    return tensors;
  }

  /// Whether no gradient passes from the node's results to input `i`: what it says of it is true or false, or a shape.
  static bool stopsGradient(const onnx::NodeProto &node, int i) {
    return isOp(node, {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or", "Xor", "IsNaN",
                       "IsInf", "Shape", "Size"}) ||
           (isOp(node, {"Where"}) && i == 0);
  }

  /// Values from which a gradient may be asked: all but those that reach comparisons and conditions alone, as they are
  /// or moved.
  void findCarriers() {
    for (const GraphOutput &output : graph.outputs)
      carriers.insert(output.name);
    for (auto entry = graph.nodes.rbegin(); entry != graph.nodes.rend(); ++entry) {
      const onnx::NodeProto &node = **entry;
      const bool moved = isView(node) || isOp(node, {"Slice", "Gather", "Expand", "Concat", "Split"});
      const bool carries = !moved || std::any_of(node.output().begin(), node.output().end(),
                                                 [&](const auto &name) { return carriers.count(name); });
      for (int i = 0; carries && i < node.input_size(); ++i)
        if (!stopsGradient(node, i))
          carriers.insert(node.input(i));
    }
  }

  /// What torch.export says of the tensors of a file, by name: PARAMETER, BUFFER; nothing in files of other exporters.
  void findKinds() {
    const onnx::GraphProto &proto = file.model().graph();
    for (const auto *list : {&proto.value_info(), &proto.input()})
      for (const onnx::ValueInfoProto &value : *list)
        for (const auto &entry : value.metadata_props())
          if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind")
            kinds[value.name()] = entry.value().substr(entry.value().rfind('.') + 1);
    areMarked = std::any_of(kinds.begin(), kinds.end(), [](const auto &kind) { return kind.second == "PARAMETER"; });
  }

  /// Why the tensor is held; nothing where it is trained.
  std::optional<Hold> holdOf(const ReadTensor &tensor) {
    const bool isPath = tensor.scheme == NameScheme::Module && tensor.name.find('.') != std::string::npos;
    if (tensor.isConstantNode && !isPath)
      return holdOfConstant(tensor);
    if (!carriers.count(tensor.name))
      return Hold::Condition;
    if (areMarked)
      if (auto kind = kinds.find(tensor.name); kind != kinds.end())
        return kind->second == "PARAMETER" ? std::nullopt : std::optional(Hold::Buffer);
    if (areAll(tensor, isSetting))
      return Hold::Setting;
    if (hasEstimator && !isOfEstimator(tensor))
      return Hold::Preparation;
    // Rules on how a tensor is read and on its values come before those on its name, which say less.
    const bool oneNumber = tensor.size == 1 || tensor.uniform;
    if (oneNumber && areAll(tensor, [&](const Read &read) { return isEpsilon(tensor, read, reads, file); }))
      return Hold::Epsilon;
    if (tensor.size == 1 && isWhole(tensor.first) &&
        areAll(tensor, [](const Read &read) { return isOp(*read.first, {"Sqrt"}); }))
      return Hold::Root;
    if (lossFactors && lossFactors->areRead(tensor.reads))
      return Hold::LossFactor;
    if (isMask(tensor))
      return Hold::Mask;
    if (tensor.size == 1)
      return holdOfNumber(tensor);
    if (tensor.uniform)
      return holdOfUniform(tensor);
    const bool isBuffer = tensor.name.front() == '/' || isPaddleBuffer(tensor.name);
    if (tensor.scheme == NameScheme::Constant && (isBuffer || !isWeight(tensor)))
      return Hold::Named;
    return std::nullopt;
  }

  /// What ops do not read as a tensor of the step.
  static bool isSetting(const Read &read) {
    return read.second > 0 && isOp(*read.first, {"Clip", "Dropout", "Resize", "Upsample", "Pad", "Range", "OneHot"});
  }

  /// A Constant node is a weight where it stands as one. PyTorch's exporter writes what is no parameter so.
  std::optional<Hold> holdOfConstant(const ReadTensor &tensor) {
    if (fromPyTorch || areMarked || tensor.size == 1 || tensor.uniform || !isWeight(tensor))
      return Hold::ConstantNode;
    byRule = true;
    return std::nullopt;
  }

  std::optional<Hold> holdOfNumber(const ReadTensor &tensor) {
    // A number that is expanded to an initial state stands before a product, too.
    const bool isWeightHere = std::any_of(tensor.reads.begin(), tensor.reads.end(), [](const Read &read) {
      return isWeightRead(read) && !(isOp(*read.first, {"MatMul", "Gemm"}) && read.second == 0);
    });
    if (isWeightHere || isBiasOfOneColumn(tensor, reads, file))
      return std::nullopt;
    if (areMarked || tensor.scheme != NameScheme::Module || isFactorOfSilu(tensor))
      return Hold::Number;
    byRule = true;
    return std::nullopt;
  }

  /// Fresh scales are 1 and fresh biases 0, which would be pointless constants, unless they are as long as the batch.
  std::optional<Hold> holdOfUniform(const ReadTensor &tensor) {
    if (tensor.scheme == NameScheme::Module)
      return std::nullopt;
    // Without a bias of its own, TensorFlow's cell is given one of zeros.
    if (fromTensorFlow && isHalfBias(tensor))
      return Hold::Uniform;
    const bool hasBatch = tensor.file.shape.size() > 1 && graph.batch > 1 && tensor.file.shape[0] == graph.batch;
    const bool isWeightHere = std::any_of(tensor.reads.begin(), tensor.reads.end(), [&](const Read &read) {
      return isWeightRead(read) && !(isNorm(*read.first) && modulesAreNamed) &&
             !(isOp(*read.first, {"MatMul", "Gemm"}) && read.second == 0);
    });
    if (tensor.scheme != NameScheme::Constant && isWeightHere)
      return std::nullopt;
    if (tensor.scheme != NameScheme::Constant && !hasBatch &&
        areAll(tensor, [&](const Read &read) { return isNeutral(tensor.first, read) || isSlope(read, reads); })) {
      byRule = true;
      return std::nullopt;
    }
    return Hold::Uniform;
  }

  static bool isWhole(double number) { return number >= 2 && number == std::floor(number); }

  static bool isNeutral(double value, const Read &read) {
    const auto &[node, input] = read;
    return (isOp(*node, {"Mul"}) && (value == 0 || value == 1)) || (isOp(*node, {"Div"}) && input == 1 && value == 1) ||
           (isOp(*node, {"Add", "Sub"}) && value == 0);
  }

  const OnnxFile &file;
  const OnnxGraph &graph;
  const GraphReads reads;
  std::optional<LossFactors> lossFactors;
  std::set<std::string> carriers;
  std::map<std::string, std::string> kinds;
  bool areMarked = false, fromPyTorch = false, fromTensorFlow = false, hasEstimator = false, modulesAreNamed = false;
  bool byRule = false; ///< of the tensor at hand, when it is trained
};

} // namespace

Result<HandRoles> HandRoles::of(const TrainingSpec &spec) {
  auto freeze = NamePatterns::compile("--freeze", spec.freeze);
  auto train = NamePatterns::compile("--train", spec.train);
  if (!freeze || !train)
    return !freeze ? freeze.takeError() : train.takeError();
  std::vector<NamePatterns> turns;
  for (const TurnRequest &turn : spec.turns) {
    auto own = NamePatterns::compile("--turn " + turn.name + ",...,train", {NamePattern(turn.train)});
    if (!own)
      return own.takeError();
    turns.push_back(std::move(*own));
  }
  return HandRoles{
      std::move(*freeze), std::move(*train), std::move(turns), {spec.adapterParts.begin(), spec.adapterParts.end()}};
}

std::vector<size_t> HandRoles::turnsOf(std::string_view name) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < turns.size(); ++i)
    if (matches(turns[i], name))
      found.push_back(i);
  return found;
}

bool HandRoles::matches(const NamePatterns &patterns, std::string_view name) const {
  const auto others = tied.find(name);
  return patterns.matches(name) ||
         (others != tied.end() && std::any_of(others->second.begin(), others->second.end(),
                                              [&](const std::string &other) { return patterns.matches(other); }));
}

std::vector<std::string> HandRoles::withTied(std::vector<std::string> names) const {
  for (size_t i = 0, own = names.size(); i < own; ++i)
    if (const auto others = tied.find(names[i]); others != tied.end())
      names.insert(names.end(), others->second.begin(), others->second.end());
  return names;
}

TensorRoles findRoles(const OnnxFile &file, const OnnxGraph &graph, bool modelHasLoss, const HandRoles &hand) {
  return RoleFinder(file, graph, modelHasLoss).find(hand);
}

} // namespace sluice
