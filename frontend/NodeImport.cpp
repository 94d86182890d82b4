// SPDX-License-Identifier: Apache-2.0
// Resolution of a node's inputs, and the table of importers.
#include "frontend/NodeImport.h"
#include "frontend/ElementTypes.h"
#include "frontend/TallTensors.h"

using namespace mlir;

namespace sluice {

std::string describe(const onnx::NodeProto &node, int64_t opset) {
  std::string name = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : std::string();
  std::string type = node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
  return "node '" + name + "' (" + type + ", opset " + std::to_string(opset) + ")";
}

/// What plans, reports and messages call the node; one without a name by what it makes.
static Location locationOf(Builder &builder, const onnx::NodeProto &node) {
  std::string name = node.name();
  if (name.empty())
    name = node.op_type() + " " + (node.output_size() > 0 ? node.output(0) : "");
  return NameLoc::get(builder.getStringAttr(name));
}

NodeImport::NodeImport(FunctionImport &function, const onnx::NodeProto &node)
    : attributes(node), opset(function.file.opset()), function(function), node(node),
      location(locationOf(function.builder, node)) {}

LogicalResult NodeImport::error(const std::string &message) {
  if (function.error.empty())
    function.error = message;
  return failure();
}

std::string NodeImport::user() const {
  std::string name = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : std::string();
  return "node '" + name + "' (" + node.op_type() + ")";
}

/// What folding computed becomes a source when a kernel reads it, since only then is a variable needed for it.
const Source *NodeImport::source(int input) {
  if (!has(input))
    return nullptr;
  const std::string &name = function.known(node.input(input));
  auto known = function.sources.find(name);
  if (known != function.sources.end())
    return &known->second;
  auto folded = function.hosts.find(name);
  if (folded == function.hosts.end())
    return nullptr;
  Source source;
  source.name = name;
  source.value = folded->second;
  source.shape = folded->second.shape;
  source.elementType = folded->second.integral ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
  source.constantNode = true;
  return &(function.sources[name] = source);
}

/// One read for all nodes, until changed() puts another value in its place.
Value NodeImport::read(FlatSymbolRefAttr variable, RankedTensorType type) {
  Value &read = function.reads[variable.getValue()];
  if (!read)
    read = train::ReadOp::create(function.builder, NameLoc::get(variable.getAttr()), type, variable);
  return read;
}

void NodeImport::changed(FlatSymbolRefAttr variable, Value value) { function.reads[variable.getValue()] = value; }

/// Null after an error.
train::VariableOp NodeImport::variableOf(const Source &source, const Use &use) {
  Result<train::VariableOp> variable = function.variables.get(source, use, user());
  if (!variable) {
    function.error = variable.error();
    return {};
  }
  const auto type = cast<RankedTensorType>(variable->getType());
  return succeeded(checkSize(type, "tensor '" + source.name + "'")) ? *variable : train::VariableOp();
}

Value NodeImport::readSource(const Source &source, const Use &use) {
  train::VariableOp variable = variableOf(source, use);
  return variable ? read(FlatSymbolRefAttr::get(variable.getSymNameAttr()), cast<RankedTensorType>(variable.getType()))
                  : Value();
}

/// A tensor under a view is initialized for the op after it.
static Use useBehindViews(const OnnxGraph &graph, const std::string &name) {
  Use use;
  auto [reader, input] = graph.readerBehindViews(name);
  std::string type = reader ? reader->op_type() : "";
  if (type == "Mul" || type == "Div")
    use.kind = Use::Factor;
  else if (type == "Conv" || type == "ConvTranspose" || type == "MatMul" || type == "Gemm")
    use.kind = input < 2 ? Use::Weight : Use::Bias;
  else if (type == "BatchNormalization" && input == 0) // a weight that is standardized
    use.kind = Use::Weight;
  return use;
}

static bool isInteger(Value value) { return typeOf(value).getElementType().isInteger(64); }

/// Integers and truth values of the file as the numbers that arithmetic takes.
Value NodeImport::readNumbers(const Source &source, int input, const Use &use) {
  if (source.elementType == onnx::TensorProto::FLOAT)
    return readSource(source, use);
  const HostTensor *value = source.value ? &*source.value : known(input);
  if (!value || !value->integral)
    return readSource(source, use);
  Source numbers = source;
  numbers.name += "/number";
  numbers.invented = numbers.constantNode = true; // integers have no gradient
  numbers.elementType = onnx::TensorProto::FLOAT;
  numbers.tensor = nullptr;
  numbers.initializer.clear();
  numbers.value = HostTensor::zeros(value->shape, /*integral=*/false);
  for (int64_t i = 0; i < value->size(); ++i)
    numbers.value->set(i, *value, i);
  return readSource(numbers, use);
}

/// Null after an error.
static Value readable(NodeImport &node, Value value) {
  if (!isTall(node, shapeOf(value).size()) || readsTall(node.proto().op_type()))
    return value;
  (void)node.error("reads a tensor of rank " + std::to_string(typeOf(value).getRank()) + ", more than the limit of " +
                   std::to_string(node.spec().limits.rank) + "; only views, transpositions and sums read such");
  return {};
}

Value NodeImport::moved(int input) {
  auto value = has(input) ? function.values.find(node.input(input)) : function.values.end();
  return value != function.values.end() ? readable(*this, value->second) : tensor(input);
}

/// Kernels compute in float32: integers are cast once for each value, whoever reads them. A view's operand gets the use
/// that readers behind the view have, as a weight that is reshaped first is a weight all the same.
Value NodeImport::tensor(int input, Use use) {
  if (!has(input)) {
    (void)error("input " + std::to_string(input) + " is missing");
    return {};
  }
  const std::string &name = node.input(input);
  if (auto found = function.values.find(name); found != function.values.end()) {
    Value value = readable(*this, found->second);
    if (!value || !isInteger(value))
      return value;
    Value &number = function.numbers[value];
    return number ? number : number = makeAs<train::CastOp>(shapeOf(value), value);
  }
  if (const Source *found = source(input))
    return readNumbers(*found, input, isView(node) ? useBehindViews(function.graph, name) : use);
  (void)error("input '" + name + "' is not a tensor that this node can read");
  return {};
}

/// By what the model says: values that are computed in float32 may still be integers there.
bool NodeImport::isIntegral(int input) {
  if (!has(input))
    return false;
  const std::string &name = function.known(node.input(input));
  if (auto value = function.values.find(name); value != function.values.end())
    return isInteger(value->second) || function.integral.contains(name);
  if (auto folded = function.hosts.find(name); folded != function.hosts.end())
    return folded->second.integral;
  const Source *found = source(input);
  return found && found->elementType != onnx::TensorProto::FLOAT;
}

/// Steps write a running statistic, so that it needs a variable of its own that no other use shares.
FlatSymbolRefAttr NodeImport::state(int input, Use::Kind kind) {
  const Source *found = source(input);
  function.needsAssumed |= !found && has(input) && function.assumed.contains(node.input(input));
  if (!found) {
    (void)error("input " + std::to_string(input) + " (running statistic) must be an initializer or a constant");
    return {};
  }
  Use use;
  use.kind = kind;
  Source own = *found;
  if (function.repeated.contains(node.input(input)))
    own.name = node.input(input); // what a step changes is no longer equal to what was computed in the same way
  train::VariableOp variable = variableOf(own, use);
  return variable ? FlatSymbolRefAttr::get(variable.getSymNameAttr()) : FlatSymbolRefAttr();
}

/// Eight bytes an element, as a HostTensor holds int64 or double whatever the type was.
LogicalResult NodeImport::countConstant(const HostTensor &value) {
  function.constantBytes += 8 * value.size();
  if (function.constantBytes > spec().limits.constantBytes)
    return error(
        "the values that are computed at compile time, up to this node's, together " +
        overLimit(std::to_string(function.constantBytes) + " bytes", spec().limits.constantBytes, "constant-bytes"));
  return success();
}

LogicalResult NodeImport::fold(HostTensor value) {
  if (failed(countConstant(value)))
    return failure();
  function.hosts[node.output(0)] = std::move(value);
  return success();
}

/// Whether copies of the file's tensors take no more than constants may with one more; small ones, as shapes, axes and
/// numbers are, always do.
static bool fitsBesideCopies(const FunctionImport &function, const FileTensor &tensor) {
  constexpr int64_t elementBytes = 8, small = 1 << 13;
  int64_t elements = elementCount(tensor.shape).value_or(0);
  if (elements <= small)
    return true;
  for (const auto &copy : function.copies)
    elements += copy.second.size();
  return elements <= function.spec.limits.constantBytes / elementBytes;
}

/// Folded values, else a copy of a tensor of the file, which is made once and only while all copies together stay
/// within the limit. Null says that the value is data, or too large to compute with here.
const HostTensor *NodeImport::known(int input) {
  if (!has(input))
    return nullptr;
  const std::string &name = function.known(node.input(input));
  if (auto folded = function.hosts.find(name); folded != function.hosts.end())
    return &folded->second;
  if (auto copied = function.copies.find(name); copied != function.copies.end())
    return &copied->second;
  auto found = function.sources.find(name);
  if (found == function.sources.end() || !found->second.tensor)
    return nullptr;
  if (!fitsBesideCopies(function, *found->second.tensor))
    return nullptr;
  auto copy = HostTensor::from(*found->second.tensor);
  return copy ? &(function.copies[name] = std::move(*copy)) : nullptr;
}

const HostTensor *NodeImport::folded(int input) {
  const Source *found = source(input);
  bool parameter = found && !found->constantNode && found->elementType == onnx::TensorProto::FLOAT;
  return parameter ? nullptr : known(input);
}

const HostTensor *NodeImport::constant(int input, const char *what) {
  const HostTensor *value = known(input);
  function.needsAssumed |= !value && has(input) && function.assumed.contains(node.input(input));
  if (!value)
    (void)error(std::string(what) + " must be known at compile time; input " + std::to_string(input) +
                (has(input) ? " '" + node.input(input) + "'" : "") + " is not");
  return value;
}

std::optional<std::vector<int64_t>> NodeImport::integers(const char *attribute, int input) {
  if (attributes.has(attribute))
    return attributes.integers(attribute);
  if (!has(input))
    return std::nullopt;
  const HostTensor *value = constant(input, attribute);
  if (value && !value->integral)
    (void)error(std::string(attribute) + " must be integers; input " + std::to_string(input) + " '" +
                node.input(input) + "' is not");
  return value && value->integral ? std::optional(value->ints) : std::nullopt;
}

LogicalResult NodeImport::result(Value value, int output) {
  if (!value)
    return failure();
  if (output < node.output_size())
    function.values[node.output(output)] = value;
  return success();
}

int64_t NodeImport::axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  (void)error("axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  return -1;
}

const NodeImporters &nodeImporters() {
  static const NodeImporters table = [] {
    NodeImporters importers;
    addConvolutions(importers);
    addPools(importers);
    addReductions(importers);
    addNormalizations(importers);
    addGroupNormalizations(importers);
    addProducts(importers);
    addEinsum(importers);
    addElementwise(importers);
    addViews(importers);
    addJoins(importers);
    addGathers(importers);
    addScatters(importers);
    addPaddings(importers);
    addResizes(importers);
    addSelections(importers);
    addGridSamples(importers);
    addLosses(importers);
    addLogic(importers);
    addRandom(importers);
    addQuantization(importers);
    addFourier(importers);
    addRecurrences(importers);
    addSequenceOrders(importers);
    return importers;
  }();
  return table;
}

} // namespace sluice
