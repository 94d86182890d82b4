// SPDX-License-Identifier: Apache-2.0
// The words of a model in a fixed order, and their FNV-1a hash. Not a defence against somebody who looks for two models
// of one hash.
#include "frontend/Identity.h"

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace sluice {

namespace {

/// Strings one after the other, each with its length, so that no two sequences are one.
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

/// What a node computes, as one text, in which neither the order nor the descriptions of its attributes count, nor its
/// name, nor outputs beyond the first.
std::string nodeWords(const onnx::NodeProto &node) {
  Words words;
  words.add(node.domain());
  words.add(node.op_type());
  words.add(std::to_string(node.input_size()));
  for (const std::string &operand : node.input())
    words.add(operand);
  words.add(node.output_size() ? node.output(0) : "");
  std::set<std::string> attributes;
  for (onnx::AttributeProto attribute : node.attribute()) {
    attribute.clear_doc_string();
    attributes.insert(attribute.SerializeAsString());
  }
  for (const std::string &attribute : attributes)
    words.add(attribute);
  return words.all();
}

/// Of what the model is, whatever its metadata say.
std::string hashOfModel(const onnx::ModelProto &model) {
  const onnx::GraphProto &graph = model.graph();
  std::set<std::string> tensors; // in whatever order, as initializers or as Constant nodes
  Words words;
  for (const onnx::TensorProto &tensor : graph.initializer())
    tensors.insert(tensorWords(tensor.name(), tensor));
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t())
      tensors.insert(tensorWords(node.output(0), node.attribute(0).t()));
    else
      words.add(nodeWords(node));
  }
  for (const std::string &tensor : tensors)
    words.add(tensor);
  for (const onnx::ValueInfoProto &output : graph.output())
    words.add(output.name());
  return hashOf(words.all());
}

/// In metadata: the identity of the model that was trained, a space, and the hash of the export that says so.
constexpr char identityKey[] = "sluice.identity";

} // namespace

/// The metadata count only while the hash beside them is that of this model: what was changed after the export is
/// another model.
std::string modelIdentity(const onnx::ModelProto &model) {
  const std::string hash = hashOfModel(model);
  const size_t digits = hash.size();
  for (const auto &entry : model.metadata_props())
    if (entry.key() == identityKey && entry.value().size() == 2 * digits + 1 && entry.value()[digits] == ' ' &&
        entry.value().find_first_not_of("0123456789abcdef ") == std::string::npos &&
        entry.value().compare(digits + 1, digits, hash) == 0)
      return entry.value().substr(0, digits);
  return hash;
}

void setIdentity(onnx::ModelProto &exported, const std::string &identity) {
  onnx::StringStringEntryProto &entry = *exported.add_metadata_props();
  entry.set_key(identityKey);
  entry.set_value(identity + " " + hashOfModel(exported));
}

/// All files that the model is read from: external data lie beside it, as `location` says. Constant nodes may hold
/// some, too. Sorted, each once.
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
