// SPDX-License-Identifier: Apache-2.0
// One walk in the file's order. Names of bodies stay where nothing else has them, else a number is put after them.
#include "frontend/Flattening.h"
#include "onnx/onnx_pb.h"
#include <algorithm>

namespace sluice {
namespace {

/// Of all copies of bodies together; names and attributes are copied with each.
constexpr int64_t mostBytes = int64_t(1) << 28;

/// Names that go into bodies and come out, for each node that may be unrolled: a body without a node costs time, too.
constexpr int64_t namesPerNode = 10;

const TakeAparts &table() {
  static const TakeAparts all = [] {
    TakeAparts ops;
    addControlFlow(ops);
    addSequences(ops);
    return ops;
  }();
  return all;
}

bool isStandardOp(const onnx::NodeProto &node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

} // namespace

std::string firstOutput(const onnx::NodeProto &node) {
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return {};
}

bool isStructure(const std::string &opType) { return table().count(opType); }

bool hasStructure(const onnx::GraphProto &graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const onnx::NodeProto &node) { return isStandardOp(node) && isStructure(node.op_type()); });
}

const onnx::GraphProto *Structure::graph(const char *attribute) const {
  for (const onnx::AttributeProto &entry : node.attribute())
    if (entry.name() == attribute && entry.has_g())
      return &entry.g();
  return nullptr;
}

Flattening::Flattening(OnnxFile &file, FlatImport &import, const Limits &limits,
                       std::map<std::string, std::string> &refused)
    : file(file), import(import), limits(limits), refused(refused) {}

/// Names of the main graph, which fresh ones must not repeat.
void Flattening::takeNames() {
  const onnx::GraphProto &graph = file.model().graph();
  for (const auto &initializer : graph.initializer())
    taken.try_emplace(initializer.name(), 0);
  for (const auto &input : graph.input())
    taken.try_emplace(input.name(), 0);
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      taken.try_emplace(output, 0);
  for (const auto &[name, count] : taken)
    main.names[name] = tensorBound(name);
}

/// Counts on from the last suffix of the name, so that a loop of many trips takes no quadratic time.
std::string Flattening::fresh(const std::string &name) {
  auto [entry, unused] = taken.try_emplace(name, 0);
  if (unused)
    return name;
  int64_t &count = entry->second;
  for (;;)
    if (std::string next = name + "/" + std::to_string(++count); taken.try_emplace(next, 0).second)
      return next;
}

/// From the inside outwards: a body's own names hide those around it.
const Bound *Flattening::find(const Scope &scope, const std::string &name) const {
  for (const Scope *at = &scope; at; at = at->outer)
    if (auto found = at->names.find(name); found != at->names.end())
      return &found->second;
  return nullptr;
}

Result<Bound> Flattening::input(const Structure &structure, int input) const {
  const Bound *bound = structure.has(input) ? find(structure.scope, structure.node.input(input)) : nullptr;
  if (bound)
    return *bound;
  return Error{structure.has(input) ? "reads '" + structure.node.input(input) + "', which nothing makes"
                                    : "input " + std::to_string(input) + " is missing"};
}

Result<std::string> Flattening::tensor(const Structure &structure, int input) const {
  Result<Bound> bound = this->input(structure, input);
  if (!bound)
    return bound.takeError();
  if (bound->kind == Bound::Tensor)
    return bound->names[0];
  return Error{"input " + std::to_string(input) + " '" + structure.node.input(input) + "' is " +
               (bound->kind == Bound::Sequence ? "a sequence" : "an empty optional") + " where a tensor is needed"};
}

Result<std::vector<std::string>> Flattening::sequence(const Structure &structure, int input) const {
  Result<Bound> bound = this->input(structure, input);
  if (!bound)
    return bound.takeError();
  if (bound->kind == Bound::Sequence)
    return std::move(bound->names);
  return Error{"input " + std::to_string(input) + " '" + structure.node.input(input) +
               "' is not a sequence that is known when compiling"};
}

Result<int64_t> Flattening::number(const std::string &name, const std::string &what) {
  const HostTensor *value = import.value(name);
  if (!value)
    return Error{what + " '" + name + "' is data, which only a running program knows; export the model traced with " +
                 "fixed shapes, or --dim and --batch where it follows from a shape"};
  if (value->size() != 1 || !value->integral)
    return Error{what + " '" + name + "' must be one whole number or truth value, but is " +
                 (value->integral ? "of shape " + shapeText(value->shape) : "a float")};
  return value->ints[0];
}

Result<std::vector<int64_t>> Flattening::shape(const std::string &name, const std::string &what) {
  auto shape = import.shape(name);
  if (!shape)
    return Error{what + " '" + name + "' has no shape that is known when compiling"};
  return *shape;
}

bool Flattening::isExceeded() const {
  return copied > limits.inlinedNodes || bytes > mostBytes || passed / namesPerNode > limits.inlinedNodes;
}

Status Flattening::checkTrips(int64_t trips, const onnx::GraphProto &body) const {
  const int64_t left = limits.inlinedNodes - copied, each = body.node_size() + 1;
  if (trips <= left / each)
    return Success{};
  return Error{
      overLimit(std::to_string(trips) + " trips through a body of " + std::to_string(body.node_size()) + " nodes",
                limits.inlinedNodes, "inlined-nodes")};
}

Status Flattening::countPassed(const onnx::GraphProto &body, const std::vector<Bound> &inputs) {
  passed += 1 + body.output_size() + body.initializer_size();
  for (const Bound &input : inputs)
    passed += static_cast<int64_t>(input.names.size());
  if (passed / namesPerNode <= limits.inlinedNodes)
    return Success{};
  return Error{"control flow, unrolled as far as here, " +
               overLimit("more than " + std::to_string(passed - 1) + " values that go into bodies or come out",
                         namesPerNode * limits.inlinedNodes, "inlined-nodes")};
}

/// Nodes of bodies (`isAdded`) count against the limits, those of the file's own graph do not. Constants are indexed
/// and the import learns of the node at once: the next node of control flow may ask for its value or its shape.
Status Flattening::append(onnx::NodeProto node, bool isAdded) {
  if (isAdded) {
    ++copied;
    bytes += static_cast<int64_t>(node.ByteSizeLong());
    if (copied > limits.inlinedNodes)
      return Error{
          "control flow, unrolled as far as here, " +
          overLimit("more than " + std::to_string(copied - 1) + " nodes", limits.inlinedNodes, "inlined-nodes")};
    if (bytes > mostBytes)
      return Error{"control flow, unrolled as far as here, has nodes of " + std::to_string(bytes) +
                   " bytes, more than " + std::to_string(mostBytes) + "; export constants outside of them"};
  }
  onnx::NodeProto &added = *nodes.Add();
  added = std::move(node);
  if (Status indexed = file.indexConstant(added); !indexed)
    return indexed;
  import.node(added);
  return Success{};
}

/// Nodes of the main graph keep their names, by which flags and reports know tensors; those of bodies get fresh ones
/// for each time that the body is taken. A node with a `reason` stays and is refused when it is imported, if at all: a
/// loss may not need it.
Status Flattening::copy(const onnx::NodeProto &node, Scope &scope, std::string reason) {
  onnx::NodeProto plain = node;
  for (std::string &name : *plain.mutable_input()) {
    const Bound *bound = name.empty() ? nullptr : find(scope, name);
    if (bound && bound->kind == Bound::Tensor)
      name = bound->names[0];
    else if (bound && bound->kind == Bound::Nothing)
      name.clear();
    else if (!name.empty())
      name = fresh(name); // nothing makes that one, so that whoever reads it is refused
    if (bound && bound->kind == Bound::Sequence && reason.empty())
      reason = "reads a sequence where a tensor is needed";
  }
  if (depth > 0) {
    if (!plain.name().empty())
      plain.set_name(fresh(plain.name()));
    for (int i = 0; i < node.output_size(); ++i)
      if (!node.output(i).empty()) {
        plain.set_output(i, fresh(node.output(i)));
        scope.names[node.output(i)] = tensorBound(plain.output(i));
      }
  }
  if (!reason.empty())
    refused[firstOutput(plain)] = reason;
  return append(std::move(plain), depth > 0);
}

/// Takes the node apart, or copies it. Sequences and optional values are no tensors, so that an Identity of one hands
/// on its binding without a node.
Status Flattening::visit(const onnx::NodeProto &node, Scope &scope) {
  auto taker = isStandardOp(node) ? table().find(node.op_type()) : table().end();
  const bool aliases = isStandardOp(node) && node.op_type() == "Identity" && node.input_size() == 1;
  const Bound *same = aliases ? find(scope, node.input(0)) : nullptr;
  if (same && same->kind != Bound::Tensor && node.output_size() == 1) {
    scope.names[node.output(0)] = Bound(*same);
    return Success{};
  }
  if (taker == table().end())
    return copy(node, scope, {});
  Outputs outputs = taker->second(*this, Structure{node, scope});
  if (outputs && static_cast<int>(outputs->size()) < node.output_size())
    outputs = Error{"has " + std::to_string(node.output_size()) + " outputs where its body gives " +
                    std::to_string(outputs->size())};
  if (outputs) {
    for (int i = 0; i < node.output_size(); ++i)
      if (!node.output(i).empty())
        scope.names[node.output(i)] = std::move((*outputs)[i]);
    return Success{};
  }
  if (isExceeded() && depth > 0) // the outermost node is the one to name
    return outputs.takeError();
  return copy(node, scope, outputs.error());
}

/// Initializers of a body become the graph's once, however often the body is taken: all trips share a weight.
Status Flattening::bindInitializers(const onnx::GraphProto &body, Scope &scope) {
  auto [entry, first] = initializers.try_emplace(&body);
  if (first) {
    if (body.sparse_initializer_size() > 0)
      return Error{"its body has a sparse initializer, which is not supported"};
    for (const onnx::TensorProto &initializer : body.initializer()) {
      const std::string name = fresh(initializer.name());
      if (Status added = file.addInitializer(initializer, name); !added)
        return added;
      import.initializer(name);
      entry->second[initializer.name()] = tensorBound(name);
    }
  }
  scope.names = entry->second;
  return Success{};
}

/// The nodes of the body once more, with its inputs bound to values of the surroundings; gives what its outputs are
/// bound to. The body sees names of `outer`, as the standard has it.
Outputs Flattening::instantiate(const onnx::GraphProto &body, const std::vector<Bound> &inputs, Scope &outer) {
  if (body.input_size() != static_cast<int>(inputs.size()))
    return Error{"its body has " + std::to_string(body.input_size()) + " inputs for " + std::to_string(inputs.size()) +
                 " values"};
  if (Status counted = countPassed(body, inputs); !counted)
    return counted.takeError();
  Scope scope{&outer};
  ++depth;
  Status status = bindInitializers(body, scope);
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.names[body.input(static_cast<int>(i)).name()] = inputs[i];
  for (int i = 0; status && i < body.node_size(); ++i)
    status = visit(body.node(i), scope);
  --depth;
  if (!status)
    return status.takeError();
  std::vector<Bound> outputs;
  for (const auto &output : body.output()) {
    const Bound *bound = find(scope, output.name());
    if (!bound)
      return Error{"its body names the output '" + output.name() + "', which nothing makes"};
    outputs.push_back(*bound);
  }
  return outputs;
}

/// Outputs of the graph keep their names; others than the trained one that are no tensors go.
Status Flattening::bindOutput(const std::string &name, bool isTrained) {
  const Bound &bound = main.names[name];
  if (bound.kind != Bound::Tensor && isTrained)
    return Error{"output '" + name + "' is " + (bound.kind == Bound::Sequence ? "a sequence" : "an empty optional") +
                 "; what is trained must be a tensor: choose another by --output"};
  if (bound.kind != Bound::Tensor || bound.names[0] == name)
    return Success{};
  onnx::NodeProto node;
  node.set_op_type("Identity");
  node.set_name(name);
  node.add_input(bound.names[0]);
  node.add_output(name);
  return append(std::move(node), false);
}

/// Outputs are bound after all nodes, the trained ones first, as an error about these counts more.
Status Flattening::run(const std::vector<std::string> &trained) {
  takeNames();
  for (const onnx::NodeProto &node : file.model().graph().node())
    if (Status visited = visit(node, main); !visited)
      return visited;
  std::set<std::string> outputs(trained.begin(), trained.end());
  for (const std::string &output : trained)
    if (Status bound = bindOutput(output, /*isTrained=*/true); !bound)
      return bound;
  for (const auto &other : file.model().graph().output())
    if (outputs.insert(other.name()).second)
      if (Status bound = bindOutput(other.name(), /*isTrained=*/false); !bound)
        return bound;
  return file.replaceNodes(nodes);
}

} // namespace sluice
