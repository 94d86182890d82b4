// SPDX-License-Identifier: Apache-2.0
// Conv and ConvTranspose, in one to three spatial dimensions.
#include "frontend/Windows.h"

using namespace mlir;

namespace sluice {
namespace {

/// Spatial extents of a weight, checked against kernel_shape.
FailureOr<SmallVector<int64_t>> kernelOf(NodeImport &node, Value x, Value weight) {
  auto shape = shapeOf(weight);
  if (typeOf(x).getRank() != typeOf(weight).getRank() || shape.size() < 3)
    return node.error("has an input of rank " + std::to_string(typeOf(x).getRank()) + " but weights of rank " +
                      std::to_string(shape.size()));
  SmallVector<int64_t> kernel(shape.drop_front(2));
  std::vector<int64_t> declared = node.attributes.integers("kernel_shape");
  if (!declared.empty() && ArrayRef<int64_t>(declared) != ArrayRef<int64_t>(kernel))
    return node.error("kernel_shape is " + shapeText(declared) + " but the weights are " + shapeText(shape.vec()));
  return kernel;
}

/// oneDNN counts pixels and channels in 32 bits, adds paddings and strides to them, and reserves memory for each pixel
/// of a row while it plans: it divides by what has become zero, or ends the process, long before they are used up.
constexpr int64_t mostExtent = 1 << 24;

/// The result of a convolution, unless its images or filters are larger than kernels can be for; there may be any
/// number of images.
Value convolved(NodeImport &node, Value image, Value filter, Value y) {
  if (!y)
    return {};
  for (auto [what, shape] : {std::pair{"an image", shapeOf(image).drop_front()},
                             {"weights", shapeOf(filter)},
                             {"a result", shapeOf(y).drop_front()}})
    for (int64_t extent : shape)
      if (extent > mostExtent) {
        (void)node.error(std::string("has ") + what + " of " + shapeText(shape.vec()) + ", whose extent of " +
                         std::to_string(extent) + " is more than the " + std::to_string(mostExtent) +
                         " that kernels of convolutions hold");
        return {};
      }
  return y;
}

/// PyTorch's newer exporter gives convolutions over volumes that have no bias zeros of shape [outputs, 2], which ONNX
/// does not know: they count as none.
bool hasBias(NodeImport &node) {
  const HostTensor *value = node.has(2) ? node.known(2) : nullptr;
  const bool none =
      value && value->shape.size() > 1 &&
      llvm::all_of(llvm::seq<int64_t>(0, value->size()), [&](int64_t i) { return value->number(i) == 0; });
  return node.has(2) && !none;
}

LogicalResult importConv(NodeImport &node) {
  const bool biased = hasBias(node);
  Value x = node.tensor(0), weight = node.tensor(1, {Use::Weight});
  Value bias = biased ? node.tensor(2, {Use::Bias}) : Value();
  if (!x || !weight || (biased && !bias))
    return failure();
  int64_t rank = typeOf(x).getRank();
  auto kernel = kernelOf(node, x, weight);
  if (failed(kernel))
    return failure();
  auto window = readWindow(node, x, *kernel);
  if (failed(window))
    return failure();
  Value image = asImage(node, x), filter = asImage(node, weight);
  if (!image || !filter)
    return failure();
  int64_t group = node.attributes.integer("group", 1);
  int64_t channels = shapeOf(image)[1], perGroup = shapeOf(filter)[1];
  if (group < 1 || group > channels || channels != group * perGroup)
    return node.error("has " + std::to_string(channels) + " input channels but weights for " +
                      std::to_string(perGroup) + " in each of " + std::to_string(group) + " groups");
  auto conv = node.make<train::ConvOp>(image, filter, bias, window->strides, window->pads, window->dilations, group);
  Value y = conv ? convolved(node, image, filter, conv) : Value();
  return y ? node.result(fromImage(node, y, rank)) : failure();
}

/// Output extents of a transposed convolution; sets the pads when output_shape or auto_pad asks for it.
FailureOr<SmallVector<int64_t>> transposedSize(NodeImport &node, ArrayRef<int64_t> image, int64_t spatial,
                                               Window &window) {
  std::vector<int64_t> extra = node.attributes.integers("output_padding"),
                       wanted = node.attributes.integers("output_shape");
  // Early exporters wrote output_shape with batch and channels.
  if (static_cast<int64_t>(wanted.size()) == spatial + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  std::string mode = node.attributes.text("auto_pad", "NOTSET");
  SmallVector<int64_t> size;
  for (int i = 0, dimensions = window.dimensions(); i < dimensions; ++i) {
    int64_t at = i - (dimensions - spatial); // index into the node's own lists
    int64_t padding = at >= 0 && at < static_cast<int64_t>(extra.size()) ? extra[at] : 0;
    if (padding < 0 || padding >= std::max(window.strides[i], window.dilations[i]))
      return node.error("output_padding " + std::to_string(padding) + " is not below the stride " +
                        std::to_string(window.strides[i]) + " or the dilation " + std::to_string(window.dilations[i]));
    int64_t full = window.strides[i] * (image[i] - 1) + padding + window.span(i);
    bool given = at >= 0 && at < static_cast<int64_t>(wanted.size()),
         same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (given && (wanted[at] < 1 || wanted[at] > node.spec().limits.extent))
      return node.error("output_shape holds " + std::to_string(wanted[at]) + ", outside 1 to " +
                        std::to_string(node.spec().limits.extent));
    if (mode == "VALID")
      window.pads[i] = window.pads[dimensions + i] = 0;
    if (given || (same && at >= 0)) {
      int64_t total = std::max<int64_t>(0, full - (given ? wanted[at] : image[i] * window.strides[i]));
      window.pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.pads[dimensions + i] = total - window.pads[i];
    }
    size.push_back(given ? wanted[at] : full - window.pads[i] - window.pads[dimensions + i]);
    if (size[i] < 1)
      return node.error("output extent " + std::to_string(size[i]) + " with output_padding " + std::to_string(padding) +
                        " is not possible");
  }
  return size;
}

/// The bias is a sum of its own, since the op has no operand for it.
LogicalResult importConvTranspose(NodeImport &node) {
  Value x = node.tensor(0), weight = node.tensor(1, {Use::Weight});
  if (!x || !weight)
    return failure();
  int64_t rank = typeOf(x).getRank();
  auto kernel = kernelOf(node, x, weight);
  if (failed(kernel))
    return failure();
  auto window = readWindow(node, x, *kernel, /*transposed=*/true);
  Value image = asImage(node, x), filter = asImage(node, weight);
  if (failed(window) || !image || !filter)
    return failure();
  auto size = transposedSize(node, shapeOf(image).drop_front(2), rank - 2, *window);
  if (failed(size))
    return failure();
  int64_t group = node.attributes.integer("group", 1);
  auto conv =
      node.make<train::ConvTransposeOp>(image, filter, window->strides, window->pads, window->dilations, group, *size);
  Value y = conv ? convolved(node, image, filter, conv) : Value();
  if (!y)
    return failure();
  if (node.has(2)) {
    Value bias = node.tensor(2, {Use::Bias});
    SmallVector<int64_t> channels(typeOf(y).getRank(), 1);
    channels[1] = shapeOf(y)[1];
    Value view = bias ? node.reshape(bias, channels) : Value();
    auto sum = view ? node.make<train::AddOp>(y, view) : train::AddOp();
    if (!sum)
      return failure();
    y = sum;
  }
  return node.result(fromImage(node, y, rank));
}

} // namespace

void addConvolutions(NodeImporters &table) {
  table["Conv"] = importConv;
  table["ConvTranspose"] = importConvTranspose;
}

} // namespace sluice
