// SPDX-License-Identifier: Apache-2.0
// Counts over the tensors of the file that live nodes read and over the variables that came of them.
#include "frontend/RoleReport.h"

#include "frontend/Refusals.h"
#include "ir/Train.h"
#include "onnx/onnx_pb.h"
#include "runtime/Printable.h"

#include <algorithm>

using namespace mlir;

namespace sluice {
namespace {

using Names = std::vector<std::string>;

/// The model's float tensors by what becomes of them.
struct Roles {
  Names trained, frozen, byRule, chosen, states, inNoTurn;
  Names halfBiases; ///< of the trained ones
  size_t constants = 0;
};

/// Counts each tensor once, by its variables where it has some: a tensor that one node trains and another reads as a
/// constant is trained. Tensors that folding used up have no variable and count by their rule.
Roles rolesOf(const OnnxGraph &graph, const Variables &variables, const HandRoles &hand) {
  Roles roles;
  std::set<std::string> constant, others;
  for (const auto &[name, role] : variables.roles()) {
    (role == train::Role::Constant ? constant : others).insert(name);
    if (role == train::Role::Parameter)
      roles.trained.push_back(name);
    if (role == train::Role::Parameter && graph.roles.halfBiases.count(name))
      roles.halfBiases.push_back(name);
    if (role == train::Role::State)
      roles.states.push_back(name);
    if (role == train::Role::Parameter && graph.roles.chosen.count(name) && !hand.trains(name))
      roles.chosen.push_back(name);
  }
  std::set<std::string> known(graph.roles.floats.begin(), graph.roles.floats.end());
  for (const std::string &name : constant)
    if (hand.freezes(name) && !known.count(name)) // made by ConstantOfShape
      roles.frozen.push_back(name);
  for (const std::string &name : graph.roles.floats) {
    auto held = graph.roles.held.find(name);
    if (others.count(name))
      continue;
    if (hand.freezes(name))
      roles.frozen.push_back(name);
    else if (held == graph.roles.held.end() && constant.count(name) && hand.isInNoTurn(name))
      roles.inNoTurn.push_back(name);
    else if (held == graph.roles.held.end() ? constant.count(name) > 0 : isByRule(held->second))
      roles.byRule.push_back(name);
    else
      ++roles.constants;
  }
  return roles;
}

/// Says which patterns match none of the names: lines of a list in a note where others do, else as an error.
Status checkPatterns(const std::string &flag, const NamePatterns &patterns, const Names &names, const Names &states,
                     Names &remarks) {
  const auto [words, lines] = patterns.unmatched(names);
  if (words.empty() && lines.empty())
    return Success{};
  if (words.empty() && lines.size() < patterns.size()) {
    remarks.push_back(std::to_string(lines.size()) + " of the " + std::to_string(patterns.size()) +
                      " regular expressions of " + flag + " match nothing: " + someOf(lines));
    return Success{};
  }
  const bool isOne = !words.empty() || lines.size() == 1;
  const auto ofNoState = patterns.unmatched(states);
  const bool ofStates = ofNoState.words.size() + ofNoState.lines.size() < patterns.size();
  return Error{(isOne ? flag + "=" + (words.empty() ? lines : words)[0] + " matches no whole name of a tensor"
                      : "none of the " + std::to_string(patterns.size()) + " regular expressions of " + flag +
                            " matches the whole name of a tensor") +
               (flag == "--train" ? " that can be trained" : " that could be trained") +
               (ofStates ? "; running statistics are held by --batch-norm=frozen" : "; --list-parameters names them")};
}

/// What the names of trained tensors and the patterns give reason to doubt.
void warn(const Names &trained, const OnnxGraph &graph, const HandRoles &hand, Names &remarks) {
  Names folded;
  std::set<std::string> made; // by nodes, from constants
  for (const auto *nodes : {&graph.nodes, &graph.otherNodes})
    for (const onnx::NodeProto *node : *nodes)
      made.insert(node->output().begin(), node->output().end());
  bool changed = false;
  for (const std::string &name : trained) {
    if (name.compare(0, 6, "onnx::") == 0)
      folded.push_back(name);
    changed |= hand.trains(name) && (graph.roles.held.count(name) || made.count(name));
  }
  if (!folded.empty())
    remarks.push_back(
        counted(folded.size(), "tensor") + " of " + std::to_string(trained.size()) +
        " that are trained are what PyTorch's exporter folded, and no parameter of a module: " + someOf(folded) +
        "; merged BatchNormalization is not trained as such, and state_dicts lack these "
        "names: export with training=TrainingMode.TRAINING, do_constant_folding=False");
  const bool holdsTheRest = hand.freeze.size() || !hand.adapters.empty();
  if (hand.train.size() && !holdsTheRest && !changed)
    remarks.push_back("--train changes nothing: what it names is trained anyway, and so is all else; --freeze='.*' "
                      "beside it holds all else");
}

/// Float tensors of the file that only nodes read which are not imported.
Names readByOthers(const onnx::GraphProto &file, const OnnxGraph &graph) {
  std::set<std::string> read, tensors, names;
  for (const auto *nodes : {&graph.nodes, &graph.otherNodes})
    for (const onnx::NodeProto *node : *nodes)
      read.insert(node->input().begin(), node->input().end());
  for (const onnx::TensorProto &tensor : file.initializer())
    if (tensor.data_type() == onnx::TensorProto::FLOAT && nameScheme(tensor.name()) == NameScheme::Module)
      tensors.insert(tensor.name());
  for (const onnx::NodeProto &node : file.node())
    for (const std::string &input : node.input())
      if (tensors.count(input) && !read.count(input))
        names.insert(input);
  return {names.begin(), names.end()};
}

/// Says which layers and parameters an exporter's folding has changed, so that training differs from the framework's.
void remarkOnFolded(const TensorRoles &roles, std::vector<std::string> &remarks) {
  std::set<std::string> layers;
  for (const std::string &name : roles.floats)
    if (std::string layer = mergedLayer(name); !layer.empty())
      layers.insert(std::move(layer));
  if (!layers.empty())
    remarks.push_back("the exporter merged " + counted(layers.size(), "BatchNormalization layer") +
                      " into other tensors, so that what is trained of them differs from the framework: " +
                      someOf(Names(layers.begin(), layers.end())) + "; docs/exporting.md says how to keep them");
  const Names repeated(roles.repeated.begin(), roles.repeated.end());
  if (!repeated.empty())
    remarks.push_back(someOf(repeated) + (repeated.size() == 1 ? " repeats" : " repeat") +
                      " a row for each sample of the batch, as folding leaves a parameter that was expanded, and " +
                      (repeated.size() == 1 ? "is" : "are") +
                      " not trained as one row; an open batch, or no folding, when exporting keeps it");
}

} // namespace

void reportLeftOut(const onnx::GraphProto &file, const OnnxGraph &graph, const std::vector<std::string> &predicted,
                   const TrainingSpec &spec, std::vector<std::string> &remarks) {
  Names outputs;
  for (const onnx::ValueInfoProto &output : file.output())
    if (!graph.output(output.name()) && std::find(predicted.begin(), predicted.end(), output.name()) == predicted.end())
      outputs.push_back(output.name());
  const Names tensors = outputs.empty() ? Names() : readByOthers(file, graph);
  if (outputs.empty() || (tensors.empty() && !spec.output.empty()))
    return;
  const bool one = outputs.size() == 1;
  std::string line = (one ? "output " : "outputs ") + someOf(outputs) +
                     (one ? " has no loss and is" : " have no loss and are") + " not predicted";
  if (!tensors.empty())
    line += "; " + counted(tensors.size(), "tensor") + " that only " + (one ? "it needs" : "they need") + " stay" +
            (tensors.size() == 1 ? "s" : "") + " as in the file: " + someOf(tensors);
  remarks.push_back(line + (spec.turns.empty() ? "; --loss OUTPUT=NAME, once for each, trains several"
                                               : "; loss=OUTPUT=NAME in a --turn trains another"));
}

/// What a step lacks for tensors that are held by hand; empty where none is. Activations are the plan's to tell.
static std::string savedByHand(ModuleOp module, const Variables &variables) {
  int64_t bytes = 0;
  for (train::VariableOp variable : variables.frozen())
    bytes += train::bytes(variable.getType());
  const auto optimizer = module->getAttrOfType<StringAttr>("train.optimizer");
  const auto rule = train::symbolizeUpdateRule(optimizer ? optimizer.getValue() : "sgd");
  if (bytes == 0 || !rule)
    return "";
  const auto states = static_cast<int64_t>(train::stateSuffixes(*rule).size());
  return "; what is held by hand has no gradients, " + std::to_string(bytes) + " bytes, and no states of " +
         train::stringifyUpdateRule(*rule).str() + ", " + std::to_string(states * bytes) + " bytes";
}

Status reportRoles(ModuleOp module, const OnnxGraph &graph, const Variables &variables, const HandRoles &hand,
                   std::vector<std::string> &remarks) {
  const Roles roles = rolesOf(graph, variables, hand);
  Names freezable = roles.trained;
  for (const Names *names : {&roles.frozen, &roles.byRule})
    freezable.insert(freezable.end(), names->begin(), names->end());
  if (Status freeze = checkPatterns("--freeze", hand.freeze, hand.withTied(freezable), roles.states, remarks); !freeze)
    return freeze;
  if (Status train = checkPatterns("--train", hand.train, hand.withTied(roles.trained), roles.states, remarks); !train)
    return train;
  std::string held;
  auto add = [&](size_t count, const std::string &why) {
    if (count)
      held += (held.empty() ? " (" : ", ") + std::to_string(count) + why;
  };
  add(roles.frozen.size(), hand.adapters.empty() ? " by --freeze" : " beside adapters");
  add(roles.inNoTurn.size(), " in no turn");
  add(roles.constants, roles.constants == 1 ? " constant of the graph" : " constants of the graph");
  add(roles.byRule.size(), " by rule: " + someOf(roles.byRule));
  const size_t count = roles.frozen.size() + roles.inNoTurn.size() + roles.constants + roles.byRule.size();
  std::string line = counted(roles.trained.size(), "tensor") + (roles.trained.size() == 1 ? " is" : " are") +
                     " trained, " + std::to_string(count) + (count == 1 ? " is" : " are") + " held fixed" +
                     (held.empty() ? "" : held + ")") + savedByHand(module, variables);
  if (!roles.chosen.empty())
    line += "; trained by rule: " + someOf(roles.chosen);
  if (!roles.halfBiases.empty())
    line += "; of biases that the exporter doubled the zeros are held: " + someOf(roles.halfBiases);
  if (!roles.byRule.empty() || !roles.chosen.empty() || !roles.halfBiases.empty())
    line += "; --train and --freeze decide otherwise";
  remarks.push_back(std::move(line));
  if (!roles.inNoTurn.empty())
    remarks.push_back("no turn trains " + counted(roles.inNoTurn.size(), "parameter") + ", which " +
                      (roles.inNoTurn.size() == 1 ? "is" : "are") + " held fixed: " + someOf(roles.inNoTurn));
  warn(roles.trained, graph, hand, remarks);
  remarkOnFolded(graph.roles, remarks);
  return Success{};
}

} // namespace sluice
