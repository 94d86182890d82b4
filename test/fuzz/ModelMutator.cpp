// SPDX-License-Identifier: Apache-2.0
// Changes of ONNX models that keep them protobuf messages: most of them know what ONNX means (rewire, retype, resize,
// wrap into functions), the others change any field of any message by reflection.
#include "test/fuzz/ModelMutator.h"
#include "test/fuzz/ConstantMutator.h"

namespace sluice::fuzz {

namespace {

class Mutator : ConstantMutator {
public:
  Mutator(ModelProto &model, const ModelProto &other, Random &random) : ConstantMutator(model, random), other(other) {}

  void once() {
    // What keeps most models whole stands there most often.
    static constexpr void (Mutator::*known[])() = {
        &Mutator::insertNode,     &Mutator::insertNode,     &Mutator::insertNode,     &Mutator::repeatNode,
        &Mutator::branch,         &Mutator::branch,         &Mutator::setAttribute,   &Mutator::resizeConstant,
        &Mutator::resizeConstant, &Mutator::changeConstant, &Mutator::changeConstant, &Mutator::changeConstant,
        &Mutator::rewireInput,    &Mutator::changeOp,       &Mutator::setAttribute,   &Mutator::setAttribute,
        &Mutator::setAttribute,   &Mutator::resizeTensor,   &Mutator::feedConstant,   &Mutator::resizeInput,
        &Mutator::makeParameter,  &Mutator::rename,         &Mutator::wrapInFunction, &Mutator::changeOpset,
        &Mutator::makeExternal,   &Mutator::dropNode,       &Mutator::wrapInBody,     &Mutator::throughSequence,
        &Mutator::shareExternal,  &Mutator::addEmptyBody,   &Mutator::stretch};
    if (random.oneIn(8) || model.graph().node_size() == 0)
      changeAnyField();
    else
      (this->*random.pick(known))();
  }

private:
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

  const ModelProto &other;
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
