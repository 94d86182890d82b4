// SPDX-License-Identifier: Apache-2.0
// What all changes of ONNX models begin with: names of values, and tensors whose data fit their shapes as long as
// nothing else is wanted.
#pragma once

#include "test/fuzz/Target.h"

#include "onnx/onnx_pb.h"

#include <algorithm>

namespace sluice::fuzz {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

constexpr size_t mostElements = 4096;

inline size_t elementBytes(int type) {
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

class TensorMutator {
protected:
  TensorMutator(ModelProto &model, Random &random) : model(model), random(random) {}

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

  float real() {
    static constexpr float reals[] = {
        0.f, -0.f, 1.f, -1.f, 0.5f, 2.f, 1e-45f, 1e38f, -3e38f, 1e-5f, 0.99f, __builtin_inff(), __builtin_nanf("")};
    return random.pick(reals);
  }
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
  ModelProto &model;
  Random &random;
};

} // namespace sluice::fuzz
