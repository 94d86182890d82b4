// SPDX-License-Identifier: Apache-2.0
// The words of a model in a fixed order, and their FNV-1a hash. Not a defence against somebody who looks for two models
// of one hash.
#include "frontend/Identity.h"

#include "frontend/RandomDraws.h"

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace sluice {

namespace {

/// Strings one behind the other, each with its length, so that no two sequences are one.
class Words {
public:
  void add(const std::string &word) { text += std::to_string(word.size()) + ":" + word; }
  const std::string &all() const { return text; }

private:
  std::string text;
};

std::string hashOf(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001b3ull;
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

std::string tensorWords(const std::string &name, const onnx::TensorProto &tensor) {
  Words words;
  words.add(name);
  words.add(std::to_string(tensor.data_type()));
  for (int64_t extent : tensor.dims())
    words.add(std::to_string(extent));
  return words.all();
}

/// What the node reads in an export: where it drops at random the tensor that it was of, with the mean of the draws
/// where that is not 1, and no switch to training.
std::vector<std::string> operandsOf(const onnx::NodeProto &node, int dropped, const std::string &mean) {
  std::vector<std::string> operands(node.input().begin(), node.input().end());
  if (dropped >= 0 && !mean.empty())
    operands[static_cast<size_t>(1 - dropped)] = mean;
  else if (dropped >= 0)
    operands = {operands[static_cast<size_t>(dropped)]};
  else if (node.op_type() == "Dropout" && operands.size() > 2)
    operands.resize(2);
  return operands;
}

/// Without what the export of a trained model changes: training forms of Dropout and BatchNormalization, and random
/// drops, which become the tensor that they were of.
std::string nodeWords(const onnx::NodeProto &node, const RandomDraws &draws) {
  const int dropped = draws.droppedInput(node);
  const std::string mean = dropped >= 0 ? draws.mean(node) : "";
  const std::vector<std::string> operands = operandsOf(node, dropped, mean);
  Words words;
  words.add(node.domain());
  words.add(dropped >= 0 && mean.empty() ? "Identity" : node.op_type());
  words.add(std::to_string(operands.size()));
  for (const std::string &operand : operands)
    words.add(operand);
  words.add(node.output_size() ? node.output(0) : "");
  std::set<std::string> attributes;
  for (onnx::AttributeProto attribute : node.attribute()) {
    attribute.clear_doc_string();
    if (attribute.name() != "training_mode")
      attributes.insert(attribute.SerializeAsString());
  }
  for (const std::string &attribute : attributes)
    words.add(attribute);
  return words.all();
}

} // namespace

std::string modelIdentity(const onnx::ModelProto &model) {
  const onnx::GraphProto &graph = model.graph();
  std::set<std::string> tensors; // Constant nodes that are trained become initializers in an export
  const RandomDraws draws(graph);
  Words words;
  for (const onnx::TensorProto &tensor : graph.initializer())
    tensors.insert(tensorWords(tensor.name(), tensor));
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t())
      tensors.insert(tensorWords(node.output(0), node.attribute(0).t()));
    else
      words.add(nodeWords(node, draws));
  }
  for (const std::string &tensor : tensors)
    words.add(tensor);
  for (const onnx::ValueInfoProto &output : graph.output())
    words.add(output.name());
  return hashOf(words.all());
}

std::vector<std::string> modelFiles(const std::string &path, const onnx::ModelProto &model) {
  std::set<std::string> files = {path};
  auto add = [&](const onnx::TensorProto &tensor) {
    for (const auto &entry : tensor.external_data())
      if (entry.key() == "location")
        files.insert((std::filesystem::path(path).parent_path() / entry.value()).string());
  };
  for (const onnx::TensorProto &tensor : model.graph().initializer())
    add(tensor);
  for (const onnx::NodeProto &node : model.graph().node())
    for (const onnx::AttributeProto &attribute : node.attribute())
      add(attribute.t());
  return {files.begin(), files.end()};
}

} // namespace sluice
