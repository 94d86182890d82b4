// SPDX-License-Identifier: Apache-2.0
// Builds the template and finds its raw data by walking the serialized bytes: ModelProto.graph (7),
// GraphProto.initializer (5), TensorProto.name (8) and raw_data (9).
#include "frontend/ExportTemplate.h"

#include "frontend/Identity.h"
#include "frontend/RandomDraws.h"
#include "runtime/program/Export.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

namespace sluice {

namespace {

size_t bytesOf(const FileTensor &tensor) {
  int64_t bytes = 0;
  return !tensor.stored                                               ? tensor.bytes.size()
         : tensorBytes(onnx::TensorProto::FLOAT, tensor.shape, bytes) ? static_cast<size_t>(bytes)
                                                                      : SIZE_MAX;
}

/// Puts the file's bytes of a tensor into its proto as raw data, room for the
/// floats that a program writes over what the file holds in fewer bits.
void fill(onnx::TensorProto &proto, const FileTensor &tensor) {
  std::string name = proto.name();
  proto.Clear();
  proto.set_name(name);
  proto.set_data_type(tensor.elementType);
  for (int64_t extent : tensor.shape)
    proto.add_dims(extent);
  if (tensor.stored)
    proto.set_raw_data(std::string(bytesOf(tensor), '\0'));
  else
    proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
}

/// One field of a protobuf message.
struct Field {
  uint32_t number = 0;
  size_t begin = 0, end = 0; ///< payload of a length-delimited field
};

/// Walks the fields of one message; only length-delimited ones have a payload.
class Wire {
public:
  Wire(const std::string &bytes, size_t begin, size_t end) : bytes(bytes), at(begin), end(end) {}

  /// The field from `at` on, with the bytes of its payload where it has any; false at the end or where the bytes are no
  /// message. The low three bits of a key are the wire type: 0 a varint, 1 eight bytes, 2 a length and as many bytes, 5
  /// four bytes.
  bool next(Field &field) {
    uint64_t key = 0, unused = 0;
    if (at >= end || !varint(key))
      return false;
    field.number = static_cast<uint32_t>(key >> 3);
    field.begin = field.end = at;
    switch (key & 7) {
    case 0:
      return varint(unused);
    case 1:
      return skip(8);
    case 2:
      return payload(field);
    case 5:
      return skip(4);
    default:
      return false;
    }
  }

private:
  /// Seven bits a byte, the lowest first; the eighth says that more follow.
  bool varint(uint64_t &value) {
    value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
      uint8_t byte = static_cast<uint8_t>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }
  bool payload(Field &field) {
    uint64_t length = 0;
    if (!varint(length))
      return false;
    field.begin = at;
    field.end = at + length;
    return skip(length);
  }
  bool skip(uint64_t count) {
    if (count > end - at)
      return false;
    at += count;
    return true;
  }

  const std::string &bytes;
  size_t at, end;
};

/// A second field of one kind counts instead of the first, as protobuf reads them.
void findRawData(const std::string &bytes, const Field &initializer, std::map<std::string, int64_t> &offsets) {
  Wire tensor(bytes, initializer.begin, initializer.end);
  std::string name;
  int64_t raw = -1;
  for (Field field; tensor.next(field);) {
    if (field.number == onnx::TensorProto::kNameFieldNumber)
      name = bytes.substr(field.begin, field.end - field.begin);
    else if (field.number == onnx::TensorProto::kRawDataFieldNumber)
      raw = static_cast<int64_t>(field.begin);
  }
  if (raw >= 0)
    offsets[name] = raw;
}

std::map<std::string, int64_t> findAll(const std::string &bytes) {
  std::map<std::string, int64_t> offsets;
  Wire model(bytes, 0, bytes.size());
  for (Field field; model.next(field);) {
    if (field.number != onnx::ModelProto::kGraphFieldNumber)
      continue;
    Wire graph(bytes, field.begin, field.end);
    for (Field inner; graph.next(inner);)
      if (inner.number == onnx::GraphProto::kInitializerFieldNumber)
        findRawData(bytes, inner, offsets);
  }
  return offsets;
}

/// Constant and ConstantOfShape nodes whose output is trained give way to initializers.
void dropNodes(onnx::GraphProto &graph, const std::set<std::string> &names) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  for (onnx::NodeProto &node : *graph.mutable_node())
    if (node.output_size() != 1 || !names.count(node.output(0)))
      kept.Add()->Swap(&node);
  graph.mutable_node()->Swap(&kept);
}

/// Products that drop activations at random give way to the activation, or to its product with the mean of the draws.
void stopDropping(onnx::GraphProto &graph) {
  const RandomDraws draws(graph);
  for (onnx::NodeProto &node : *graph.mutable_node())
    if (const int kept = draws.droppedInput(node); kept >= 0) {
      if (const std::string mean = draws.mean(node); !mean.empty()) {
        node.set_input(1 - kept, mean);
        continue;
      }
      node.set_op_type("Identity");
      node.mutable_input()->DeleteSubrange(1 - kept, 1);
    }
}

/// Training forms become those that --evaluate computes: BatchNorm with running statistics, Dropout off.
void useInferenceForms(onnx::GraphProto &graph) {
  std::set<std::string> read;
  for (const onnx::ValueInfoProto &output : graph.output())
    read.insert(output.name());
  for (const onnx::NodeProto &node : graph.node())
    read.insert(node.input().begin(), node.input().end());
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    if (node.op_type() == "Dropout" && node.input_size() > 2)
      node.mutable_input()->DeleteSubrange(2, node.input_size() - 2);
    if (node.op_type() != "BatchNormalization")
      continue;
    const auto &outputs = node.output();
    if (std::any_of(outputs.begin() + 1, outputs.end(), [&](const std::string &name) { return read.count(name); }))
      continue; // inference has no batch statistics to give
    node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.name() == "training_mode")
        attribute.set_i(0);
  }
}

/// A model that was exported before has the mark already, and how its images were prepared; two entries of one name are
/// no valid ONNX.
void dropMark(onnx::ModelProto &model) {
  auto &entries = *model.mutable_metadata_props();
  for (int i = entries.size() - 1; i >= 0; --i)
    if (entries[i].key() == "sluice" || entries[i].key().rfind("sluice.", 0) == 0)
      entries.DeleteSubrange(i, 1);
}

} // namespace

static constexpr size_t mostBytes = INT32_MAX - sizeof exportMark;

/// Of the file's tensors: what cannot be written is not copied either.
static size_t bytesOfTensors(const OnnxFile &file) {
  size_t bytes = 0;
  for (const onnx::TensorProto &initializer : file.model().graph().initializer())
    if (const FileTensor *tensor = file.tensor(initializer.name()))
      bytes += std::min(bytesOf(*tensor), mostBytes + 1);
  return bytes;
}

/// Weights are filled in as raw data of their full size, so that each has one place in the serialized bytes, where
/// programs write over it without protobuf. Trained tensors that are no initializers become some, in place of the nodes
/// that make them.
Result<ExportTemplate> exportTemplate(const OnnxFile &file, const std::vector<TrainedTensor> &tensors) {
  if (bytesOfTensors(file) > mostBytes)
    return noTemplate(file);
  onnx::ModelProto model = file.model();
  onnx::GraphProto &graph = *model.mutable_graph();
  std::map<std::string, const TrainedTensor *> missing;
  for (const TrainedTensor &tensor : tensors)
    missing[tensor.name] = &tensor;
  for (onnx::TensorProto &initializer : *graph.mutable_initializer()) {
    missing.erase(initializer.name());
    if (const FileTensor *tensor = file.tensor(initializer.name()))
      fill(initializer, *tensor);
  }
  std::set<std::string> names;
  for (auto &[name, tensor] : missing) {
    names.insert(name);
    int64_t bytes = 0;
    if (!tensorBytes(onnx::TensorProto::FLOAT, tensor->shape, bytes))
      return Error{file.path() + ": tensor '" + name + "' has a size that overflows"};
    std::string zeros(static_cast<size_t>(bytes), '\0');
    onnx::TensorProto &added = *graph.add_initializer();
    added.set_name(name);
    fill(added, FileTensor{onnx::TensorProto::FLOAT, tensor->shape, zeros});
  }
  dropNodes(graph, names);
  stopDropping(graph);
  useInferenceForms(graph);
  // Before version 4 every initializer had to be an input as well.
  model.set_ir_version(std::max<int64_t>(model.ir_version(), 4));
  dropMark(model);
  setIdentity(model, modelIdentity(file.model()));
  ExportTemplate result;
  std::string bytes;
  if (model.ByteSizeLong() > mostBytes || !model.SerializeToString(&bytes))
    return noTemplate(file);
  result.bytes = exportMark + bytes; // messages that follow one another are one
  result.offsets = findAll(result.bytes);
  return result;
}

ExportTemplate noTemplate(const OnnxFile &file) {
  ExportTemplate none;
  for (const onnx::TensorProto &initializer : file.model().graph().initializer())
    none.offsets[initializer.name()] = 0;
  return none;
}

} // namespace sluice
