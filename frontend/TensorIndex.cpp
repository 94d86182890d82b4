// SPDX-License-Identifier: Apache-2.0
// Finds tensor bytes in the four places where ONNX keeps them: raw data, typed fields, files beside the model,
// attributes of Constant.
#include "frontend/TensorIndex.h"
#include "frontend/ElementTypes.h"
#include "frontend/HostTensor.h"
#include "onnx/onnx_pb.h"

namespace sluice {
namespace {

template <typename Field> std::string_view view(const Field &field) {
  return {reinterpret_cast<const char *>(field.data()), field.size() * sizeof(*field.data())};
}

template <typename Number> std::string rawBytes(Number number) {
  return std::string(reinterpret_cast<const char *>(&number), sizeof number);
}

/// The low bytes of each entry of a field that is wider than the element.
template <typename Field> std::string narrow(const Field &field, int64_t size) {
  std::string bytes;
  for (auto entry : field)
    bytes.append(reinterpret_cast<const char *>(&entry), size);
  return bytes;
}

} // namespace

std::string_view TensorIndex::own(std::string bytes) { return owned.emplace_back(std::move(bytes)); }

/// Protobuf has no narrow integers: float16, int8 and the like stand in int32_data, uint32 in uint64_data, one an
/// element, and must be repacked.
Result<std::string_view> TensorIndex::bytesOf(const onnx::TensorProto &tensor, int64_t wanted) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return external.find(tensor, wanted);
  if (tensor.has_raw_data())
    return std::string_view(tensor.raw_data());
  int64_t size = elementSize(tensor.data_type());
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
  case onnx::TensorProto::COMPLEX64:
    return view(tensor.float_data());
  case onnx::TensorProto::DOUBLE:
  case onnx::TensorProto::COMPLEX128:
    return view(tensor.double_data());
  case onnx::TensorProto::INT64:
    return view(tensor.int64_data());
  case onnx::TensorProto::INT32:
    return view(tensor.int32_data());
  case onnx::TensorProto::UINT64:
    return view(tensor.uint64_data());
  case onnx::TensorProto::UINT32:
    return own(narrow(tensor.uint64_data(), size));
  case onnx::TensorProto::INT4:
  case onnx::TensorProto::UINT4: // two of them in each entry
    return own(narrow(tensor.int32_data(), 1));
  default:
    return own(narrow(tensor.int32_data(), size));
  }
}

Status TensorIndex::add(const std::string &name, const onnx::TensorProto &tensor) {
  FileTensor entry;
  entry.elementType = tensor.data_type();
  entry.shape.assign(tensor.dims().begin(), tensor.dims().end());
  std::string what = "tensor '" + name + "'";
  // Types without a byte size are no error here: nothing may read them, and what does says which node wants them.
  if (elementSize(entry.elementType) == 0 && !isHalfByte(entry.elementType))
    return Success{};
  int64_t wanted = 0;
  if (!tensorBytes(entry.elementType, entry.shape, wanted))
    return Error{what + ": the size of shape " + shapeText(entry.shape) + " is negative or overflows 64 bits"};
  Result<std::string_view> bytes = bytesOf(tensor, wanted);
  if (!bytes)
    return Error{what + ": " + bytes.error()};
  if (static_cast<int64_t>(bytes->size()) != wanted)
    return Error{what + ": data has " + std::to_string(bytes->size()) + " bytes but shape " + shapeText(entry.shape) +
                 " of " + elementTypeName(entry.elementType) + " needs " + std::to_string(wanted)};
  entry.bytes = *bytes;
  tensors[name] = std::move(entry);
  return Success{};
}

Status TensorIndex::addInitializers(const onnx::GraphProto &graph) {
  for (const auto &initializer : graph.initializer())
    if (Status added = add(initializer.name(), initializer); !added)
      return added;
  return Success{};
}

/// Constant nodes may hold numbers in attributes of their own instead of a tensor.
void TensorIndex::addScalars(const onnx::NodeProto &constant) {
  FileTensor entry;
  for (const auto &attribute : constant.attribute()) {
    entry.elementType =
        attribute.name().rfind("value_int", 0) == 0 ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
    if (attribute.name() == "value_float") {
      entry.bytes = own(rawBytes(attribute.f()));
    } else if (attribute.name() == "value_int") {
      entry.bytes = own(rawBytes(attribute.i()));
    } else if (attribute.name() == "value_floats") {
      entry.shape = {attribute.floats_size()};
      entry.bytes = view(attribute.floats());
    } else if (attribute.name() == "value_ints") {
      entry.shape = {attribute.ints_size()};
      entry.bytes = view(attribute.ints());
    } else {
      continue;
    }
    tensors[constant.output(0)] = entry;
  }
}

Status TensorIndex::addConstant(const onnx::NodeProto &node) {
  if (node.op_type() != "Constant" || node.output_size() != 1)
    return Success{};
  addScalars(node);
  for (const auto &attribute : node.attribute())
    if (attribute.name() == "value" && attribute.has_t())
      return add(node.output(0), attribute.t());
  return Success{};
}

Status TensorIndex::addConstants(const onnx::GraphProto &graph) {
  for (const auto &node : graph.node())
    if (Status added = addConstant(node); !added)
      return added;
  return Success{};
}

const FileTensor *TensorIndex::find(std::string_view name) const {
  auto entry = tensors.find(name);
  return entry == tensors.end() ? nullptr : &entry->second;
}

} // namespace sluice
