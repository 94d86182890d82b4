// SPDX-License-Identifier: Apache-2.0
// Losses that models bring along (--loss=none): ONNX's own cross-entropy ops with mean reduction.
#include "frontend/NodeImport.h"

using namespace mlir;

namespace sluice {
namespace {

LogicalResult checkLoss(NodeImport &node, Value logits, Value labels) {
  // Only what data files bring is range-checked, and kernels index with labels.
  if (!labels)
    return node.error("labels must be an input of the model, of integers");
  if (node.attributes.text("reduction", "mean") != "mean")
    return node.error("reduction '" + node.attributes.text("reduction", "mean") + "' is not supported; use mean");
  if (node.has(2))
    return node.error("class weights are not supported");
  if (shapeOf(logits).size() < 2)
    return node.error("needs scores [batch, classes, ...], has " + shapeText(shapeOf(logits).vec()));
  const int64_t classes = shapeOf(logits)[1], ignored = node.attributes.integer("ignore_index", -1);
  if (ignored >= 0 && ignored < classes)
    return node.error("ignore_index " + std::to_string(ignored) + " is one of the " + std::to_string(classes) +
                      " classes; only others are supported");
  return success();
}

/// The labels to leave out, none where the model does not say.
IntegerAttr ignoreIndexOf(NodeImport &node) {
  return node.attributes.has("ignore_index")
             ? node.builder().getI64IntegerAttr(node.attributes.integer("ignore_index", 0))
             : IntegerAttr();
}

LogicalResult importCrossEntropy(NodeImport &node) {
  Value logits = node.tensor(0), labels = node.integerData(1);
  if (!logits || failed(checkLoss(node, logits, labels)))
    return failure();
  auto op = node.make<train::SoftmaxCrossEntropyOp>(logits, labels, ignoreIndexOf(node));
  return op ? node.result(op) : failure();
}

/// NLL of LogSoftmax over the classes is cross-entropy.
LogicalResult importNegativeLogLikelihood(NodeImport &node) {
  Value scores = node.tensor(0), labels = node.integerData(1);
  if (!scores || failed(checkLoss(node, scores, labels)))
    return failure();
  auto softmax = scores.getDefiningOp<train::SoftmaxOp>();
  if (!softmax || !softmax.getLogarithm() || softmax.getAxis() != 1)
    return node.error("is supported only on the LogSoftmax over dimension 1");
  auto op = node.make<train::SoftmaxCrossEntropyOp>(softmax.getX(), labels, ignoreIndexOf(node));
  return op ? node.result(op) : failure();
}

} // namespace

void addLosses(NodeImporters &table) {
  table["SoftmaxCrossEntropyLoss"] = importCrossEntropy;
  table["NegativeLogLikelihoodLoss"] = importNegativeLogLikelihood;
}

} // namespace sluice
