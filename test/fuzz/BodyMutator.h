// SPDX-License-Identifier: Apache-2.0
// Changes that put nodes into bodies of control flow, and values into sequences and optionals.
#pragma once

#include "test/fuzz/NodeMutator.h"

namespace sluice::fuzz {

class BodyMutator : public NodeMutator {
protected:
  using NodeMutator::NodeMutator;

  /// A node becomes the body of an If, a Loop, a Scan or a SequenceMap, which gives its first output; bodies of bodies
  /// come of doing so again.
  void wrapInBody() {
    if (model.graph().node_size() == 0)
      return;
    const int at = static_cast<int>(random.below(model.graph().node_size()));
    NodeProto inner = model.graph().node(at), outer;
    if (inner.output_size() == 0 || inner.input_size() == 0)
      return;
    static constexpr const char *types[] = {"If", "If", "Loop", "Loop", "Scan", "SequenceMap"};
    const std::string type = random.pick(types), carried = inner.input(0);
    outer.set_op_type(type);
    outer.add_output(inner.output(0));
    // The same names inside and outside, at times: they hide each other.
    inner.set_output(0, random.oneIn(4) ? inner.output(0) : freshName());
    if (type == "If") {
      outer.add_input(constantOf(TensorProto::BOOL, random.below(2)));
      addBody(outer, "then_branch", inner, {}, 0);
      addBody(outer, "else_branch", inner, {}, 0);
    } else if (type == "Loop") {
      outer.add_input(random.oneIn(8) ? "" : constantOf(TensorProto::INT64, trips()));
      outer.add_input(random.oneIn(4) ? "" : constantOf(TensorProto::BOOL, 1));
      outer.add_input(carried);
      addBody(outer, "body", inner, {freshName(), freshName(), carried}, random.below(2));
      if (random.oneIn(3))
        outer.add_output(freshName());
    } else {
      outer.add_input(carried);
      addBody(outer, "body", inner, {carried}, 0);
      AttributeProto *scans = outer.add_attribute();
      scans->set_name("num_scan_inputs");
      scans->set_type(AttributeProto::INT);
      scans->set_i(static_cast<int64_t>(random.below(3)));
    }
    *model.mutable_graph()->mutable_node(at) = outer;
  }

  /// Control flow whose body costs nothing, however often it runs: it hands values on, counts, or gathers them, without
  /// end at times; a scan runs over an extent of any size.
  void addEmptyBody() {
    const int at = static_cast<int>(random.below(model.graph().node_size() + 1));
    const std::string value = anyName(at);
    NodeProto outer;
    const bool scans = random.oneIn(3);
    outer.set_op_type(scans ? "Scan" : "Loop");
    const size_t carried = 1 + random.below(2), gathered = random.below(3);
    const std::string turn = freshName(), go = freshName(), kept = freshName(), element = freshName();
    AttributeProto *attribute = outer.add_attribute();
    attribute->set_name("body");
    attribute->set_type(AttributeProto::GRAPH);
    GraphProto &body = *attribute->mutable_g();
    body.set_name(freshName());
    if (!scans) {
      outer.add_input(random.oneIn(4) ? "" : constantOf(TensorProto::INT64, hugeNumber()));
      outer.add_input(random.oneIn(3) ? "" : constantOf(TensorProto::BOOL, 1));
      body.add_input()->set_name(turn);
      body.add_input()->set_name(go);
      body.add_output()->set_name(random.oneIn(4) ? constantOf(TensorProto::BOOL, 1) : go);
    }
    for (size_t i = 0; i < carried; ++i) {
      outer.add_input(value);
      outer.add_output(freshName());
      const std::string name = kept + (i ? "b" : "");
      body.add_input()->set_name(name);
      body.add_output()->set_name(!scans && random.oneIn(4) ? turn : name);
    }
    if (scans) {
      outer.add_input(constantOfShape(at));
      body.add_input()->set_name(element);
      AttributeProto *count = outer.add_attribute();
      count->set_name("num_scan_inputs");
      count->set_type(AttributeProto::INT);
      count->set_i(1);
    }
    for (size_t i = 0; i < gathered; ++i) {
      outer.add_output(freshName());
      body.add_output()->set_name(scans && random.oneIn(2) ? element : kept);
    }
    const std::string result = outer.output(static_cast<int>(random.below(outer.output_size())));
    const int behind = scans ? at + 1 : at; // of the node that makes what is scanned
    insertNodeAt(behind, outer);
    if (random.oneIn(2))
      replaceReaders(value, result, behind + 1);
    else if (model.graph().output_size())
      model.mutable_graph()->mutable_output(0)->set_name(result);
  }

  /// A value goes through a sequence or an optional to those that read it.
  void throughSequence() {
    static constexpr const char *chains[][3] = {{"SequenceConstruct", "SequenceAt", ""},
                                                {"SequenceConstruct", "SequenceErase", "SequenceAt"},
                                                {"SequenceConstruct", "SequenceInsert", "SequenceAt"},
                                                {"SplitToSequence", "ConcatFromSequence", ""},
                                                {"SplitToSequence", "SequenceAt", ""},
                                                {"SequenceConstruct", "ConcatFromSequence", ""},
                                                {"Optional", "OptionalGetElement", ""},
                                                {"SequenceConstruct", "SequenceLength", ""}};
    const int at = static_cast<int>(random.below(model.graph().node_size() + 1));
    std::string value = anyName(at);
    const auto &chain = random.pick(chains);
    std::vector<NodeProto> nodes;
    const std::string from = value;
    for (const char *type : chain) {
      if (!*type)
        break;
      NodeProto &node = nodes.emplace_back();
      node.set_op_type(type);
      node.add_input(value);
      const std::string word = type;
      if (word == "SequenceInsert" || (word == "SequenceConstruct" && random.oneIn(2)))
        node.add_input(anyName(at));
      if (word == "SequenceAt" || (word != "SequenceConstruct" && word != "Optional" && random.oneIn(3)))
        node.add_input(constantOf(TensorProto::INT64, random.oneIn(4) ? random.number() : trips() % 3));
      if (random.oneIn(2))
        setAttribute(node);
      node.add_output(value = freshName());
    }
    replaceReaders(from, value, at);
    for (size_t i = 0; i < nodes.size(); ++i)
      insertNodeAt(at + static_cast<int>(i), nodes[i]);
  }

private:
  int64_t hugeNumber() {
    static constexpr int64_t huge[] = {0, 3, 10'000'000, int64_t(1) << 31, int64_t(1) << 62, INT64_MAX, INT64_MIN};
    return random.pick(huge);
  }
  /// The output of a new node at `at`, whose first extent may be huge.
  std::string constantOfShape(int at) {
    NodeProto node;
    node.set_op_type("ConstantOfShape");
    node.add_input(constantOf(TensorProto::INT64, hugeNumber()));
    model.mutable_graph()->mutable_initializer(model.graph().initializer_size() - 1)->add_dims(1);
    node.add_output(freshName());
    insertNodeAt(at, node);
    return node.output(0);
  }
  int64_t trips() { return random.oneIn(6) ? random.number() : static_cast<int64_t>(random.below(5)); }

  std::string constantOf(int32_t type, int64_t number) {
    TensorProto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(freshName());
    tensor->set_data_type(type);
    tensor->set_raw_data(type == TensorProto::BOOL ? std::string(1, static_cast<char>(number))
                                                   : std::string(reinterpret_cast<const char *>(&number), 8));
    return tensor->name();
  }

  /// A body with the node alone; of a loop it hands its condition on, or compares, and keeps a value at times.
  void addBody(NodeProto &outer, const char *name, const NodeProto &inner, const std::vector<std::string> &inputs,
               size_t kept) {
    AttributeProto *attribute = outer.add_attribute();
    attribute->set_name(name);
    attribute->set_type(AttributeProto::GRAPH);
    GraphProto &body = *attribute->mutable_g();
    body.set_name(freshName());
    for (const std::string &input : inputs)
      body.add_input()->set_name(input);
    if (outer.op_type() == "Loop") {
      NodeProto &condition = *body.add_node();
      condition.set_op_type(random.oneIn(4) ? "Not" : "Identity");
      condition.add_input(inputs[1]);
      condition.add_output(freshName());
      body.add_output()->set_name(condition.output(0));
    }
    *body.add_node() = inner;
    body.add_output()->set_name(random.oneIn(20) ? freshName() : inner.output(0));
    for (; kept > 0; --kept)
      body.add_output()->set_name(inner.output(0));
  }
};

} // namespace sluice::fuzz
