// SPDX-License-Identifier: Apache-2.0
// Nodes that taking control flow apart makes beside those of the file: constants, elements of what a loop walks along,
// and what it stacks.
#include "frontend/Flattening.h"
#include "frontend/NodeProtos.h"

namespace sluice {

Result<std::string> Flattening::emit(onnx::NodeProto node, const std::string &name) {
  const std::string output = fresh(name);
  node.set_name(output);
  node.add_output(output);
  if (Status appended = append(std::move(node), true); !appended)
    return appended.takeError();
  return output;
}

Result<std::string> Flattening::add(const char *op, const std::vector<std::string> &inputs, const std::string &name,
                                    const std::vector<std::pair<const char *, int64_t>> &attributes) {
  onnx::NodeProto node = makeNode(op, inputs);
  for (const auto &[key, number] : attributes)
    setInteger(node, key, number);
  return emit(std::move(node), name);
}

Result<std::string> Flattening::constant(const std::string &name, const HostTensor &value, int32_t elementType) {
  onnx::NodeProto node = makeNode("Constant");
  onnx::TensorProto &tensor = setConstant(node);
  tensor.set_data_type(elementType);
  for (int64_t extent : value.shape)
    tensor.add_dims(extent);
  std::string &raw = *tensor.mutable_raw_data();
  for (int64_t number : value.ints)
    if (elementType == onnx::TensorProto::BOOL)
      raw += static_cast<char>(number != 0);
    else
      raw.append(reinterpret_cast<const char *>(&number), sizeof number);
  return emit(std::move(node), name);
}

/// Squeeze or Unsqueeze of one axis, which is an input since opset 13 and an attribute before.
Result<std::string> Flattening::addView(const char *op, const std::string &x, int64_t axis, const std::string &name) {
  constexpr int64_t axesAreInputs = 13;
  if (opset() >= axesAreInputs) {
    auto axes = constant(name + "/axes", HostTensor::vector({axis}), onnx::TensorProto::INT64);
    return axes ? add(op, {x, *axes}, name) : axes;
  }
  onnx::NodeProto node = makeNode(op, {x});
  setIntegers(node, "axes", {axis});
  return emit(std::move(node), name);
}

Result<std::string> Flattening::stack(const std::vector<std::string> &parts, int64_t axis, const std::string &name) {
  std::vector<std::string> views;
  for (const std::string &part : parts) {
    auto view = addView("Unsqueeze", part, axis, part + "/stacked");
    if (!view)
      return view;
    views.push_back(*view);
  }
  return add("Concat", views, name, {{"axis", axis}});
}

} // namespace sluice
