// SPDX-License-Identifier: Apache-2.0
// From the loss backwards through what is linear in each operand, see GraphReads.h. A weight of classes or terms
// (BCEWithLogitsLoss's pos_weight) multiplies a term there. A feature's scale does not: what it multiplies holds no
// logarithm, square or distance.
#include "frontend/GraphReads.h"

#include "frontend/HostTensor.h"
#include "onnx/onnx_pb.h"

#include <cmath>

namespace sluice {

/// Values that are looked at for one tensor.
constexpr size_t mostValues = 1000;

/// Nodes whose results are linear in each of their operands alone.
static bool isLinear(const onnx::NodeProto &node) {
  return isView(node) || isOp(node, {"Add", "Sub", "Sum", "Mean", "Neg", "Mul", "ReduceMean", "ReduceSum", "Slice",
                                     "Gather", "GatherElements", "Concat", "Expand"});
}

bool takesRoot(const onnx::NodeProto &power, const OnnxFile &file) {
  const FileTensor *exponent = power.input_size() == 2 ? file.tensor(power.input(1)) : nullptr;
  auto value = exponent ? HostTensor::from(*exponent) : std::nullopt;
  return value && value->size() == 1 && (value->number(0) < 0 || value->number(0) != std::floor(value->number(0)));
}

/// Backwards from the outputs: the loss is linear in what a linear node reads, if nobody else reads that; in a quotient
/// only in what is divided.
LossFactors::LossFactors(const OnnxGraph &graph, const GraphReads &reads) : reads(reads) {
  for (const GraphOutput &output : graph.outputs)
    linear.insert(output.name);
  for (auto entry = graph.nodes.rbegin(); entry != graph.nodes.rend(); ++entry) {
    const onnx::NodeProto &node = **entry;
    const bool divides = isOp(node, {"Div"});
    if (node.output_size() != 1 || !(isLinear(node) || divides) || !linear.count(node.output(0)))
      continue;
    for (int i = 0; i < (divides ? 1 : node.input_size()); ++i)
      if (reads.directReadsOf(node.input(i)).size() == 1)
        linear.insert(node.input(i));
  }
}

bool LossFactors::areRead(const std::vector<Read> &tensorReads) const {
  std::vector<Read> behind = tensorReads;
  if (behind.size() == 1 && isOp(*behind[0].first, {"Gather"}) && behind[0].second == 0) // a weight for each class
    behind = reads.readsOf(behind[0].first->output(0));
  if (behind.size() != 1 || !isOp(*behind[0].first, {"Mul"}) || behind[0].first->input_size() != 2)
    return false;
  const onnx::NodeProto &product = *behind[0].first;
  return linear.count(product.output(0)) && isLossTerm(product.input(1 - behind[0].second));
}

/// Searches from the value backwards through linear nodes and quotients, up to mostValues of them; what is not found in
/// these is no term, and this rule does not hold the tensor.
bool LossFactors::isLossTerm(const std::string &value) const {
  std::vector<const std::string *> open = {&value};
  std::set<std::string> seen;
  while (!open.empty() && seen.size() < mostValues) {
    const std::string &name = *open.back();
    open.pop_back();
    const onnx::NodeProto *node = seen.insert(name).second ? reads.producerOf(name) : nullptr;
    if (!node)
      continue;
    const bool isSquare = isOp(*node, {"Mul"}) && node->input_size() == 2 && node->input(0) == node->input(1);
    if (isSquare || isOp(*node, {"Log", "LogSoftmax", "Softplus", "Abs", "Pow", "SoftmaxCrossEntropyLoss",
                                 "NegativeLogLikelihoodLoss"}))
      return true;
    if (isLinear(*node) || isOp(*node, {"Div"}))
      for (const std::string &input : node->input())
        open.push_back(&input);
  }
  return false;
}

} // namespace sluice
