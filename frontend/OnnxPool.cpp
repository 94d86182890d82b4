// SPDX-License-Identifier: Apache-2.0
// Pools over windows and over the whole image.
#include "frontend/Compositions.h"
#include "frontend/Windows.h"
#include <limits>
#include <numeric>

using namespace mlir;

namespace sluice {
namespace {

/// Positions of the window times elements of the result: of all of them, and of those that no image has.
constexpr int64_t mostReads = int64_t(1) << 40, mostOutside = int64_t(1) << 32;

/// The product, or the largest number.
int64_t times(int64_t a, int64_t b) {
  return __builtin_mul_overflow(a, b, &a) ? std::numeric_limits<int64_t>::max() : a;
}
int64_t times(ArrayRef<int64_t> factors) {
  return std::accumulate(factors.begin(), factors.end(), int64_t(1), [](int64_t a, int64_t b) { return times(a, b); });
}

/// The result of a pool, unless its windows read more than kernels could do in a lifetime: they may be larger than the
/// image, and kernels walk over all of their positions.
Value pooled(NodeImport &node, Value image, Value y, ArrayRef<int64_t> kernel) {
  if (!y)
    return {};
  const int64_t positions = times(kernel), results = typeOf(y).getNumElements();
  int64_t inside = 1; // of an image, whose pixels are counted
  for (auto [extent, most] : llvm::zip(kernel, shapeOf(image).drop_front(2)))
    inside *= std::min(extent, most);
  const int64_t reads = times(results, positions), outside = times(results, positions - inside);
  const bool tooMany = y.getDefiningOp<train::MaxPoolOp>() && positions > std::numeric_limits<int32_t>::max();
  if (reads <= mostReads && outside <= mostOutside && !tooMany)
    return y;
  const std::string windows = "windows of " + shapeText(kernel.vec()),
                    result = " for a result of " + shapeText(shapeOf(y).vec());
  if (reads > mostReads)
    (void)node.error(windows + result + " read more than " + std::to_string(mostReads) + " times");
  else if (outside > mostOutside)
    (void)node.error(windows + result + " read more than " + std::to_string(mostOutside) + " times outside the image");
  else
    (void)node.error(windows + " have " + std::to_string(positions) + " positions, kernels tell " +
                     std::to_string(std::numeric_limits<int32_t>::max()) + " apart");
  return {};
}

LogicalResult importMaxPool(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  auto window = readWindow(node, x, node.attributes.integers("kernel_shape"));
  Value image = failed(window) ? Value() : asImage(node, x);
  if (!image)
    return failure();
  auto pool = node.make<train::MaxPoolOp>(image, window->kernel, window->strides, window->pads, window->dilations,
                                          node.attributes.integer("ceil_mode", 0) != 0);
  Value y = pool ? pooled(node, image, pool.getY(), window->kernel) : Value();
  return y ? node.result(fromImage(node, y, typeOf(x).getRank())) : failure();
}

/// Dilations are written down where there are any.
train::AveragePoolOp averaged(NodeImport &node, Value image, const Window &window, bool ceil, bool countIncludePad) {
  const bool dilated = llvm::any_of(window.dilations, [](int64_t d) { return d != 1; });
  return node.make<train::AveragePoolOp>(image, window.kernel, window.strides, window.pads, ceil, countIncludePad,
                                         dilated ? node.builder().getDenseI64ArrayAttr(window.dilations)
                                                 : DenseI64ArrayAttr());
}

LogicalResult importAveragePool(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  auto window = readWindow(node, x, node.attributes.integers("kernel_shape"));
  if (failed(window))
    return failure();
  Value image = asImage(node, x);
  if (!image)
    return failure();
  auto pool = averaged(node, image, *window, node.attributes.integer("ceil_mode", 0) != 0,
                       node.attributes.integer("count_include_pad", 0) != 0);
  Value y = pool ? pooled(node, image, pool, window->kernel) : Value();
  return y ? node.result(fromImage(node, y, typeOf(x).getRank())) : failure();
}

/// Pads after each dimension for the last window of ceil_mode, which ends after the padding and begins in front of
/// it: so that the mean over it counts all of its positions.
void padToLastWindow(ArrayRef<int64_t> image, Window &window) {
  for (int i = 0, dimensions = window.dimensions(); i < dimensions; ++i) {
    const int64_t room = image[i] + window.pads[i] + window.pads[dimensions + i] - window.span(i);
    const int64_t stride = window.strides[i], last = room < 0 ? 0 : (room + stride - 1) / stride * stride;
    if (room > -stride && last < image[i] + window.pads[i])
      window.pads[dimensions + i] += std::max<int64_t>(0, last - room);
  }
}

/// The p-th root of the sum of |x|^p: the mean that counts the padding, times the positions of the window.
LogicalResult importLpPool(NodeImport &node) {
  Value x = node.tensor(0);
  const int64_t p = node.attributes.integer("p", 2);
  if (!x)
    return failure();
  auto window = readWindow(node, x, node.attributes.integers("kernel_shape"));
  if (failed(window))
    return failure();
  if (p < 1 || p > 16)
    return node.error("p is " + std::to_string(p) + "; it must be from 1 to 16");
  Value image = asImage(node, x);
  if (image && node.attributes.integer("ceil_mode", 0))
    padToLastWindow(shapeOf(image).drop_front(2), *window);
  Value terms = image && p % 2 ? unary<train::AbsOp>(node, image) : image;
  terms = p == 1 ? terms : power(node, terms, static_cast<double>(p));
  auto pool = terms ? averaged(node, terms, *window, false, true) : train::AveragePoolOp();
  Value mean = pool ? pooled(node, image, pool, window->kernel) : Value();
  Value sum = scaled(node, mean, static_cast<double>(times(window->kernel)));
  Value y = p == 1 ? sum : power(node, sum, 1.0 / static_cast<double>(p));
  return y ? node.result(fromImage(node, y, typeOf(x).getRank())) : failure();
}

/// x [N,C,d...] as an image [N,C,h,w]; the whole of it is one window.
Value wholeImage(NodeImport &node, Value x) {
  auto shape = shapeOf(x);
  if (shape.size() < 3) {
    (void)node.error("needs spatial dimensions, has an input of shape " + shapeText(shape.vec()));
    return {};
  }
  int64_t height = shape.size() == 3 ? 1 : shape[2], width = shape.back();
  for (int64_t extent : shape.slice(std::min<size_t>(3, shape.size() - 1)).drop_back())
    height *= extent;
  return node.reshape(x, {shape[0], shape[1], height, width});
}

/// All spatial dimensions become two, whatever their number: a pool over all of them does not ask which is which.
template <bool maximum> LogicalResult importGlobalPool(NodeImport &node) {
  Value x = node.tensor(0), image = x ? wholeImage(node, x) : Value();
  if (!image)
    return failure();
  int64_t kernel[] = {shapeOf(image)[2], shapeOf(image)[3]}, ones[] = {1, 1}, zeros[] = {0, 0, 0, 0};
  Value y;
  if constexpr (maximum) {
    auto pool = node.make<train::MaxPoolOp>(image, kernel, ones, zeros, ones, false);
    y = pool ? pooled(node, image, pool.getY(), kernel) : Value();
  } else {
    auto pool = node.make<train::AveragePoolOp>(image, kernel, ones, zeros, false, false, DenseI64ArrayAttr());
    y = pool ? pool.getY() : Value();
  }
  if (!y)
    return failure();
  SmallVector<int64_t> shape(shapeOf(x));
  std::fill(shape.begin() + 2, shape.end(), 1);
  return node.result(node.reshape(y, shape));
}

} // namespace

void addPools(NodeImporters &table) {
  table["MaxPool"] = importMaxPool;
  table["AveragePool"] = importAveragePool;
  table["LpPool"] = importLpPool;
  table["GlobalAveragePool"] = importGlobalPool<false>;
  table["GlobalMaxPool"] = importGlobalPool<true>;
}

} // namespace sluice
