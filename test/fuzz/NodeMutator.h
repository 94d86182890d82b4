// SPDX-License-Identifier: Apache-2.0
// Changes of single nodes: operands, op types, attributes, new nodes and chains of them.
#pragma once

#include "test/fuzz/TensorMutator.h"

#include "onnx/defs/schema.h"

#include <set>

namespace sluice::fuzz {

/// Some op types come often: those with an importer are among ONNX's schemas as often as all others together.
inline const std::vector<std::string> &opTypes() {
  static const std::vector<std::string> all = [] {
    std::set<std::string> names;
    for (const onnx::OpSchema &schema : onnx::OpSchemaRegistry::get_all_schemas())
      if (schema.domain().empty())
        names.insert(schema.Name());
    return std::vector<std::string>(names.begin(), names.end());
  }();
  return all;
}

/// What the ops of networks look like: a letter an operand after the first. v: a float value of the graph or a small
/// constant, w: a constant with some rank, s: a shape, i: a few integers, x: any value.
struct Form {
  const char *type, *operands;
};
constexpr Form forms[] = {{"Relu", ""},
                          {"Sigmoid", ""},
                          {"Add", "v"},
                          {"Mul", "v"},
                          {"Sub", "v"},
                          {"Div", "v"},
                          {"MatMul", "w"},
                          {"Gemm", "ww"},
                          {"Conv", "ww"},
                          {"MaxPool", ""},
                          {"AveragePool", ""},
                          {"Concat", "x"},
                          {"Flatten", ""},
                          {"Reshape", "s"},
                          {"Transpose", ""},
                          {"Softmax", ""},
                          {"Slice", "iiii"},
                          {"Pad", "i"},
                          {"Expand", "s"},
                          {"Tile", "s"},
                          {"Gather", "i"},
                          {"GatherElements", "i"},
                          {"GatherND", "i"},
                          {"ReverseSequence", "i"},
                          {"ScatterND", "iw"},
                          {"ScatterElements", "iw"},
                          {"OneHot", "ii"},
                          {"Col2Im", "ss"},
                          {"Squeeze", "i"},
                          {"Unsqueeze", "i"},
                          {"ReduceMean", ""},
                          {"ReduceSum", "i"},
                          {"Split", ""},
                          {"Shape", ""},
                          {"Cast", ""},
                          {"Range", "xx"},
                          {"Resize", "-ws"},
                          {"Clip", "vv"},
                          {"Where", "xx"},
                          {"Equal", "v"},
                          {"Less", "v"},
                          {"And", "x"},
                          {"Not", ""},
                          {"Trilu", "i"},
                          {"Identity", ""},
                          {"Dropout", ""},
                          {"Sum", "vx"},
                          {"Max", "v"},
                          {"Exp", ""},
                          {"Pow", "v"},
                          {"Sqrt", ""},
                          {"Sin", ""},
                          {"Acosh", ""},
                          {"Floor", ""},
                          {"Mod", "v"},
                          {"TopK", "i"},
                          {"ArgMax", ""},
                          {"Hardmax", ""},
                          {"GridSample", "x"},
                          {"NegativeLogLikelihoodLoss", "x"},
                          {"Scatter", "xx"},
                          {"Tanh", ""},
                          {"Erf", ""},
                          {"LeakyRelu", ""},
                          {"LRN", ""},
                          {"Einsum", "x"},
                          {"Upsample", "w"},
                          {"ConvTranspose", "ww"},
                          {"GlobalAveragePool", ""},
                          {"BatchNormalization", "wwww"},
                          {"LayerNormalization", "ww"},
                          {"InstanceNormalization", "ww"},
                          {"GroupNormalization", "ww"},
                          {"ConstantOfShape", ""},
                          {"RMSNormalization", "w"},
                          {"LpNormalization", ""},
                          {"ReduceMax", "i"},
                          {"ReduceL2", "i"},
                          {"ReduceLogSumExp", "i"},
                          {"ReduceProd", ""},
                          {"LpPool", ""},
                          {"CumSum", "i"},
                          {"Trilu", "i"},
                          {"Min", "v"},
                          {"DepthToSpace", ""},
                          {"SpaceToDepth", ""},
                          {"Gelu", ""},
                          {"HardSwish", ""},
                          {"PRelu", "v"},
                          {"SoftmaxCrossEntropyLoss", "x"},
                          {"Neg", ""},
                          {"Abs", ""},
                          {"LogSoftmax", ""},
                          {"HardSigmoid", ""},
                          {"Elu", ""},
                          {"Softplus", ""},
                          {"Selu", ""},
                          {"Mean", "v"},
                          {"LSTM", "www"},
                          {"GRU", "www"},
                          {"RNN", "ww"}};

class NodeMutator : public TensorMutator {
protected:
  using TensorMutator::TensorMutator;

  void rewireInput() {
    int at = static_cast<int>(random.below(model.graph().node_size()));
    std::string name = anyName(at);
    NodeProto &node = *model.mutable_graph()->mutable_node(at);
    if (node.input_size() && !random.oneIn(8))
      node.set_input(static_cast<int>(random.below(node.input_size())), name);
    else
      node.add_input(name);
  }
  void changeOp() {
    anyNode().set_op_type(random.oneIn(2) ? std::string(random.pick(forms).type) : random.pick(opTypes()));
  }
  void dropNode() {
    if (model.graph().node_size() < 2)
      return insertNode();
    int at = static_cast<int>(random.below(model.graph().node_size()));
    std::string from = model.graph().node(at).input_size() ? model.graph().node(at).input(0) : "";
    std::string to = model.graph().node(at).output_size() ? model.graph().node(at).output(0) : "";
    model.mutable_graph()->mutable_node()->DeleteSubrange(at, 1);
    replaceReaders(to, from);
  }
  void replaceReaders(const std::string &name, const std::string &by, int firstNode = 0) {
    GraphProto &graph = *model.mutable_graph();
    for (int n = firstNode; n < graph.node_size(); ++n)
      for (std::string &input : *graph.mutable_node(n)->mutable_input())
        if (input == name)
          input = by;
    for (auto &output : *graph.mutable_output())
      if (output.name() == name)
        output.set_name(by);
  }

  void insertNodeAt(int at, const NodeProto &node) {
    GraphProto &graph = *model.mutable_graph();
    *graph.add_node() = node;
    for (int n = graph.node_size() - 1; n > at; --n)
      graph.mutable_node()->SwapElements(n, n - 1);
  }

  /// A new node after another one (or in front of all) whose readers read the new one.
  void insertNode() {
    const GraphProto &graph = model.graph();
    const Form &form = random.pick(forms);
    int at = static_cast<int>(random.below(graph.node_size() + 1));
    std::string from = at == 0                            ? (graph.input_size() ? graph.input(0).name() : "")
                       : graph.node(at - 1).output_size() ? graph.node(at - 1).output(0)
                                                          : "";
    NodeProto node;
    node.set_op_type(form.type);
    std::string name = freshName();
    node.set_name(random.oneIn(20) ? oddName() : name);
    node.add_output(random.oneIn(40) ? oddName() : name);
    node.add_input(from);
    for (const char *kind = form.operands; *kind; ++kind)
      node.add_input(operand(random.oneIn(12) ? 'x' : *kind, at));
    if (random.oneIn(3))
      setAttribute(node);
    replaceReaders(from, node.output(0), at);
    insertNodeAt(at, node);
  }
  std::string operand(char kind, int before) {
    if (kind == '-')
      return "";
    if (kind == 'x' || (kind == 'v' && random.oneIn(2)))
      return anyName(before);
    TensorProto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(random.oneIn(30) ? oddName() : freshName());
    if (kind == 's' || kind == 'i')
      makeIntegers(*tensor, kind == 's');
    else
      makeFloats(*tensor, kind == 'v' ? random.below(2) : random.below(5));
    return tensor->name();
  }
  /// A chain of copies of one node, short as a rule.
  void repeatNode() {
    GraphProto &graph = *model.mutable_graph();
    int at = static_cast<int>(random.below(graph.node_size()));
    if (graph.node(at).input_size() == 0 || graph.node(at).output_size() == 0)
      return;
    std::string name = graph.node(at).output(0), last = name;
    std::vector<NodeProto> copies;
    for (size_t k = random.oneIn(50) ? random.below(200) : 1 + random.below(4); k > 0; --k) {
      NodeProto copy = graph.node(at);
      copy.set_input(0, last);
      for (int i = 0; i < copy.output_size(); ++i)
        copy.set_output(i, freshName());
      last = copy.output(0);
      copies.push_back(copy);
    }
    replaceReaders(name, last, at + 1);
    for (const NodeProto &copy : copies)
      *graph.add_node() = copy;
    std::vector<NodeProto> all(graph.node().begin(), graph.node().end());
    std::rotate(all.begin() + at + 1, all.end() - static_cast<long>(copies.size()), all.end());
    graph.mutable_node()->Assign(all.begin(), all.end());
  }

  void setAttribute() { setAttribute(anyNode()); }
  void setAttribute(NodeProto &node) {
    const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(node.op_type());
    if (!schema || schema->attributes().empty())
      return;
    auto chosen = std::next(schema->attributes().begin(), static_cast<long>(random.below(schema->attributes().size())));
    AttributeProto *attribute = nullptr;
    for (AttributeProto &present : *node.mutable_attribute())
      if (present.name() == chosen->first)
        attribute = &present;
    if (!attribute)
      attribute = node.add_attribute();
    attribute->set_name(chosen->first);
    attribute->set_type(static_cast<AttributeProto::AttributeType>(chosen->second.type));
    fill(*attribute);
  }
  void fill(AttributeProto &attribute) {
    static const std::string words[] = {"SAME_UPPER",
                                        "SAME_LOWER",
                                        "VALID",
                                        "NOTSET",
                                        "constant",
                                        "reflect",
                                        "edge",
                                        "wrap",
                                        "linear",
                                        "nearest",
                                        "cubic",
                                        "half_pixel",
                                        "align_corners",
                                        "asymmetric",
                                        "tf_crop_and_resize",
                                        "floor",
                                        "round_prefer_ceil",
                                        "none",
                                        "mean",
                                        "sum",
                                        "ij,jk->ik",
                                        "...ij->...ji",
                                        "ii->i",
                                        "DCR",
                                        "CRD",
                                        "tanh",
                                        "",
                                        "\xff"};
    switch (attribute.type()) {
    case AttributeProto::INT:
      return attribute.set_i(random.oneIn(3) ? random.number() : static_cast<int64_t>(random.below(7)) - 2);
    case AttributeProto::FLOAT:
      return attribute.set_f(real());
    case AttributeProto::STRING:
      return attribute.set_s(random.pick(words));
    case AttributeProto::INTS: {
      if (random.oneIn(2))
        attribute.clear_ints();
      for (size_t count = random.oneIn(2) ? random.below(5) : random.oneIn(2) ? 2 : 4; count > 0; --count)
        attribute.add_ints(random.oneIn(4) ? random.number() : static_cast<int64_t>(random.below(4)));
      return;
    }
    case AttributeProto::FLOATS:
      for (size_t count = random.below(4); count > 0; --count)
        attribute.add_floats(real());
      return;
    case AttributeProto::STRINGS:
      attribute.add_strings(random.pick(words));
      return;
    case AttributeProto::TENSOR:
      return makeTensor(*attribute.mutable_t());
    case AttributeProto::GRAPH:
      *attribute.mutable_g() = model.graph();
      return;
    default:
      attribute.set_ref_attr_name(freshName());
    }
  }
};

} // namespace sluice::fuzz
