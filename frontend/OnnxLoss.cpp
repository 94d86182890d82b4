// SPDX-License-Identifier: Apache-2.0
// Losses that models bring along (--loss=none): ONNX's cross-entropies. A mean without class weights is one op; others
// are compositions around a mask of the classes that the labels name.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

using train::Comparison;

/// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss. One op computes the mean cross-entropy of logits without
/// weights; all else is composed of a mask [N,K,...] of the labels' classes.
struct LossNode {
  NodeImport &node;
  Value scores; ///< [N,K,...]: logits, or the logarithms of probabilities
  std::string reduction;
  std::optional<int64_t> ignored;
  int64_t classes;

  /// The labels' classes are checked where data bring them; kernels index with labels.
  bool ignoresClass() const { return ignored && *ignored >= 0 && *ignored < classes; }

  /// What the mean cross-entropy of `logits` is, as one op; null after an error.
  Value mean(Value logits) const {
    Value labels = node.integerData(1);
    if (!labels) {
      Value numbers = node.tensor(1);
      labels = numbers ? node.idsOf(numbers, classes, "labels") : Value();
      if (labels)
        node.boundIds(numbers, classes, ignored);
    }
    IntegerAttr index = ignored ? node.builder().getI64IntegerAttr(*ignored) : IntegerAttr();
    auto op = labels ? node.make<train::SoftmaxCrossEntropyOp>(logits, labels, index, IntegerAttr(), IntegerAttr())
                     : train::SoftmaxCrossEntropyOp();
    return op ? op.getLoss() : Value();
  }

  /// The scores' shape, but 1 for the classes.
  SmallVector<int64_t> single() const {
    SmallVector<int64_t> shape(shapeOf(scores));
    shape[1] = 1;
    return shape;
  }

  /// 1 where a label names the class, [N,K,...]; labels that are ignored name none.
  Value mask() const {
    Value labels = node.tensor(1);
    auto numbers = HostTensor::zeros({1, classes}, /*integral=*/false);
    if (!labels || !numbers)
      return {};
    node.boundIds(labels, classes, ignored);
    for (int64_t k = 0; k < classes; ++k)
      numbers->floats[k] = static_cast<double>(k == ignored ? -1 : k);
    numbers->shape.resize(shapeOf(scores).size(), 1);
    Value named = node.table(std::move(*numbers), "classes");
    return compared(node, node.reshape(labels, single()), named, Comparison::Equal);
  }

  /// Weights of the labels, as the mask's sum over classes; 1 and 0 without weights of classes.
  Value weights(Value mask) const {
    if (!node.has(2))
      return summed(node, mask, single());
    SmallVector<int64_t> shape(shapeOf(scores).size(), 1);
    shape[1] = classes;
    const HostTensor *known = node.known(2); // a constant is no parameter
    Value given = known ? node.table(*known, "class-weights") : node.tensor(2), own = node.reshape(given, shape);
    return summed(node, binary<train::MulOp>(node, mask, own), single());
  }

  /// A sum of weights to divide by. Where no label counts it is 0 as the loss is, which then stays 0.
  Value orOne(Value sum) const {
    return binary<train::AddOp>(node, sum, compared(node, sum, node.scalar(0, "zero"), Comparison::Equal));
  }

  /// Picks by the mask instead of a product with it: log-probabilities may be -inf, and 0 times that is NaN.
  LogicalResult composed() const {
    Value named = mask(), zero = named ? node.scalar(0, "zero") : Value();
    Value loss = summed(node, selected(node, named, scores, zero), single(), -1);
    Value weight = node.has(2) || reduction == "mean" ? weights(named) : Value();
    if (node.has(2))
      loss = binary<train::MulOp>(node, loss, weight);
    SmallVector<int64_t> shape = single();
    shape.erase(shape.begin() + 1);
    if (reduction == "none")
      return node.result(node.reshape(loss, shape));
    const SmallVector<int64_t> one(single().size(), 1);
    loss = summed(node, loss, one);
    if (reduction == "mean")
      loss = binary<train::DivOp>(node, loss, orOne(summed(node, weight, one)));
    return node.result(node.reshape(loss, {}));
  }
};

/// The node's operands and attributes; `scores` is null after an error.
LossNode readLoss(NodeImport &node) {
  LossNode loss{node, node.tensor(0), node.attributes.text("reduction", "mean"), {}, 1};
  if (node.attributes.has("ignore_index"))
    loss.ignored = node.attributes.integer("ignore_index", 0);
  const std::string shape = loss.scores ? shapeText(shapeOf(loss.scores).vec()) : "";
  std::string why;
  if (loss.reduction != "mean" && loss.reduction != "sum" && loss.reduction != "none")
    why = "reduction '" + loss.reduction + "' is none of none, sum and mean";
  else if (!node.isIntegral(1))
    why = "labels must be integers: an input of the model, or computed from one";
  else if (loss.scores && shapeOf(loss.scores).size() < 2)
    why = "needs scores [batch, classes, ...], has " + shape;
  if (!why.empty() || !loss.scores) {
    if (loss.scores)
      (void)node.error(why);
    loss.scores = {};
    return loss;
  }
  loss.classes = shapeOf(loss.scores)[1];
  const HostTensor *labels = node.known(1);
  for (int64_t label : labels && labels->integral ? labels->ints : std::vector<int64_t>())
    if ((label < 0 || label >= loss.classes) && label != loss.ignored) {
      (void)node.error("label " + std::to_string(label) + " is none of the " + std::to_string(loss.classes) +
                       " classes");
      loss.scores = {};
    }
  return loss;
}

Value logarithms(NodeImport &node, Value logits) {
  auto op = logits ? node.make<train::SoftmaxOp>(logits, uint64_t{1}, true) : train::SoftmaxOp();
  return op ? op.getY() : Value();
}

LogicalResult importCrossEntropy(NodeImport &node) {
  LossNode loss = readLoss(node);
  if (!loss.scores)
    return failure();
  const bool plain = loss.reduction == "mean" && !node.has(2) && !loss.ignoresClass();
  Value logits = loss.scores;
  if (!plain || node.used(1))
    loss.scores = logarithms(node, logits);
  if (!loss.scores || (node.used(1) && failed(node.result(loss.scores, 1))))
    return failure();
  return plain ? node.result(loss.mean(logits)) : loss.composed();
}

/// The mean over a LogSoftmax of the classes is a cross-entropy.
LogicalResult importNegativeLogLikelihood(NodeImport &node) {
  LossNode loss = readLoss(node);
  if (!loss.scores)
    return failure();
  auto softmax = loss.scores.getDefiningOp<train::SoftmaxOp>();
  const bool plain = loss.reduction == "mean" && !node.has(2) && !loss.ignoresClass() && softmax &&
                     softmax.getLogarithm() && softmax.getAxis() == 1;
  return plain ? node.result(loss.mean(softmax.getX())) : loss.composed();
}

} // namespace

void addLosses(NodeImporters &table) {
  table["SoftmaxCrossEntropyLoss"] = importCrossEntropy;
  table["NegativeLogLikelihoodLoss"] = importNegativeLogLikelihood;
}

} // namespace sluice
