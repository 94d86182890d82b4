// SPDX-License-Identifier: Apache-2.0
// Sliding-window attributes: defaults, lengths, auto_pad, and one spatial dimension treated as an image of height 1.
#include "frontend/Windows.h"

using namespace mlir;

namespace sluice {
namespace {

constexpr int64_t largestExtent = 1 << 30; // window arithmetic stays far from overflow

std::string rankError(int64_t rank) {
  return "has an input of rank " + std::to_string(rank) + "; windows slide over one to three dimensions (rank 3 to 5)";
}

/// An attribute list with one entry per spatial dimension (or two for pads), checked; that of a line gets
/// a height in front.
LogicalResult readList(NodeImport &node, const char *name, int64_t spatial, int64_t otherwise, int64_t lowest,
                       SmallVectorImpl<int64_t> &list) {
  bool pads = StringRef(name) == "pads";
  std::vector<int64_t> given = node.attributes.integers(name);
  if (given.empty())
    given.assign(spatial * (pads ? 2 : 1), otherwise);
  if (static_cast<int64_t>(given.size()) != spatial * (pads ? 2 : 1))
    return node.error(std::string(name) + " has " + std::to_string(given.size()) + " entries for " +
                      std::to_string(spatial) + " spatial dimensions");
  for (int64_t entry : given)
    if (entry < lowest || entry > largestExtent)
      return node.error(std::string(name) + " holds " + std::to_string(entry) + ", outside " + std::to_string(lowest) +
                        " to " + std::to_string(largestExtent));
  if (spatial == 1)
    given = pads ? std::vector<int64_t>{0, given[0], 0, given[1]} : std::vector<int64_t>{1, given[0]};
  list.assign(given.begin(), given.end());
  return success();
}

/// SAME_UPPER and SAME_LOWER: as much padding as ceil(extent / stride) windows need, the odd one below or above.
void padToSame(const Window &window, ArrayRef<int64_t> image, bool upper, SmallVectorImpl<int64_t> &pads) {
  for (int i = 0, dimensions = window.dimensions(); i < dimensions; ++i) {
    int64_t stride = window.strides[i], windows = (image[i] + stride - 1) / stride;
    int64_t total = std::max<int64_t>(0, (windows - 1) * stride + window.span(i) - image[i]);
    pads[i] = upper ? total / 2 : total - total / 2;
    pads[dimensions + i] = total - pads[i];
  }
}

} // namespace

Value asImage(NodeImport &node, Value x) {
  if (!x)
    return {};
  auto shape = shapeOf(x);
  if (shape.size() == 4 || shape.size() == 5)
    return x;
  if (shape.size() == 3)
    return node.reshape(x, {shape[0], shape[1], 1, shape[2]});
  (void)node.error(rankError(shape.size()));
  return {};
}

Value fromImage(NodeImport &node, Value image, int64_t rank) {
  if (!image || rank != 3)
    return image;
  auto shape = shapeOf(image);
  return node.reshape(image, {shape[0], shape[1], shape[3]});
}

/// Extents are limited so that spans and padded images fit int64 however they are added; auto_pad comes last because it
/// takes kernel, strides and dilations.
FailureOr<Window> readWindow(NodeImport &node, Value x, ArrayRef<int64_t> kernel, bool transposed) {
  int64_t rank = typeOf(x).getRank(), spatial = rank - 2;
  if (spatial < 1 || spatial > 3)
    return node.error(rankError(rank));
  if (static_cast<int64_t>(kernel.size()) != spatial)
    return node.error("the kernel has " + std::to_string(kernel.size()) + " dimensions but the input " +
                      std::to_string(spatial));
  for (int64_t extent : kernel)
    if (extent < 1 || extent > largestExtent)
      return node.error("kernel extent " + std::to_string(extent) + " is not positive");
  Window window;
  if (spatial == 1)
    window.kernel.push_back(1);
  window.kernel.append(kernel.begin(), kernel.end());
  if (failed(readList(node, "strides", spatial, 1, 1, window.strides)) ||
      failed(readList(node, "dilations", spatial, 1, 1, window.dilations)) ||
      failed(readList(node, "pads", spatial, 0, 0, window.pads)))
    return failure();
  for (int i = 0; i < window.dimensions(); ++i)
    if (window.kernel[i] * window.dilations[i] > largestExtent)
      return node.error("kernel extent " + std::to_string(window.kernel[i]) + " with dilation " +
                        std::to_string(window.dilations[i]) + " is too large");
  std::string mode = node.attributes.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || transposed)
    return window;
  window.pads.assign(2 * window.kernel.size(), 0);
  if (mode == "VALID")
    return window;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return node.error("auto_pad '" + mode + "' is unknown");
  SmallVector<int64_t> image(shapeOf(x).drop_front(2));
  if (spatial == 1)
    image.insert(image.begin(), 1);
  padToSame(window, image, mode == "SAME_UPPER", window.pads);
  return window;
}

} // namespace sluice
