// SPDX-License-Identifier: Apache-2.0
// Resize (opsets 10 to 19) and Upsample (7 to 9): by train.resize where that can, else by products with matrices.
#include "frontend/Compositions.h"
#include "frontend/ResizeMatrix.h"
#include "frontend/Windows.h"
#include <array>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace sluice {
namespace {

using train::Coordinates;
using train::ResizeMode;

/// What a Resize makes of each dimension. Size and scale are both kept: the standard maps coordinates by the scale
/// that a node gives, which need not be the quotient of the extents.
struct Target {
  SmallVector<int64_t> size; ///< per dimension of x
  SmallVector<double> scale;
  SmallVector<bool> resized; ///< whether the node names the dimension
};

/// Where scales and sizes are, by op and opset. -1: nowhere.
struct Places {
  int scales, sizes;
};
Places placesOf(NodeImport &node) {
  if (node.proto().op_type() == "Upsample")
    return {node.opset >= 9 ? 1 : -1, -1};
  return node.opset >= 11 ? Places{2, 3} : Places{1, -1};
}

/// Scatters values given for some axes (opset 18) to all dimensions.
template <typename T> LogicalResult spread(NodeImport &node, ArrayRef<T> given, SmallVectorImpl<T> &all) {
  std::vector<int64_t> axes = node.attributes.integers("axes");
  if (axes.empty()) {
    axes.resize(all.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != given.size())
    return node.error("has " + std::to_string(given.size()) + " scales or sizes for " + std::to_string(axes.size()) +
                      " dimensions");
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = node.axis(axes[i], all.size());
    if (axis < 0)
      return failure();
    all[axis] = given[i];
  }
  return success();
}

/// The scales that sizes mean; where these are but limits, the sizes that one scale for all gives.
FailureOr<Target> scaleToSizes(NodeImport &node, ArrayRef<int64_t> shape, Target target) {
  const std::string policy = node.attributes.text("keep_aspect_ratio_policy", "stretch");
  const bool larger = policy == "not_smaller";
  std::optional<double> common;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (target.size[i] < 1)
      return node.error("a size of " + std::to_string(target.size[i]) + " is not possible");
    target.scale[i] = static_cast<float>(static_cast<double>(target.size[i]) / static_cast<double>(shape[i]));
    if (target.resized[i])
      common = !common ? target.scale[i]
                       : (larger ? std::max(*common, target.scale[i]) : std::min(*common, target.scale[i]));
  }
  if (policy == "stretch" || !common)
    return target;
  if (!larger && policy != "not_larger")
    return node.error("keep_aspect_ratio_policy '" + policy + "' is none of stretch, not_larger and not_smaller");
  for (size_t i = 0; i < shape.size(); ++i)
    if (target.resized[i]) {
      const double extent = std::floor(*common * static_cast<double>(shape[i]) + 0.5);
      if (!(extent >= 1 && extent < 1e9))
        return node.error("a scale of " + std::to_string(*common) + " of extent " + std::to_string(shape[i]) +
                          " is not possible");
      target.scale[i] = *common;
      target.size[i] = static_cast<int64_t>(extent);
    }
  return target;
}

/// Sizes win over scales where a node has both, as an empty tensor stands for the one that it does not mean.
FailureOr<Target> readTarget(NodeImport &node, ArrayRef<int64_t> shape) {
  Places places = placesOf(node);
  Target target;
  target.size.assign(shape.begin(), shape.end());
  target.scale.assign(shape.size(), 1.0);
  const std::vector<int64_t> axes = node.attributes.integers("axes");
  target.resized.assign(shape.size(), axes.empty());
  for (int64_t axis : axes)
    if (const int64_t i = node.axis(axis, static_cast<int64_t>(shape.size())); i >= 0)
      target.resized[i] = true;
    else
      return failure();
  const HostTensor *sizes =
      places.sizes >= 0 && node.has(places.sizes) ? node.constant(places.sizes, "sizes") : nullptr;
  if (sizes && sizes->size() > 0) {
    if (failed(spread<int64_t>(node, sizes->ints, target.size)))
      return failure();
    return scaleToSizes(node, shape, std::move(target));
  }
  // The extent is rounded down, so that the scale is not what the extents say; it is kept as it was given.
  SmallVector<double> scales;
  if (places.scales < 0) {
    for (float scale : node.attributes.numbers("scales"))
      scales.push_back(scale);
  } else {
    const HostTensor *given = node.constant(places.scales, "scales");
    if (!given)
      return failure();
    scales.assign(given->floats.begin(), given->floats.end());
  }
  if (failed(spread<double>(node, scales, target.scale)))
    return failure();
  for (size_t i = 0; i < shape.size(); ++i) {
    double extent = std::floor(shape[i] * target.scale[i]);
    if (!(extent >= 1 && extent < 1e9))
      return node.error("scale " + std::to_string(target.scale[i]) + " of extent " + std::to_string(shape[i]) +
                        " is not possible");
    target.size[i] = static_cast<int64_t>(extent);
  }
  return target;
}

/// Whether a scaled extent is not whole, so that `size` alone does not say what ONNX scales by.
bool isFractional(const Target &target, ArrayRef<int64_t> shape) {
  for (size_t i = 2; i < shape.size(); ++i)
    if (std::abs(shape[i] * target.scale[i] - target.size[i]) > 1e-4)
      return true;
  return false;
}

/// ONNX aligns the corners of the fractional extent; as scales that asymmetric coordinates divide by.
void alignFractionalCorners(Target &target, ArrayRef<int64_t> shape) {
  for (size_t i = 2; i < shape.size(); ++i) {
    double extent = shape[i] * target.scale[i];
    target.scale[i] = shape[i] > 1 && target.size[i] > 1 ? (extent - 1) / (shape[i] - 1) : 1;
  }
}

/// Upsample and the first Resize had no attributes for these and meant one rule.
ResizeRule readRule(NodeImport &node) {
  const bool early = node.proto().op_type() == "Upsample" || node.opset < 11;
  ResizeRule rule;
  rule.mode = node.attributes.text("mode", "nearest");
  if (rule.mode == "bilinear") // Upsample 7 in some files
    rule.mode = "linear";
  rule.coordinates = node.attributes.text("coordinate_transformation_mode", early ? "asymmetric" : "half_pixel");
  rule.nearest = node.attributes.text("nearest_mode", early ? "floor" : "round_prefer_floor");
  rule.cubicFactor = node.attributes.number("cubic_coeff_a", -0.75f);
  rule.excludeOutside = node.attributes.integer("exclude_outside", 0);
  rule.antialias = node.attributes.integer("antialias", 0);
  return rule;
}

/// Whether train.resize does it: the dimensions of a line, an image or a volume, neighbours alone.
bool isKernel(const ResizeRule &rule, const Target &target, ArrayRef<int64_t> shape) {
  const bool symmetric = rule.coordinates == "half_pixel_symmetric" && !isFractional(target, shape);
  return shape.size() >= 3 && shape.size() <= 5 && target.size[0] == shape[0] && target.size[1] == shape[1] &&
         (rule.mode == "nearest" || rule.mode == "linear") && !rule.antialias &&
         (symmetric || train::symbolizeCoordinates(rule.coordinates)) && train::symbolizeNearestMode(rule.nearest);
}

/// What a node asks for beside sizes.
struct Manner {
  ResizeMode mode;
  Coordinates coordinates;
  train::NearestMode nearest;
};

/// An image with both its dimensions resized to `size` by `scale`.
Value resized(NodeImport &node, Value image, std::array<int64_t, 2> size, std::array<double, 2> scale,
              const Manner &manner) {
  auto op = image ? node.make<train::ResizeOp>(image, ArrayRef<int64_t>(size), node.f32(scale[0]), node.f32(scale[1]),
                                               manner.mode, manner.coordinates, manner.nearest)
                  : train::ResizeOp();
  return op ? op.getY() : Value();
}

/// A volume dimension by dimension, as both modes allow: depth, with the pixels of its slices as one dimension, then
/// its slices as images.
Value resizedVolume(NodeImport &node, Value x, const Target &target, const Manner &manner) {
  SmallVector<int64_t> shape(shapeOf(x));
  const ArrayRef<int64_t> size(target.size);
  const ArrayRef<double> scale(target.scale);
  if (size[2] != shape[2] || scale[2] != 1) {
    Value slices = node.reshape(x, {shape[0], shape[1], shape[2], shape[3] * shape[4]});
    slices = resized(node, slices, {size[2], shape[3] * shape[4]}, {scale[2], 1.0}, manner);
    shape[2] = size[2];
    x = slices ? node.reshape(slices, shape) : Value();
  }
  if (!x || (size.drop_front(3) == ArrayRef(shape).drop_front(3) && scale[3] == 1 && scale[4] == 1))
    return x;
  Value images = node.reshape(x, {shape[0] * shape[1] * shape[2], 1, shape[3], shape[4]});
  images = resized(node, images, {size[3], size[4]}, {scale[3], scale[4]}, manner);
  return images ? node.reshape(images, size) : Value();
}

/// Kernels resize images; a line is an image of height 1, a volume is resized in its depth and then slice by slice.
LogicalResult resizeByKernel(NodeImport &node, Value x, Target target, const ResizeRule &rule) {
  auto shape = shapeOf(x);
  // half_pixel_symmetric is the same where no extent is rounded.
  Coordinates coordinates = train::symbolizeCoordinates(rule.coordinates).value_or(Coordinates::HalfPixel);
  if (isFractional(target, shape) && coordinates == Coordinates::AlignCorners) {
    alignFractionalCorners(target, shape);
    coordinates = Coordinates::Asymmetric;
  }
  const Manner manner{rule.mode == "nearest" ? ResizeMode::Nearest : ResizeMode::Linear, coordinates,
                      *train::symbolizeNearestMode(rule.nearest)};
  if (shape.size() == 5)
    return node.result(resizedVolume(node, x, target, manner));
  const bool line = shape.size() == 3;
  Value image = resized(node, asImage(node, x), {line ? 1 : target.size[2], target.size.back()},
                        {line ? 1.0 : target.scale[2], target.scale.back()}, manner);
  return image ? node.result(fromImage(node, image, shape.size())) : failure();
}

/// The product of a matrix [to, from] with x along a dimension.
Value resizedAlong(NodeImport &node, Value x, int64_t axis, HostTensor matrix) {
  auto [outer, inner] = around(shapeOf(x), axis);
  const int64_t from = shapeOf(x)[axis];
  SmallVector<int64_t> shape(shapeOf(x)), rows = {outer, from};
  shape[axis] = matrix.shape[0];
  Value factors = node.table(std::move(matrix), "weights" + std::to_string(axis));
  if (inner > 1)
    rows = outer > 1 ? SmallVector<int64_t>{outer, from, inner} : SmallVector<int64_t>{from, inner};
  Value flat = factors ? node.reshape(x, rows) : Value();
  if (!flat)
    return {};
  const bool last = inner == 1;
  auto product = node.make<train::MatmulOp>(last ? flat : factors, last ? factors : flat, Value(), false, last,
                                            node.f32(1), node.f32(1));
  return product ? node.reshape(product.getY(), shape) : Value();
}

/// Starts and ends of the part that tf_crop_and_resize takes, of all dimensions; they count from 0 to 1.
LogicalResult readCrop(NodeImport &node, MutableArrayRef<ResizedExtent> extents) {
  const HostTensor *crop = node.constant(1, "roi");
  if (!crop)
    return failure();
  SmallVector<double> starts(extents.size(), 0), ends(extents.size(), 1);
  const size_t named = node.attributes.integers("axes").size(), resized = named ? named : extents.size();
  if (crop->integral || crop->floats.size() != 2 * resized)
    return node.error("roi must be a start and an end for each of " + std::to_string(resized) +
                      " dimensions, has shape " + shapeText(crop->shape));
  ArrayRef<double> given(crop->floats);
  if (failed(spread<double>(node, given.take_front(resized), starts)) ||
      failed(spread<double>(node, given.drop_front(resized), ends)))
    return failure();
  for (size_t i = 0; i < extents.size(); ++i) {
    extents[i].cropStart = starts[i];
    extents[i].cropEnd = ends[i];
  }
  return success();
}

/// Whatever else ONNX defines is a product with a constant matrix along each dimension.
LogicalResult resizeByMatrices(NodeImport &node, Value x, const Target &target, const ResizeRule &rule) {
  SmallVector<ResizedExtent> extents;
  for (auto [from, to, scale] : llvm::zip(shapeOf(x), target.size, target.scale))
    extents.push_back({from, to, scale});
  const bool crops = rule.coordinates == "tf_crop_and_resize";
  if (crops && failed(readCrop(node, extents)))
    return failure();
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const ResizedExtent &extent = extents[axis];
    const bool same = extent.from == extent.to && extent.scale == 1;
    if (same && extent.cropStart == 0 && extent.cropEnd == 1)
      continue;
    bool outside = false;
    Result<HostTensor> matrix = resizeMatrix(rule, extent, outside);
    if (!matrix)
      return node.error(matrix.error());
    if (outside && node.attributes.number("extrapolation_value", 0) != 0)
      return node.error("extrapolation_value " + std::to_string(node.attributes.number("extrapolation_value", 0)) +
                        " is not supported; use 0");
    x = resizedAlong(node, x, static_cast<int64_t>(axis), std::move(*matrix));
    if (!x)
      return failure();
  }
  return node.result(x);
}

LogicalResult importResize(NodeImport &node) {
  Value x = node.tensor(0);
  auto target = x ? readTarget(node, shapeOf(x)) : FailureOr<Target>(failure());
  if (failed(target))
    return failure();
  const ResizeRule rule = readRule(node);
  return isKernel(rule, *target, shapeOf(x)) ? resizeByKernel(node, x, *target, rule)
                                             : resizeByMatrices(node, x, *target, rule);
}

} // namespace

void addResizes(NodeImporters &table) {
  table["Resize"] = importResize;
  table["Upsample"] = importResize;
}

} // namespace sluice
