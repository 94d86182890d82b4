// SPDX-License-Identifier: Apache-2.0
// See ImportNode.h. Constants and shapes are here, too.
#include "frontend/ImportNode.h"

#include "frontend/ConstantFolding.h"
#include "frontend/ElementTypes.h"
#include "frontend/Refusals.h"

using namespace mlir;

namespace sluice {

Source initializerSource(const std::string &name, const FileTensor &tensor, const std::map<std::string, Hold> &held) {
  Source source;
  if (auto found = held.find(name); found != held.end())
    source.hold = found->second;
  source.name = source.initializer = name;
  source.tensor = &tensor;
  source.shape = tensor.shape;
  source.elementType = tensor.elementType;
  source.constantNode = source.hold.has_value();
  return source;
}

namespace {

LogicalResult importConstant(NodeImport &node) {
  const std::string &name = node.proto().output(0);
  const FileTensor *tensor = node.shared().file.tensor(name);
  if (!tensor)
    return node.error("holds no tensor of numbers");
  const TensorRoles &roles = node.graph().roles;
  Source &source = node.shared().sources[name] = initializerSource(name, *tensor, roles.held);
  source.constantNode = !roles.weights.count(name);
  return success();
}

/// A tensor of one number becomes a source that holds the number alone, however large its shape. Small ones are folded
/// as well, since shapes are computed with them.
LogicalResult importConstantOfShape(NodeImport &node) {
  const HostTensor *shape = node.constant(0, "the shape");
  if (!shape)
    return failure();
  auto value = HostTensor::zeros({}, /*integral=*/false);
  if (const onnx::TensorProto *given = node.attributes.tensor("value")) {
    FileTensor element;
    element.elementType = given->data_type();
    int64_t integer = given->int64_data_size()   ? given->int64_data(0)
                      : given->int32_data_size() ? given->int32_data(0)
                                                 : 0;
    value->integral = given->data_type() != onnx::TensorProto::FLOAT && given->data_type() != onnx::TensorProto::DOUBLE;
    value->ints.assign(value->integral ? 1 : 0, integer);
    value->floats.assign(value->integral ? 0 : 1, given->float_data_size() ? given->float_data(0) : 0);
    element.bytes = given->raw_data();
    if (int64_t(element.bytes.size()) == elementSize(element.elementType) && !element.bytes.empty())
      if (auto copy = HostTensor::from(element))
        value = copy;
  }
  const std::string &name = node.proto().output(0);
  Source source;
  source.name = name;
  source.shape = shape->ints;
  source.elementType = value->integral ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
  source.constantNode = true;
  if (!elementCount(source.shape) || *elementCount(source.shape) > node.spec().limits.elements)
    return node.error("the size of shape " + shapeText(source.shape) + " is negative or overflows");
  if (auto host = HostTensor::zeros(source.shape, value->integral)) {
    for (int64_t i = 0; i < host->size(); ++i)
      host->set(i, *value, 0);
    if (failed(node.fold(std::move(*host))))
      return failure();
  }
  value->shape = {};
  source.value = std::move(value);
  node.shared().sources[name] = std::move(source);
  return success();
}

/// Shape (with its bounds since opset 15) and Size.
LogicalResult importShape(NodeImport &node) {
  std::vector<int64_t> shape;
  if (const Source *source = node.source(0)) {
    shape = source->shape;
  } else {
    Value x = node.tensor(0);
    if (!x)
      return failure();
    shape = shapeOf(x).vec();
  }
  int64_t rank = shape.size();
  if (node.proto().op_type() == "Size")
    return node.fold(HostTensor::scalar(elementCount(shape).value_or(0)));
  auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = bound(node.attributes.integer("start", 0)),
          end = std::max(start, bound(node.attributes.integer("end", rank)));
  return node.fold(HostTensor::vector({shape.begin() + start, shape.begin() + end}));
}

/// Identity and float casts of a tensor of the file. PyTorch's exporter shares initializers of equal values through
/// Identity nodes that bear the lost names: tensors that are the same everywhere (fresh scales, biases, statistics)
/// become variables of their own, unless nobody else reads them. What is folded stays so.
bool importAlias(NodeImport &node) {
  const Source *source = node.source(0);
  bool cast = node.proto().op_type() == "Cast";
  if (!source || node.shared().hosts.count(node.shared().known(node.proto().input(0))) ||
      (!cast && node.proto().op_type() != "Identity") || (cast && source->elementType != onnx::TensorProto::FLOAT) ||
      (cast && node.attributes.integer("to", 0) != onnx::TensorProto::FLOAT))
    return false;
  Source alias = *source;
  const std::string &name = node.proto().output(0);
  const bool isShared =
      alias.elementType == onnx::TensorProto::FLOAT && node.graph().readTwice.count(node.proto().input(0));
  if (isShared && alias.tensor && !alias.shape.empty() && isUniform(*alias.tensor)) {
    FileTensor one{alias.elementType, {}, alias.tensor->bytes.substr(0, elementSize(alias.elementType))};
    alias.name = name;
    alias.initializer.clear();
    if ((alias.value = HostTensor::from(one)))
      alias.tensor = nullptr;
  }
  node.shared().sources[name] = alias;
  return true;
}

/// What a node would fold to, as text: op, attributes, inputs, small ones by their content, for shapes are equal from
/// layer to layer. Empty where not all of that is known, or where constants are weights, of which each is its own.
std::string foldedText(NodeImport &node) {
  constexpr int64_t small = 64;
  const onnx::NodeProto &proto = node.proto();
  if ((!isFoldable(proto.op_type()) && proto.op_type() != "ConstantOfShape") || proto.output_size() != 1 ||
      node.graph().constantsAreWeights)
    return {};
  std::string text = proto.op_type();
  for (const onnx::AttributeProto &attribute : proto.attribute())
    text += "|" + attribute.SerializeAsString();
  for (int i = 0; i < node.inputs(); ++i) {
    const HostTensor *input = node.folded(i);
    if (node.has(i) && !input)
      return {};
    text += "|" + std::string(!input ? "" : input->size() <= small ? "=" : node.shared().known(proto.input(i)));
    if (!input || input->size() > small)
      continue;
    text += shapeText(input->shape) + (input->integral ? "i" : "f");
    const char *bytes = input->integral ? reinterpret_cast<const char *>(input->ints.data())
                                        : reinterpret_cast<const char *>(input->floats.data());
    text.append(bytes, static_cast<size_t>(input->size()) * 8);
  }
  return text;
}

/// Evaluates the node when all that it reads is known and cannot be a parameter.
bool tryFold(NodeImport &node) {
  if (!isFoldable(node.proto().op_type()) || node.inputs() == 0)
    return false;
  HostInputs inputs;
  for (int i = 0; i < node.inputs(); ++i) {
    inputs.push_back(node.folded(i));
    if (node.has(i) && !inputs.back())
      return false;
  }
  Result<HostTensor> folded = foldNode(node.proto(), node.opset, inputs);
  if (!folded && folded.errorKind() == Error::Kind::TooLarge && nodeImporters().count(node.proto().op_type()))
    return false;
  if (folded)
    (void)node.fold(std::move(*folded));
  else
    (void)node.error(folded.error());
  return true;
}

/// The order matters: a draw is no value that others could read, so that its readers come first; another name of a
/// tensor comes before folding, which would make a second tensor of it; an importer is asked only where what the node
/// reads is data.
LogicalResult importUnknown(NodeImport &node) {
  const std::string &type = node.proto().op_type();
  if (auto drawn = importOfDraw(node)) {
    noteIntegral(node);
    return *drawn;
  }
  if (type == "Constant")
    return importConstant(node);
  if (type == "ConstantOfShape")
    return importConstantOfShape(node);
  if (type == "Shape" || type == "Size")
    return importShape(node);
  if (importAlias(node))
    return success();
  if (tryFold(node))
    return success(node.shared().error.empty());
  auto importer = nodeImporters().find(type);
  if (importer == nodeImporters().end())
    return node.error("this op is not supported; " + adviceOn(node.proto()));
  if (failed(importer->second(node)))
    return failure();
  noteIntegral(node);
  return success();
}

} // namespace

/// A node that folds to what an earlier one did shares its value: layers of one model repeat the arithmetic of shapes,
/// and masks of many elements are held once.
LogicalResult importNode(NodeImport &node) {
  if (!isStandard(node.proto()))
    return node.error("ops of domain '" + node.proto().domain() + "' are not supported; " + adviceOn(node.proto()));
  const std::string text = foldedText(node);
  if (text.empty())
    return importUnknown(node);
  FunctionImport &function = node.shared();
  const std::string &result = node.proto().output(0);
  if (auto found = function.computed.find(text); found != function.computed.end()) {
    function.repeated[result] = found->second;
    return success();
  }
  if (failed(importUnknown(node)))
    return failure();
  if (function.hosts.count(result))
    function.computed[text] = result;
  return success();
}

} // namespace sluice
