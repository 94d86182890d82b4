// SPDX-License-Identifier: Apache-2.0
// One walk over the nodes, which are in topological order: uniform random numbers, and what becomes of them by
// constants alone until it multiplies an activation. An unscaled mask drops nothing: it is the model's own, as a masked
// autoencoder's, but for those that rounding down makes, whose mean takes their place.
#include "frontend/RandomDraws.h"

#include <algorithm>

namespace sluice {

static bool isComparison(const std::string &type) {
  return type == "Less" || type == "LessOrEqual" || type == "Greater" || type == "GreaterOrEqual";
}
static bool isCast(const std::string &type) { return type == "Cast" || type == "CastLike" || type == "Identity"; }
static bool isBetween0And1(const onnx::NodeProto &node) {
  return std::all_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto &a) {
    return (a.name() != "low" || a.f() == 0) && (a.name() != "high" || a.f() == 1);
  });
}

/// First the readers of each value, then the nodes in order, since a draw may go on only where nobody else reads it.
/// Outputs of the graph count as read by somebody else.
RandomDraws::RandomDraws(const onnx::GraphProto &graph) {
  for (const onnx::NodeProto &node : graph.node())
    for (int i = 0; i < node.input_size(); ++i) {
      if (node.op_type().rfind("Random", 0) == 0 || (node.op_type() == "CastLike" && i == 1))
        continue; // reads the shape or the type alone
      if (auto [known, first] = onlyReader.emplace(node.input(i), node.op_type()); !first)
        known->second.clear();
    }
  for (const onnx::ValueInfoProto &output : graph.output())
    onlyReader[output.name()].clear();
  for (const onnx::TensorProto &initializer : graph.initializer())
    constants.insert(initializer.name());
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.output_size() != 1 || start(node))
      continue;
    const std::string &type = node.op_type();
    const bool handsOn = type == "CastLike" || type == "Expand" || type == "ConstantOfShape";
    if (type == "Constant" || (handsOn && node.input_size() > 0 && constants.count(node.input(0))))
      constants.insert(node.output(0));
    else
      goOn(node);
  }
}

/// Whether the node draws what may become a mask, which is written down.
bool RandomDraws::start(const onnx::NodeProto &node) {
  const std::string &type = node.op_type();
  const auto reader = onlyReader.find(node.output(0));
  if (type == "Bernoulli" && node.input_size() == 1 && constants.count(node.input(0)))
    draws[node.output(0)] = {Stage::Mask, ""};
  else if ((type == "RandomUniform" || type == "RandomUniformLike") && isBetween0And1(node) &&
           reader != onlyReader.end() &&
           (isComparison(reader->second) || isCast(reader->second) || reader->second == "Add"))
    draws[node.output(0)] = {Stage::Uniform, ""};
  else
    return false;
  return true;
}

/// A node that reads a draw and, but for the second operand of CastLike, which is but a type, constants.
void RandomDraws::goOn(const onnx::NodeProto &node) {
  const std::string &type = node.op_type();
  const auto &inputs = node.input();
  const auto last = type == "CastLike" && inputs.size() == 2 ? inputs.begin() + 1 : inputs.end();
  const auto drawn = std::find_if(inputs.begin(), last, [&](const std::string &name) { return isDraw(name); });
  if (drawn == last || std::count_if(inputs.begin(), last, [&](const std::string &name) { return isDraw(name); }) > 1 ||
      !std::all_of(inputs.begin(), last,
                   [&](const std::string &name) { return isDraw(name) || constants.count(name); }))
    return;
  const Draw from = draws.at(*drawn);
  const bool masks = from.stage == Stage::Mask || from.stage == Stage::Dropping;
  Draw &to = draws[node.output(0)];
  if (isCast(type))
    to = from;
  else if (isComparison(type) && from.stage == Stage::Uniform)
    to = {Stage::Mask, ""};
  else if (type == "Add" && from.stage == Stage::Uniform)
    to = {Stage::Sum, inputs[drawn == inputs.begin() ? 1 : 0]};
  else if (type == "Floor" && from.stage == Stage::Sum)
    to = {Stage::Dropping, from.mean};
  else if ((type == "Mul" || (type == "Div" && drawn == inputs.begin())) && masks)
    to = {Stage::Dropping, ""};
  else
    draws.erase(node.output(0));
}

const std::string &RandomDraws::mean(const onnx::NodeProto &product) const {
  return draws.at(product.input(1 - droppedInput(product))).mean;
}

int RandomDraws::droppedInput(const onnx::NodeProto &node) const {
  if (node.op_type() != "Mul" || node.input_size() != 2 || (node.output_size() && isDraw(node.output(0))))
    return -1;
  for (int input : {0, 1})
    if (auto draw = draws.find(node.input(1 - input)); draw != draws.end() && draw->second.stage == Stage::Dropping)
      return input;
  return -1;
}

} // namespace sluice
