// SPDX-License-Identifier: Apache-2.0
// One walk over the nodes, which are in topological order: random numbers, and what becomes of them alone.
#include "frontend/RandomDraws.h"

#include <algorithm>

namespace sluice {

RandomDraws::RandomDraws(const onnx::GraphProto &graph) {
  for (const onnx::TensorProto &initializer : graph.initializer())
    constants.insert(initializer.name());
  for (const onnx::NodeProto &node : graph.node()) {
    const std::string &type = node.op_type();
    const auto &inputs = node.input();
    const auto isDraw = [&](const std::string &name) { return draws.count(name) != 0; };
    const auto isKnown = [&](const std::string &name) { return isDraw(name) || constants.count(name); };
    const bool starts = type == "RandomUniform" || type == "RandomUniformLike" || type == "Bernoulli";
    // The second operand of CastLike is but a type, and of whatever has none of the draw's numbers in it.
    const auto last = type == "CastLike" && inputs.size() == 2 ? inputs.begin() + 1 : inputs.end();
    const bool goesOn = std::any_of(inputs.begin(), last, isDraw) && std::all_of(inputs.begin(), last, isKnown);
    const bool isNumber = type == "CastLike" && inputs.size() == 2 && constants.count(inputs[0]);
    if (node.output_size() == 1 && (starts || goesOn))
      draws[node.output(0)] = starts ? "" : meanOf(node);
    else if ((type == "Constant" || isNumber) && node.output_size() == 1)
      constants.insert(node.output(0));
  }
}

/// floor(p + u) is 1 with the probability p, which is its mean until it is divided by it.
std::string RandomDraws::meanOf(const onnx::NodeProto &node) const {
  const std::string &type = node.op_type();
  const bool isFirst = draws.count(node.input(0));
  if (type == "Add")
    return node.input(isFirst ? 1 : 0);
  return type == "Mul" || type == "Div" || !isFirst ? "" : draws.at(node.input(0));
}

const std::string &RandomDraws::mean(const onnx::NodeProto &product) const {
  return draws.at(product.input(1 - droppedInput(product)));
}

int RandomDraws::droppedInput(const onnx::NodeProto &node) const {
  if (node.op_type() != "Mul" || node.input_size() != 2 || (node.output_size() && draws.count(node.output(0))))
    return -1;
  for (int input : {0, 1})
    if (draws.count(node.input(1 - input)))
      return input;
  return -1;
}

} // namespace sluice
