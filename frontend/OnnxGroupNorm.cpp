// SPDX-License-Identifier: Apache-2.0
// Normalizations of every sample by itself: InstanceNormalization, GroupNormalization, RMSNormalization,
// LpNormalization. Those by mean and variance run on the kernel of LayerNormalization, a row for each mean.
#include "frontend/Compositions.h"
#include <limits>

using namespace mlir;

namespace sluice {
namespace {

/// x in rows of `columns` elements, each normalized by its own mean and variance; null after an error.
Value normalized(NodeImport &node, Value x, int64_t columns) {
  Value scale = x ? node.filled({columns}, 1, "ones") : Value(),
        bias = x ? node.filled({columns}, 0, "zeros") : Value();
  Value rows = x ? node.reshape(x, {typeOf(x).getNumElements() / columns, columns}) : Value();
  if (!rows || !scale || !bias)
    return {};
  auto norm = node.make<train::LayerNormOp>(rows, scale, bias, node.f32(node.attributes.number("epsilon", 1e-5f)));
  return norm ? node.reshape(norm.getY(), shapeOf(x)) : Value();
}

/// PyTorch's exporters write GroupNorm as the InstanceNormalization of a view with ones and zeros, and scale and shift
/// the result as a view again.
bool isInsideGroupNorm(NodeImport &node) {
  auto view = node.tensor(0).getDefiningOp<train::ReshapeOp>();
  auto reader = node.graph().firstReader.find(node.proto().output(0));
  return view && node.proto().op_type() == "InstanceNormalization" && reader != node.graph().firstReader.end() &&
         reader->second.first->op_type() == "Reshape";
}

/// Whether input `input` is a constant that is `number` everywhere. Inside a GroupNorm initializers are constants, too.
bool isEverywhere(NodeImport &node, int input, double number) {
  const HostTensor *value = isInsideGroupNorm(node) ? node.known(input) : node.folded(input);
  return value &&
         llvm::all_of(llvm::seq<int64_t>(0, value->size()), [&](int64_t i) { return value->number(i) == number; });
}

/// The scale, operand 1, or the bias, operand 2: an element for each channel or group; null after an error.
Value ofChannels(NodeImport &node, int input, int64_t channels) {
  Value vector = node.tensor(input, {input == 1 ? Use::Scale : Use::Bias});
  if (!vector || shapeOf(vector) == ArrayRef<int64_t>{channels})
    return vector;
  (void)node.error("has " + std::to_string(channels) + " channels or groups but a scale or bias of shape " +
                   shapeText(shapeOf(vector).vec()));
  return {};
}

/// y * scale + bias, each with an element for an index of dimension 1.
Value affine(NodeImport &node, Value y) {
  if (!y)
    return {};
  SmallVector<int64_t> shape(typeOf(y).getRank(), 1);
  shape[1] = shapeOf(y)[1];
  for (int input : {1, 2}) {
    if (isEverywhere(node, input, input == 1 ? 1 : 0))
      continue;
    Value vector = ofChannels(node, input, shape[1]);
    vector = vector ? node.reshape(vector, shape) : Value();
    y = input == 1 ? binary<train::MulOp>(node, y, vector) : binary<train::AddOp>(node, y, vector);
  }
  return y;
}

/// Whether x has samples, channels and something to normalize over.
bool hasChannels(NodeImport &node, Value x, size_t leastRank) {
  if (x && shapeOf(x).size() < leastRank)
    (void)node.error("needs an input of rank " + std::to_string(leastRank) + " at least, has one of shape " +
                     shapeText(shapeOf(x).vec()));
  return x && shapeOf(x).size() >= leastRank;
}

/// An image alone in its batch has the statistics of the batch: no rows as long as an image, and no passes of their own
/// for scale and shift.
LogicalResult importInstanceNorm(NodeImport &node) {
  Value x = node.tensor(0);
  if (!hasChannels(node, x, 3))
    return failure();
  if (shapeOf(x)[0] == 1 && train::isImage(x.getType())) {
    const auto vector = [&](int input, double idle, const char *name) {
      const int64_t channels = shapeOf(x)[1];
      return isEverywhere(node, input, idle) ? node.filled({channels}, idle, name) : ofChannels(node, input, channels);
    };
    Value scale = vector(1, 1, "ones"), bias = vector(2, 0, "zeros");
    auto norm = scale && bias ? node.make<train::BatchNormOp>(
                                    x, scale, bias, node.f32(node.attributes.number("epsilon", 1e-5f)), uint64_t(1))
                              : train::BatchNormOp();
    return norm ? node.result(norm.getY()) : failure();
  }
  return node.result(affine(node, normalized(node, x, llvm::product_of(shapeOf(x).drop_front(2)))));
}

/// Scale and bias are those of channels, before opset 21 those of groups.
LogicalResult importGroupNorm(NodeImport &node) {
  Value x = node.tensor(0);
  if (!hasChannels(node, x, 2))
    return failure();
  const int64_t groups = node.attributes.integer("num_groups", 0), samples = shapeOf(x)[0], channels = shapeOf(x)[1];
  if (groups < 1 || channels % groups)
    return node.error("num_groups " + std::to_string(groups) + " does not divide the " + std::to_string(channels) +
                      " channels");
  const int64_t columns = typeOf(x).getNumElements() / (samples * groups);
  SmallVector<int64_t> shape(shapeOf(x));
  Value y = normalized(node, x, columns);
  if (y && node.opset < 21)
    y = node.reshape(y, {samples, groups, columns});
  y = affine(node, y);
  return y ? node.result(node.reshape(y, shape)) : failure();
}

/// x over the root of its mean square over the dimensions from `axis` on, times a scale that broadcasts.
LogicalResult importRmsNorm(NodeImport &node) {
  Value x = node.tensor(0), scale = node.tensor(1, {Use::Scale});
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", -1), typeOf(x).getRank()) : -1;
  if (axis < 0 || !scale)
    return failure();
  SmallVector<int64_t> kept(shapeOf(x));
  std::fill(kept.begin() + axis, kept.end(), 1);
  const double count = static_cast<double>(llvm::product_of(shapeOf(x).drop_front(axis)));
  Value square = summed(node, binary<train::MulOp>(node, x, x), kept, 1 / count);
  Value epsilon = node.scalar(node.attributes.number("epsilon", 1e-5f), "epsilon");
  Value root = unary<train::SqrtOp>(node, binary<train::AddOp>(node, square, epsilon));
  Value y = binary<train::MulOp>(node, binary<train::DivOp>(node, x, root), scale);
  if (y && shapeOf(y) != shapeOf(x))
    return node.error("has a scale of shape " + shapeText(shapeOf(scale).vec()) + ", which does not broadcast to " +
                      shapeText(shapeOf(x).vec()));
  return node.result(y);
}

/// x divided by its 1-norm or 2-norm along one dimension. Norms below 1e-12 count as that, as PyTorch's normalize has
/// it: zeros stay zeros.
LogicalResult importLpNorm(NodeImport &node) {
  Value x = node.tensor(0);
  int64_t axis = x ? node.axis(node.attributes.integer("axis", -1), typeOf(x).getRank()) : -1;
  const int64_t p = node.attributes.integer("p", 2);
  if (axis < 0)
    return failure();
  if (p != 1 && p != 2)
    return node.error("p is " + std::to_string(p) + ", must be 1 or 2");
  SmallVector<int64_t> kept(shapeOf(x));
  kept[axis] = 1;
  Value terms = p == 1 ? unary<train::AbsOp>(node, x) : binary<train::MulOp>(node, x, x);
  constexpr double least = 1e-12;
  Value sum =
      clipped(node, summed(node, terms, kept), p == 1 ? least : least * least, std::numeric_limits<float>::max());
  return node.result(binary<train::DivOp>(node, x, p == 1 ? sum : unary<train::SqrtOp>(node, sum)));
}

} // namespace

void addGroupNormalizations(NodeImporters &table) {
  table["InstanceNormalization"] = importInstanceNorm;
  table["GroupNormalization"] = importGroupNorm;
  table["RMSNormalization"] = importRmsNorm;
  table["LpNormalization"] = importLpNorm;
}

} // namespace sluice
