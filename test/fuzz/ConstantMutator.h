// SPDX-License-Identifier: Apache-2.0
// Changes of what a model holds and is given: constants, parameters, external data, and the shapes of inputs.
#pragma once

#include "test/fuzz/BodyMutator.h"

namespace sluice::fuzz {

class ConstantMutator : public BodyMutator {
protected:
  using BodyMutator::BodyMutator;

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
      insertNodeAt(0, node);
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

  /// Many tensors over the same bytes of one file, which a node reads one by one: a small model of a large sum.
  void shareExternal() {
    static constexpr int counts[] = {2, 16, 256, 4096};
    static constexpr int types[] = {TensorProto::FLOAT16, TensorProto::BFLOAT16, TensorProto::DOUBLE,
                                    TensorProto::FLOAT, TensorProto::INT64};
    const int count = random.pick(counts), type = random.pick(types);
    const size_t bytes = random.oneIn(2) ? sharedBytes : sharedBytes / 64;
    NodeProto sum;
    sum.set_op_type(random.oneIn(2) ? "Sum" : "Concat");
    sum.add_output(freshName());
    if (sum.op_type() == "Concat") {
      AttributeProto *axis = sum.add_attribute();
      axis->set_name("axis");
      axis->set_type(AttributeProto::INT);
    }
    for (int i = 0; i < count; ++i) {
      TensorProto &tensor = *model.mutable_graph()->add_initializer();
      tensor.set_name(sum.output(0) + "_" + std::to_string(i));
      tensor.set_data_type(type);
      tensor.add_dims(static_cast<int64_t>(bytes / elementBytes(type)));
      tensor.set_data_location(TensorProto::EXTERNAL);
      auto *entry = tensor.add_external_data();
      entry->set_key("location");
      entry->set_value("weights.bin");
      sum.add_input(tensor.name());
    }
    insertNodeAt(0, sum);
    if (GraphProto &graph = *model.mutable_graph(); graph.output_size() && random.oneIn(2))
      graph.mutable_output(0)->set_name(sum.output(0));
  }
  /// A huge extent of an input, or of what a node makes of a shape.
  void stretch() {
    static constexpr int64_t extents[] = {1 << 20, int64_t(1) << 31, int64_t(1) << 40, INT64_MAX};
    GraphProto &graph = *model.mutable_graph();
    if (graph.input_size() == 0 || random.oneIn(2))
      return changeConstant();
    auto &shape = *graph.mutable_input(static_cast<int>(random.below(graph.input_size())))
                       ->mutable_type()
                       ->mutable_tensor_type()
                       ->mutable_shape();
    if (shape.dim_size())
      shape.mutable_dim(static_cast<int>(random.below(shape.dim_size())))->set_dim_value(random.pick(extents));
  }
};

} // namespace sluice::fuzz
