// SPDX-License-Identifier: Apache-2.0
// Losses that models bring along (--loss=none): ONNX's own cross-entropy ops with mean reduction.
#include "frontend/NodeImport.h"

using namespace mlir;

namespace sluice {
namespace {

LogicalResult checkLoss(NodeImport &node, Value labels) {
  if (node.attributes.text("reduction", "mean") != "mean")
    return node.error("reduction '" + node.attributes.text("reduction", "mean") + "' is not supported; use mean");
  if (node.has(2))
    return node.error("class weights are not supported");
  // Negative ids, PyTorch's default, cannot occur: targets are range-checked when they are read.
  if (node.attributes.integer("ignore_index", -1) >= 0)
    return node.error("ignore_index " + std::to_string(node.attributes.integer("ignore_index", -1)) +
                      " is not supported");
  if (!typeOf(labels).getElementType().isInteger(64))
    return node.error("labels must be int64");
  // Only what data files bring is range-checked, and kernels index with labels.
  while (auto view = labels.getDefiningOp<train::ReshapeOp>())
    labels = view.getX();
  if (!isa<BlockArgument>(labels))
    return node.error("labels must be an input of the model");
  return success();
}

LogicalResult importCrossEntropy(NodeImport &node) {
  Value logits = node.tensor(0), labels = node.tensor(1);
  if (!logits || !labels || failed(checkLoss(node, labels)))
    return failure();
  auto op = node.make<train::SoftmaxCrossEntropyOp>(logits, labels);
  return op ? node.result(op) : failure();
}

/// NLL of LogSoftmax over the classes is cross-entropy.
LogicalResult importNegativeLogLikelihood(NodeImport &node) {
  Value scores = node.tensor(0), labels = node.tensor(1);
  if (!scores || !labels || failed(checkLoss(node, labels)))
    return failure();
  auto softmax = scores.getDefiningOp<train::SoftmaxOp>();
  if (!softmax || !softmax.getLogarithm() || softmax.getAxis() != 1)
    return node.error("is supported only on the LogSoftmax over dimension 1");
  auto op = node.make<train::SoftmaxCrossEntropyOp>(softmax.getX(), labels);
  return op ? node.result(op) : failure();
}

} // namespace

void addLosses(NodeImporters &table) {
  table["SoftmaxCrossEntropyLoss"] = importCrossEntropy;
  table["NegativeLogLikelihoodLoss"] = importNegativeLogLikelihood;
}

} // namespace sluice
