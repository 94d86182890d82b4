// SPDX-License-Identifier: Apache-2.0
// BatchNormalization, LayerNormalization, LRN and Dropout.
#include "frontend/Compositions.h"
#include <cmath>

using namespace mlir;

namespace sluice {
namespace {

/// x [N,C,d...] as an image: all dimensions but the channels count alike. Lines and volumes stay as they are where
/// `keeps` is set.
Value channelImage(NodeImport &node, Value x, bool keeps) {
  auto shape = shapeOf(x);
  if (shape.size() < 2) {
    (void)node.error("needs a channel dimension, has an input of shape " + shapeText(shape.vec()));
    return {};
  }
  int64_t height = shape.size() > 2 ? shape[2] : 1, width = 1;
  for (int64_t extent : shape.drop_front(std::min<size_t>(3, shape.size())))
    width *= extent;
  return shape.size() == 4 || (keeps && train::isImage(x.getType()))
             ? x
             : node.reshape(x, {shape[0], shape[1], height, width});
}

/// Whether an input is a value of the step, known to be one: what a refused node would make may be anything.
bool isComputed(NodeImport &node, int input) {
  const std::string name = node.has(input) ? node.proto().input(input) : "";
  return node.shared().values.count(name) && !node.shared().assumed.contains(name);
}

/// The operands of one BatchNormalization; x as [N,C,...], vectors [C].
struct BatchNorm {
  Value x, scale, bias;
  FlatSymbolRefAttr mean, variance; ///< null when the graph computes them
  double epsilon;
};

/// Training: the batch's own statistics, which the running ones take in.
Value withBatchStatistics(NodeImport &node, const BatchNorm &norm) {
  // Computed statistics are a weight's, which all ranks have.
  const auto ranks = static_cast<uint64_t>(norm.mean ? std::max(1, node.spec().normRanks) : 1);
  auto op = node.make<train::BatchNormOp>(norm.x, norm.scale, norm.bias, node.f32(norm.epsilon), ranks);
  if (!op)
    return {};
  // ONNX weighs the old value, PyTorch (and this dialect) the new one. 0.9 in the file means 0.1, not 1 - float32(0.9).
  float kept = node.attributes.number("momentum", 0.9f);
  double decimal = std::round(kept * 1e6) / 1e6;
  double momentum = 1.0 - (static_cast<float>(decimal) == kept ? decimal : kept);
  if (!norm.mean) // computed ones: nothing takes in the batch's
    return op.getY();
  const int64_t channels = shapeOf(norm.x)[1];
  const Value mean = node.read(norm.mean, typeOf(norm.scale)), variance = node.read(norm.variance, typeOf(norm.scale));
  auto update = train::UpdateStatisticsOp::create(node.builder(), node.loc(), op.getMean(), op.getRstd(), mean,
                                                  variance, node.f32(momentum), node.f32(norm.epsilon),
                                                  static_cast<uint64_t>(typeOf(norm.x).getNumElements() / channels));
  node.changed(norm.mean, update.getNewMean());
  node.changed(norm.variance, update.getNewVar());
  return op.getY();
}

/// Mean and variance as variables; failure after an error.
LogicalResult readStatistics(NodeImport &node, BatchNorm &norm) {
  norm.mean = node.state(3, Use::Mean);
  norm.variance = node.state(4, Use::Variance);
  if (!norm.mean || !norm.variance)
    return failure();
  if (norm.mean == norm.variance)
    return node.error("has the tensor '" + node.source(3)->name +
                      "' both as its mean and as its variance, which a step would overwrite one by the other");
  int64_t channels = shapeOf(norm.x)[1];
  for (int state : {3, 4})
    if (const std::vector<int64_t> &shape = node.source(state)->shape;
        ArrayRef<int64_t>(shape) != ArrayRef<int64_t>{channels})
      return node.error("has " + std::to_string(channels) + " channels but running statistics of shape " +
                        shapeText(shape));
  return success();
}

/// Statistics that the graph computes, from a weight that is standardized as a rule: x's own in a step where the node
/// says training, even under --batch-norm=frozen; else (x - mean) / sqrt(variance + epsilon) * scale + bias.
Value withComputedStatistics(NodeImport &node, const BatchNorm &norm) {
  if (node.training() && node.attributes.integer("training_mode", 0))
    return withBatchStatistics(node, norm);
  const int64_t channels = shapeOf(norm.x)[1];
  Value mean = node.tensor(3), variance = node.tensor(4);
  for (Value vector : {mean, variance})
    if (vector && shapeOf(vector) != ArrayRef<int64_t>{channels}) {
      (void)node.error("has " + std::to_string(channels) + " channels but running statistics of shape " +
                       shapeText(shapeOf(vector).vec()));
      return {};
    }
  SmallVector<int64_t> behindBatch(shapeOf(norm.x).size() - 1, 1);
  behindBatch[0] = channels;
  auto column = [&](Value vector) { return node.reshape(vector, behindBatch); };
  Value spread = unary<train::SqrtOp>(node, binary<train::AddOp>(node, variance, node.scalar(norm.epsilon, "epsilon")));
  Value scale = binary<train::DivOp>(node, norm.scale, spread);
  Value centred = binary<train::SubOp>(node, norm.x, column(mean)), bias = column(norm.bias);
  return binary<train::AddOp>(node, binary<train::MulOp>(node, centred, column(scale)), bias);
}

/// Statistics that nodes compute are operands like others; those of the file are state. @step takes those of the batch
/// and moves the state where the node is in OnnxGraph::batchNorms; elsewhere, and in @evaluate, the state itself
/// normalizes.
LogicalResult importBatchNorm(NodeImport &node) {
  Value x = node.tensor(0);
  BatchNorm norm;
  norm.x = x ? channelImage(node, x, /*keeps=*/true) : Value();
  norm.scale = node.tensor(1, {Use::Scale});
  norm.bias = node.tensor(2, {Use::Bias});
  norm.epsilon = node.attributes.number("epsilon", 1e-5f);
  if (!norm.x || !norm.scale || !norm.bias)
    return failure();
  if (node.attributes.integer("spatial", 1) != 1)
    return node.error("spatial=0 (statistics per position) is not supported");
  int64_t channels = shapeOf(norm.x)[1];
  for (Value vector : {norm.scale, norm.bias})
    if (shapeOf(vector) != ArrayRef<int64_t>{channels})
      return node.error("has " + std::to_string(channels) + " channels but a scale or bias of shape " +
                        shapeText(shapeOf(vector).vec()));
  Value y;
  if (isComputed(node, 3) || isComputed(node, 4)) {
    y = withComputedStatistics(node, norm);
    return y ? node.result(node.reshape(y, shapeOf(x))) : failure();
  }
  if (failed(readStatistics(node, norm)))
    return failure();
  if (node.training() && node.graph().batchNorms.byBatch.count(&node.proto())) {
    y = withBatchStatistics(node, norm);
  } else {
    auto type = typeOf(norm.scale);
    Value variance = node.read(norm.variance, type);
    auto op = node.make<train::ChannelAffineOp>(norm.x, node.read(norm.mean, type), variance, norm.scale, norm.bias,
                                                node.f32(norm.epsilon));
    y = op ? op.getY() : Value();
  }
  return y ? node.result(node.reshape(y, shapeOf(x))) : failure();
}

/// The mean over the dimensions from `axis` on, which stay as 1.
Value mean(NodeImport &node, Value x, int64_t axis) {
  if (!x)
    return {};
  SmallVector<int64_t> kept(shapeOf(x));
  std::fill(kept.begin() + axis, kept.end(), 1);
  return summed(node, x, kept, 1.0 / static_cast<double>(llvm::product_of(shapeOf(x).drop_front(axis))));
}

/// 1 / sqrt(variance + epsilon) over the same dimensions. The norm's own is out of reach of a gradient.
Value reciprocalDeviation(NodeImport &node, Value x, Value middle, int64_t axis) {
  Value centred = binary<train::SubOp>(node, x, middle);
  Value variance = mean(node, binary<train::MulOp>(node, centred, centred), axis);
  Value epsilon = node.scalar(node.attributes.number("epsilon", 1e-5f), "epsilon");
  Value deviation = unary<train::SqrtOp>(node, binary<train::AddOp>(node, variance, epsilon));
  return binary<train::DivOp>(node, node.scalar(1, "one"), deviation);
}

/// Dimensions from `axis` on are normalized together: rows of as many columns.
LogicalResult importLayerNorm(NodeImport &node) {
  Value x = node.tensor(0), scale = node.tensor(1, {Use::Scale}),
        bias = node.has(2) ? node.tensor(2, {Use::Bias}) : Value();
  int64_t axis = x ? node.axis(node.attributes.integer("axis", -1), shapeOf(x).size()) : -1;
  if (!scale || axis < 0 || (node.has(2) && !bias))
    return failure();
  auto normalized = shapeOf(x).drop_front(axis);
  for (Value vector : {scale, bias})
    if (vector && shapeOf(vector) != normalized)
      return node.error("normalizes the dimensions " + shapeText(normalized.vec()) + " of an input of shape " +
                        shapeText(shapeOf(x).vec()) + " but has a scale or bias of shape " +
                        shapeText(shapeOf(vector).vec()) + "; they must be equal");
  const int64_t columns = llvm::product_of(normalized);
  if (!bias)
    bias = node.filled({columns}, 0, "bias");
  bias = node.reshape(bias, {columns});
  scale = node.reshape(scale, {columns});
  auto norm = node.make<train::LayerNormOp>(node.reshape(x, {typeOf(x).getNumElements() / columns, columns}), scale,
                                            bias, node.f32(node.attributes.number("epsilon", 1e-5f)));
  if (!norm)
    return failure();
  Value middle = node.used(1) || node.used(2) ? mean(node, x, axis) : Value();
  if ((node.used(1) && failed(node.result(middle, 1))) ||
      (node.used(2) && failed(node.result(reciprocalDeviation(node, x, middle, axis), 2))))
    return failure();
  return node.result(node.reshape(norm.getY(), shapeOf(x)));
}

LogicalResult importLrn(NodeImport &node) {
  Value x = node.tensor(0), image = x ? channelImage(node, x, /*keeps=*/false) : Value();
  if (!image)
    return failure();
  int64_t size = node.attributes.integer("size", 0);
  if (size < 1)
    return node.error("size is " + std::to_string(size) + ", must be positive");
  // Kernels add up the neighbours of each channel one by one; neither factor exceeds 2^40.
  constexpr int64_t mostReads = int64_t(1) << 40;
  const int64_t elements = typeOf(image).getNumElements(), neighbours = std::min(size, shapeOf(image)[1]);
  if (neighbours > mostReads / elements)
    return node.error("sums over " + std::to_string(neighbours) + " channels for each of " + std::to_string(elements) +
                      " elements read more than " + std::to_string(mostReads) + " times");
  auto lrn = node.make<train::LrnOp>(
      image, static_cast<uint64_t>(size), node.f32(node.attributes.number("alpha", 1e-4f)),
      node.f32(node.attributes.number("beta", 0.75f)), node.f32(node.attributes.number("bias", 1.0f)));
  return lrn ? node.result(node.reshape(lrn, shapeOf(x))) : failure();
}

/// x, and a mask that keeps all of it.
LogicalResult unchanged(NodeImport &node, Value x) {
  if (node.used(1) && failed(node.result(node.filled(shapeOf(x).vec(), 1, "mask"), 1)))
    return failure();
  return node.result(x);
}

/// The key is taken before anything returns, so that it depends on the place of the node alone and not on which other
/// nodes drop.
LogicalResult importDropout(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  int64_t key = node.shared().dropouts++;
  if (!node.training() || node.spec().dropout == DropoutMode::Off)
    return unchanged(node, x);
  double ratio = node.attributes.number("ratio", 0.5f);
  if (node.has(1)) {
    const HostTensor *given = node.constant(1, "ratio");
    if (!given || given->size() != 1)
      return node.error("ratio must be a single number");
    ratio = given->number(0);
  }
  if (!(ratio >= 0 && ratio < 1))
    return node.error("ratio is " + std::to_string(ratio) + ", must be at least 0 and below 1");
  if (ratio == 0)
    return unchanged(node, x);
  auto dropout = node.make<train::DropoutOp>(x, node.f32(ratio), static_cast<uint64_t>(key));
  return dropout ? node.result(dropout) : failure();
}

} // namespace

void addNormalizations(NodeImporters &table) {
  table["BatchNormalization"] = importBatchNorm;
  table["LayerNormalization"] = importLayerNorm;
  table["LRN"] = importLrn;
  table["Dropout"] = importDropout;
}

} // namespace sluice
