// SPDX-License-Identifier: Apache-2.0
// As a model that was exported with adapters has them, so that the import and merging know no other kind.
#include "frontend/AdapterNodes.h"

#include "frontend/Attributes.h"
#include "frontend/NodeProtos.h"

#include <cmath>

namespace sluice {

AdapterTensors::AdapterTensors(const Layer &layer) {
  const std::string suffix = ".weight", &name = layer.weight;
  const bool ends =
      name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  const std::string module = ends ? name.substr(0, name.size() - suffix.size()) : name;
  first = module + ".lora_A.weight";
  second = module + ".lora_B.weight";
  magnitude = module + ".lora_magnitude_vector";
}

/// A node that is called as its result is.
static onnx::NodeProto nodeOf(const char *op, const std::vector<std::string> &inputs, const std::string &result) {
  onnx::NodeProto node = makeNode(op, inputs);
  node.set_name(result);
  node.add_output(result);
  return node;
}

/// A name that the model does not have.
std::string AdapterNodes::fresh(std::string name) {
  while (!names.insert(name).second)
    name += "_";
  return name;
}

/// A node that makes one number, or a tensor of one, of whichever type.
std::string AdapterNodes::constantNode(const std::string &name, int32_t type, const std::string &bytes,
                                       const std::vector<int64_t> &shape) {
  const std::string output = fresh(name);
  onnx::NodeProto node = nodeOf("Constant", {}, output);
  onnx::TensorProto &value = setConstant(node);
  value.set_data_type(type);
  for (int64_t extent : shape)
    value.add_dims(extent);
  value.set_raw_data(bytes);
  *nodes.Add() = std::move(node);
  return output;
}

std::string AdapterNodes::floatNode(const std::string &name, double value) {
  const float rounded = static_cast<float>(value);
  return constantNode(name, onnx::TensorProto::FLOAT,
                      std::string(reinterpret_cast<const char *>(&rounded), sizeof rounded));
}

/// x with the request's dropout.
std::string AdapterNodes::dropped(const std::string &x, const std::string &scope) {
  if (request.dropout == 0)
    return x;
  const std::string output = fresh(scope + "/dropout");
  std::vector<std::string> inputs = {x};
  const bool byInputs = opset >= 12;
  if (byInputs) {
    inputs.push_back(floatNode(scope + "/ratio", request.dropout));
    inputs.push_back(constantNode(scope + "/training", onnx::TensorProto::BOOL, std::string(1, '\1')));
  }
  onnx::NodeProto &node = *nodes.Add() = nodeOf("Dropout", inputs, output);
  if (!byInputs)
    setNumber(node, "ratio", request.dropout);
  return output;
}

/// The result of an op, whose node is called as that is.
std::string AdapterNodes::nodeResult(const char *type, const std::vector<std::string> &inputs,
                                     const std::string &name) {
  const std::string output = fresh(name);
  *nodes.Add() = nodeOf(type, inputs, output);
  return output;
}

std::string AdapterNodes::transposed(const std::string &matrix, const std::string &name) {
  const std::string output = nodeResult("Transpose", {matrix}, name);
  setIntegers(last(), "perm", {1, 0});
  return output;
}

std::string AdapterNodes::integersNode(const std::string &name, const std::vector<int64_t> &values) {
  return constantNode(name, onnx::TensorProto::INT64,
                      std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int64_t)),
                      {static_cast<int64_t>(values.size())});
}

std::string AdapterNodes::reshaped(const std::string &x, const std::vector<int64_t> &shape, const std::string &name) {
  const std::string extents = integersNode(name + "_shape", shape);
  return nodeResult("Reshape", {x, extents}, name);
}

double AdapterNodes::scale() const {
  const double rank = static_cast<double>(request.rank);
  return request.alpha / (request.rootOfRank ? std::sqrt(rank) : rank);
}

/// The layer's node, and its adapter behind it.
void AdapterNodes::stand(const Layer &layer, const onnx::NodeProto &node) {
  if (request.hasMagnitude)
    return standWithMagnitude(layer, node);
  const std::string &result = node.output(0), scope = result + "/lora";
  onnx::NodeProto base = node;
  const std::string alone = fresh(result + "/base");
  base.set_output(0, alone);
  *nodes.Add() = std::move(base);
  const std::string x = dropped(node.input(0), scope);
  std::string added;
  if (node.op_type() == "Gemm") {
    const std::string narrow = nodeResult("Gemm", {x, AdapterTensors(layer).first}, scope + "_A");
    setInteger(last(), "transB", 1);
    added = nodeResult("Gemm", {narrow, AdapterTensors(layer).second}, scope + "_B");
    setInteger(last(), "transB", 1);
    setNumber(last(), "alpha", scale());
  } else {
    const std::string wide = layer.window.empty() ? besideRows(layer, x, scope) : besideImages(layer, node, x, scope);
    added = nodeResult("Mul", {wide, floatNode(scope + "_scale", scale())}, scope + "_scaled");
  }
  finish("Add", {alone, added}, scope, result);
}

/// (x A^T) B^T
std::string AdapterNodes::besideRows(const Layer &layer, const std::string &x, const std::string &scope) {
  const std::string first = transposed(AdapterTensors(layer).first, scope + "_A_t"),
                    second = transposed(AdapterTensors(layer).second, scope + "_B_t");
  return nodeResult("MatMul", {nodeResult("MatMul", {x, first}, scope + "_A"), second}, scope + "_B");
}

/// The convolution's windows to as many channels as the rank says, and from these all channels of a pixel.
std::string AdapterNodes::besideImages(const Layer &layer, const onnx::NodeProto &node, const std::string &x,
                                       const std::string &scope) {
  const std::string narrow = convolved(node, x, AdapterTensors(layer).first, scope + "_A");
  return nodeResult("Conv", {narrow, AdapterTensors(layer).second}, scope + "_B");
}

/// The node's convolution with other weights, without its bias.
std::string AdapterNodes::convolved(const onnx::NodeProto &node, const std::string &x, const std::string &weight,
                                    const std::string &name) {
  const std::string output = nodeResult("Conv", {x, weight}, name);
  *last().mutable_attribute() = node.attribute();
  return output;
}

/// DoRA (Liu et al. 2024): y = m / |V| * (x V) + bias with V = W + scale * A B, whose lengths |V| by outputs no
/// gradient passes. As in PEFT, dropout is of all that the adapter adds: y = m / |V| * (x' V) + (x - x') W + bias.
void AdapterNodes::standWithMagnitude(const Layer &layer, const onnx::NodeProto &node) {
  const bool images = !layer.window.empty(), turns = Attributes(node).integer("transB", 0) != 0;
  const std::string &result = node.output(0), scope = result + "/dora";
  const std::string x = dropped(node.input(0), scope);
  const std::string weight = turns ? transposed(node.input(1), scope + "_W_t") : node.input(1);
  const auto withWeight = [&](const std::string &from, const std::string &name) {
    return images ? convolved(node, from, weight, name) : nodeResult("MatMul", {from, weight}, name);
  };
  const std::string base = withWeight(x, result + "/base");
  const std::string wide = images ? besideImages(layer, node, x, scope) : besideRows(layer, x, scope),
                    added = nodeResult("Mul", {wide, floatNode(scope + "_scale", scale())}, scope + "_scaled"),
                    sum = nodeResult("Add", {base, added}, scope + "_sum");
  const std::string ratio =
      nodeResult("Div", {AdapterTensors(layer).magnitude, lengths(layer, scope)}, scope + "_ratio");
  std::vector<std::string> terms = {nodeResult("Mul", {sum, ratio}, scope + "_scaled_sum")};
  if (x != node.input(0))
    terms.push_back(withWeight(nodeResult("Sub", {node.input(0), x}, scope + "_dropped"), scope + "_rest_base"));
  if (node.op_type() != "MatMul" && node.input_size() > 2 && !node.input(2).empty())
    terms.push_back(images ? reshaped(node.input(2), layer.magnitudeShape(), scope + "_bias") : node.input(2));
  while (terms.size() > 2) {
    const std::string last = terms.back();
    terms.pop_back();
    terms.back() = nodeResult("Add", {terms.back(), last}, scope + "_rest");
  }
  finish(terms.size() > 1 ? "Add" : "Identity", terms, scope, result);
}

/// What A and B add to the weight, as that lies, [outputs, ...window] of a convolution.
std::string AdapterNodes::delta(const Layer &layer, const std::string &scope) {
  std::string first = AdapterTensors(layer).first,
              second = nodeResult("Mul", {AdapterTensors(layer).second, floatNode(scope + "_factor", scale())},
                                  scope + "_B_scaled");
  if (!layer.window.empty()) {
    first = reshaped(first, {request.rank, layer.inputs}, scope + "_A_matrix");
    second = reshaped(second, {layer.outputs, request.rank}, scope + "_B_matrix");
  }
  if (!layer.turned) {
    const std::string left = transposed(first, scope + "_A_turned"), right = transposed(second, scope + "_B_turned");
    return nodeResult("MatMul", {left, right}, scope + "_delta");
  }
  const std::string matrix = nodeResult("MatMul", {second, first}, scope + "_delta");
  if (layer.window.empty())
    return matrix;
  std::vector<int64_t> shape = {layer.outputs};
  shape.insert(shape.end(), layer.window.begin(), layer.window.end());
  return reshaped(matrix, shape, scope + "_delta_windows");
}

/// Of the weights of each output with what is added to them, as the magnitude has them, behind an Identity that is
/// detached.
std::string AdapterNodes::lengths(const Layer &layer, const std::string &scope) {
  const std::string added = delta(layer, scope), whole = nodeResult("Add", {layer.weight, added}, scope + "_V");
  std::vector<int64_t> axes = {layer.turned ? 1 : 0}; // of inputs
  for (size_t axis = 2; axis <= layer.window.size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  const bool byInputs = opset >= 18;
  std::vector<std::string> operands = {whole};
  if (byInputs)
    operands.push_back(integersNode(scope + "_axes", axes));
  std::string length = nodeResult("ReduceL2", operands, scope + "_length");
  setInteger(last(), "keepdims", 0);
  if (!byInputs)
    setIntegers(last(), "axes", axes);
  if (!layer.window.empty())
    length = reshaped(length, layer.magnitudeShape(), scope + "_lengths");
  const std::string result = nodeResult("Identity", {length}, scope + "_fixed");
  fixed.insert(result);
  return result;
}

/// The node that makes the layer's result.
void AdapterNodes::finish(const char *op, const std::vector<std::string> &inputs, const std::string &name,
                          const std::string &result) {
  onnx::NodeProto &node = *nodes.Add() = makeNode(op, inputs);
  node.set_name(name);
  node.add_output(result);
}

} // namespace sluice
