// SPDX-License-Identifier: Apache-2.0
// Changes of ONNX models that keep them protobuf messages: half of them know what ONNX means (rewire, retype, resize,
// wrap into functions), the other half change any field of any message by reflection.
#include "test/fuzz/ModelMutator.h"

#include "onnx/defs/schema.h"

#include <algorithm>
#include <set>

namespace sluice::fuzz {

using namespace google::protobuf;
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

namespace {

constexpr size_t mostElements = 4096;

size_t elementBytes(int type) {
  switch (type) {
  case TensorProto::FLOAT:
  case TensorProto::INT32:
  case TensorProto::UINT32:
    return 4;
  case TensorProto::INT64:
  case TensorProto::UINT64:
  case TensorProto::DOUBLE:
    return 8;
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
    return 2;
  default:
    return 1;
  }
}

/// Some op types come often: those with an importer are among ONNX's schemas as often as all others together.
const std::vector<std::string> &opTypes() {
  static const std::vector<std::string> all = [] {
    std::set<std::string> names;
    for (const onnx::OpSchema &schema : onnx::OpSchemaRegistry::get_all_schemas())
      if (schema.domain().empty())
        names.insert(schema.Name());
    return std::vector<std::string>(names.begin(), names.end());
  }();
  return all;
}

/// What the ops of networks look like: a letter an operand behind the first. v: a float value of the graph or a small
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
                          {"Identity", ""},
                          {"Dropout", ""},
                          {"Sum", "vx"},
                          {"Max", "v"},
                          {"Exp", ""},
                          {"Pow", "v"},
                          {"Sqrt", ""},
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
                          {"ReduceMax", "i"},
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
                          {"If", ""},
                          {"Loop", "xx"}};

class Mutator {
public:
  Mutator(ModelProto &model, const ModelProto &other, Random &random) : model(model), other(other), random(random) {}

  void once() {
    // What keeps most models whole stands there most often.
    static constexpr void (Mutator::*known[])() = {
        &Mutator::insertNode,     &Mutator::insertNode,     &Mutator::insertNode,     &Mutator::repeatNode,
        &Mutator::branch,         &Mutator::branch,         &Mutator::setAttribute,   &Mutator::resizeConstant,
        &Mutator::resizeConstant, &Mutator::changeConstant, &Mutator::changeConstant, &Mutator::changeConstant,
        &Mutator::rewireInput,    &Mutator::changeOp,       &Mutator::setAttribute,   &Mutator::setAttribute,
        &Mutator::setAttribute,   &Mutator::resizeTensor,   &Mutator::feedConstant,   &Mutator::resizeInput,
        &Mutator::makeParameter,  &Mutator::rename,         &Mutator::wrapInFunction, &Mutator::changeOpset,
        &Mutator::makeExternal,   &Mutator::dropNode};
    if (random.oneIn(8) || model.graph().node_size() == 0)
      changeAnyField();
    else
      (this->*random.pick(known))();
  }

private:
  // Names and nodes.
  /// The name of a value that a node may read: of an input, a constant, or an earlier node's output; rarely any name.
  std::string anyName(int before = 1 << 30) {
    const GraphProto &graph = model.graph();
    before = random.oneIn(30) ? graph.node_size() : std::min(before, graph.node_size());
    const size_t kind = random.below(8);
    if (kind == 0 && graph.input_size())
      return graph.input(static_cast<int>(random.below(graph.input_size()))).name();
    if (kind == 1 && graph.initializer_size())
      return graph.initializer(static_cast<int>(random.below(graph.initializer_size()))).name();
    if (random.oneIn(60))
      return oddName();
    for (int attempts = 0; before > 0 && attempts < 4; ++attempts)
      if (const NodeProto &node = graph.node(static_cast<int>(random.below(before))); node.output_size())
        return node.output(static_cast<int>(random.below(node.output_size())));
    return graph.input_size() ? graph.input(0).name() : "";
  }
  std::string oddName() {
    static const std::string names[] = {"",
                                        "a\nb",
                                        "*/ int x; /*",
                                        "\xff\xfe",
                                        "actions",
                                        "step",
                                        "main",
                                        "k",
                                        "\x1b[31m",
                                        "x\"",
                                        std::string(300, 'n'),
                                        "../x",
                                        "a\\",
                                        std::string("a\0b", 3),
                                        "int",
                                        "7",
                                        "weights.bin",
                                        "?\?/",
                                        "loss",
                                        "target",
                                        "input"};
    return random.pick(names);
  }
  std::string freshName() { return "fuzz" + std::to_string(random.next() % 100000); }
  NodeProto &anyNode() {
    return *model.mutable_graph()->mutable_node(static_cast<int>(random.below(model.graph().node_size())));
  }

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

  /// A new node behind another one (or in front of all) whose readers read the new one.
  void insertNode() {
    GraphProto &graph = *model.mutable_graph();
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
    *graph.add_node() = node;
    for (int n = graph.node_size() - 1; n > at; --n)
      graph.mutable_node()->SwapElements(n, n - 1);
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

  // Attributes.
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
  float real() {
    static constexpr float reals[] = {
        0.f, -0.f, 1.f, -1.f, 0.5f, 2.f, 1e-45f, 1e38f, -3e38f, 1e-5f, 0.99f, __builtin_inff(), __builtin_nanf("")};
    return random.pick(reals);
  }

  // Tensors.
  int64_t extent() { return random.oneIn(6) ? random.number() : 1 + static_cast<int64_t>(random.below(6)); }
  /// As many bytes as the shape says, where that is no more than a page or so; else what there was.
  void matchData(TensorProto &tensor) {
    size_t count = 1;
    for (int64_t extent : tensor.dims())
      count = extent < 0 || count > mostElements || static_cast<uint64_t>(extent) > mostElements
                  ? mostElements + 1
                  : count * static_cast<size_t>(extent);
    if (count > mostElements || tensor.data_type() == TensorProto::STRING)
      return;
    std::string data = tensor.raw_data();
    for (auto clear : {&TensorProto::clear_float_data, &TensorProto::clear_int64_data, &TensorProto::clear_int32_data,
                       &TensorProto::clear_double_data})
      (tensor.*clear)();
    data.resize(count * elementBytes(tensor.data_type()), random.oneIn(2) ? '\1' : '\0');
    tensor.set_raw_data(data);
  }
  void makeIntegers(TensorProto &tensor, bool shape) {
    size_t count = random.oneIn(12) ? random.below(12) : random.below(5);
    tensor.set_data_type(random.oneIn(20) ? TensorProto::INT32 : TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) {
      int64_t value =
          shape ? (i == 0 ? static_cast<int64_t>(random.below(3)) - 1 : 1) : static_cast<int64_t>(random.below(4)) - 1;
      if (random.oneIn(4))
        value = random.number();
      tensor.data_type() == TensorProto::INT64 ? tensor.add_int64_data(value)
                                               : tensor.add_int32_data(static_cast<int32_t>(value));
    }
  }
  void makeFloats(TensorProto &tensor, size_t rank) {
    tensor.set_data_type(TensorProto::FLOAT);
    for (; rank > 0; --rank)
      tensor.add_dims(1 + static_cast<int64_t>(random.below(4)));
    matchData(tensor);
  }
  void makeTensor(TensorProto &tensor) {
    static constexpr int types[] = {TensorProto::BOOL,    TensorProto::UINT8, TensorProto::DOUBLE,
                                    TensorProto::FLOAT16, TensorProto::INT32, TensorProto::STRING};
    tensor.Clear();
    if (random.oneIn(3))
      return makeIntegers(tensor, random.oneIn(2));
    if (!random.oneIn(6))
      return makeFloats(tensor, random.oneIn(10) ? random.below(12) : random.below(5));
    tensor.set_data_type(random.pick(types));
    for (size_t rank = random.below(12); rank > 0; --rank)
      tensor.add_dims(extent());
    matchData(tensor);
  }
  /// A new initializer, or the output of a new Constant node; its name.
  std::string constantTensor() {
    std::string name = random.oneIn(20) ? oddName() : freshName();
    if (random.oneIn(4)) {
      NodeProto node;
      node.set_op_type("Constant");
      node.add_output(name);
      AttributeProto *value = node.add_attribute();
      value->set_name("value");
      value->set_type(AttributeProto::TENSOR);
      makeTensor(*value->mutable_t());
      GraphProto &graph = *model.mutable_graph();
      *graph.add_node() = node;
      for (int n = graph.node_size() - 1; n > 0; --n)
        graph.mutable_node()->SwapElements(n, n - 1);
      return name;
    }
    TensorProto *tensor = model.mutable_graph()->add_initializer();
    makeTensor(*tensor);
    tensor->set_name(name);
    return name;
  }
  /// Another number in a constant of integers, which are shapes, axes and indices.
  void changeConstant() {
    std::vector<TensorProto *> found;
    for (TensorProto &tensor : *model.mutable_graph()->mutable_initializer())
      if (tensor.data_type() == TensorProto::INT64)
        found.push_back(&tensor);
    for (NodeProto &node : *model.mutable_graph()->mutable_node())
      for (AttributeProto &attribute : *node.mutable_attribute())
        if (attribute.has_t() && attribute.t().data_type() == TensorProto::INT64)
          found.push_back(attribute.mutable_t());
    if (found.empty())
      return setAttribute();
    TensorProto &tensor = *random.pick(found);
    int64_t value = random.oneIn(2) ? random.number() : static_cast<int64_t>(random.below(8)) - 3;
    if (tensor.int64_data_size())
      tensor.set_int64_data(static_cast<int>(random.below(tensor.int64_data_size())), value);
    else if (size_t count = tensor.raw_data().size() / 8)
      tensor.mutable_raw_data()->replace(8 * random.below(count), 8, reinterpret_cast<const char *>(&value), 8);
  }
  /// Another extent of a constant, with as many data.
  void resizeConstant() {
    GraphProto &graph = *model.mutable_graph();
    if (graph.initializer_size() == 0)
      return;
    TensorProto &tensor = *graph.mutable_initializer(static_cast<int>(random.below(graph.initializer_size())));
    switch (random.below(5)) {
    case 0:
      tensor.add_dims(1);
      break;
    case 1:
      tensor.add_dims(1 + static_cast<int64_t>(random.below(4)));
      std::rotate(tensor.mutable_dims()->begin(), tensor.mutable_dims()->end() - 1, tensor.mutable_dims()->end());
      break;
    case 2:
      if (tensor.dims_size())
        tensor.mutable_dims()->RemoveLast();
      break;
    default:
      if (tensor.dims_size())
        tensor.set_dims(static_cast<int>(random.below(tensor.dims_size())),
                        static_cast<int64_t>(random.oneIn(4) ? 0 : 1 + random.below(5)));
    }
    if (tensor.has_raw_data() || tensor.float_data_size())
      matchData(tensor);
  }
  void feedConstant() {
    std::string name = constantTensor();
    NodeProto &node = anyNode();
    if (node.input_size() > 1 && !random.oneIn(4))
      node.set_input(1 + static_cast<int>(random.below(node.input_size() - 1)), name);
    else
      node.add_input(name);
  }
  void resizeTensor() {
    GraphProto &graph = *model.mutable_graph();
    if (graph.initializer_size() == 0)
      return;
    TensorProto &tensor = *graph.mutable_initializer(static_cast<int>(random.below(graph.initializer_size())));
    if (random.oneIn(5))
      return makeTensorNamed(tensor);
    resize(*tensor.mutable_dims());
    if (random.oneIn(8))
      tensor.set_data_type(static_cast<int>(1 + random.below(23)));
    matchData(tensor);
  }
  void makeTensorNamed(TensorProto &tensor) {
    std::string name = tensor.name();
    makeTensor(tensor);
    tensor.set_name(name);
  }
  template <typename Dims> void resize(Dims &dims) {
    switch (random.below(4)) {
    case 0:
      dims.Add(extent());
      break;
    case 1:
      if (!dims.empty())
        dims.RemoveLast();
      break;
    case 2:
      if (dims.size() > 1)
        dims.SwapElements(0, static_cast<int>(random.below(dims.size())));
      break;
    default:
      if (!dims.empty())
        dims.Set(static_cast<int>(random.below(dims.size())), extent());
    }
  }
  void resizeInput() {
    GraphProto &graph = *model.mutable_graph();
    if (graph.input_size() == 0)
      return;
    auto &type =
        *graph.mutable_input(static_cast<int>(random.below(graph.input_size())))->mutable_type()->mutable_tensor_type();
    auto &shape = *type.mutable_shape();
    if (random.oneIn(8))
      type.set_elem_type(static_cast<int>(random.below(24)));
    else if (random.oneIn(4))
      for (size_t k = random.below(8); k > 0; --k)
        shape.add_dim()->set_dim_value(extent());
    else if (random.oneIn(4) && shape.dim_size())
      shape.mutable_dim()->RemoveLast();
    else if (shape.dim_size())
      shape.mutable_dim(static_cast<int>(random.below(shape.dim_size())))->set_dim_value(extent());
  }
  /// Inputs of networks are weights: a test's model with inputs alone has nothing to train.
  void makeParameter() {
    GraphProto &graph = *model.mutable_graph();
    if (graph.input_size() < 2)
      return insertNode();
    int at = static_cast<int>(random.below(graph.input_size()));
    const auto type = graph.input(at).type().tensor_type();
    TensorProto *tensor = graph.add_initializer();
    tensor->set_name(graph.input(at).name());
    tensor->set_data_type(type.elem_type());
    for (const auto &dim : type.shape().dim())
      tensor->add_dims(dim.dim_value());
    matchData(*tensor);
    if (!random.oneIn(8))
      graph.mutable_input()->DeleteSubrange(at, 1);
  }
  void makeExternal() {
    GraphProto &graph = *model.mutable_graph();
    if (graph.initializer_size() == 0)
      return;
    TensorProto &tensor = *graph.mutable_initializer(static_cast<int>(random.below(graph.initializer_size())));
    static const std::string places[] = {
        "model.onnx",          "", ".", "../x", "/etc/passwd", "weights.bin", "./model.onnx", "model.onnx/x",
        std::string("a\0b", 3)};
    tensor.set_data_location(TensorProto::EXTERNAL);
    tensor.clear_raw_data();
    for (const char *key : {"location", "offset", "length"}) {
      auto *entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(key[0] == 'l' && key[1] == 'o' ? random.pick(places) : std::to_string(random.number()));
    }
  }

  // The whole model.
  void rename() {
    std::string from = anyName(), to = random.oneIn(3) ? oddName() : anyName();
    GraphProto &graph = *model.mutable_graph();
    replaceReaders(from, to);
    for (NodeProto &node : *graph.mutable_node())
      for (std::string &output : *node.mutable_output())
        if (output == from)
          output = to;
    for (TensorProto &tensor : *graph.mutable_initializer())
      if (tensor.name() == from)
        tensor.set_name(to);
    for (auto &input : *graph.mutable_input())
      if (input.name() == from)
        input.set_name(to);
    if (random.oneIn(4))
      anyNode().set_name(oddName());
  }
  void changeOpset() {
    if (model.opset_import_size() == 0 || random.oneIn(8))
      model.add_opset_import()->set_domain(random.oneIn(2) ? "" : "ai.onnx.ml");
    model.mutable_opset_import(static_cast<int>(random.below(model.opset_import_size())))
        ->set_version(random.oneIn(8) ? random.number() : 7 + static_cast<int64_t>(random.below(18)));
  }
  /// A node becomes a call of a function that holds it, or calls of functions that call each other.
  void wrapInFunction() {
    NodeProto &node = anyNode();
    if (node.domain() == "fuzz" && random.oneIn(2))
      return;
    onnx::FunctionProto *function = model.add_functions();
    std::string name = random.oneIn(4) ? "F" : freshName();
    function->set_name(name);
    function->set_domain("fuzz");
    *function->add_node() = node;
    if (random.oneIn(4))
      *function->add_node() = anyNode();
    for (const std::string &input : node.input())
      if (!input.empty() &&
          std::find(function->input().begin(), function->input().end(), input) == function->input().end())
        function->add_input(input);
    for (const std::string &output : node.output())
      function->add_output(output);
    for (const auto &import : model.opset_import())
      *function->add_opset_import() = import;
    if (random.oneIn(6)) { // in circles
      function->mutable_node(0)->set_op_type(model.functions_size() > 1 && random.oneIn(2) ? model.functions(0).name()
                                                                                           : name);
      function->mutable_node(0)->set_domain("fuzz");
    }
    NodeProto call;
    call.set_op_type(name);
    call.set_domain("fuzz");
    call.set_name(node.name());
    for (const std::string &input : function->input())
      call.add_input(input);
    for (const std::string &output : function->output())
      call.add_output(output);
    node = call;
    for (const auto &import : model.opset_import())
      if (import.domain() == "fuzz")
        return;
    auto *import = model.add_opset_import();
    import->set_domain("fuzz");
    import->set_version(1);
  }
  /// A second reader of some value, joined again.
  void branch() {
    GraphProto &graph = *model.mutable_graph();
    NodeProto &node = *graph.add_node();
    static constexpr const char *joins[] = {"Add", "Mul", "Concat", "Sum", "Max", "MatMul", "Sub", "Div"};
    node.set_op_type(random.pick(joins));
    node.add_input(graph.output_size() ? graph.output(0).name() : anyName());
    node.add_input(anyName());
    node.add_output(freshName());
    if (node.op_type() == "Concat") {
      AttributeProto *axis = node.add_attribute();
      axis->set_name("axis");
      axis->set_type(AttributeProto::INT);
      axis->set_i(static_cast<int64_t>(random.below(5)) - 1);
    }
    if (graph.output_size())
      graph.mutable_output(0)->set_name(node.output(0));
  }

  void changeAnyField() { mutateAnyField(model, other, random); }

  ModelProto &model;
  const ModelProto &other;
  Random &random;
};

} // namespace

std::string mutateModel(const std::string &input, const std::string &otherInput, Random &random) {
  ModelProto model, other;
  if (!model.ParseFromString(input) || random.oneIn(400)) { // few inputs, for the parser itself
    return mutateText(input, otherInput, random);
  }
  other.ParseFromString(otherInput);
  // An open dimension is a refusal, unless the flags fix it.
  if (!random.oneIn(8))
    for (auto &input : *model.mutable_graph()->mutable_input())
      for (auto &dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (!dim.has_dim_value())
          dim.set_dim_value(2);
  Mutator mutator(model, other, random);
  do
    mutator.once();
  while (!random.oneIn(2));
  return model.SerializeAsString();
}

} // namespace sluice::fuzz
