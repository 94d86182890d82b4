// SPDX-License-Identifier: Apache-2.0
// Resize (opsets 10 to 19) and Upsample (7 to 9) over the spatial dimensions, nearest or linear.
#include "frontend/Windows.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace sluice {
namespace {

using train::Coordinates;
using train::NearestMode;
using train::ResizeMode;

struct Target {
  SmallVector<int64_t> size; ///< per dimension of x
  SmallVector<double> scale;
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

FailureOr<Target> readTarget(NodeImport &node, ArrayRef<int64_t> shape) {
  Places places = placesOf(node);
  Target target;
  target.size.assign(shape.begin(), shape.end());
  target.scale.assign(shape.size(), 1.0);
  const HostTensor *sizes =
      places.sizes >= 0 && node.has(places.sizes) ? node.constant(places.sizes, "sizes") : nullptr;
  if (sizes && sizes->size() > 0) {
    if (failed(spread<int64_t>(node, sizes->ints, target.size)))
      return failure();
    for (size_t i = 0; i < shape.size(); ++i)
      target.scale[i] = static_cast<float>(static_cast<double>(target.size[i]) / shape[i]);
    return target;
  }
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

FailureOr<Coordinates> readCoordinates(NodeImport &node) {
  bool early = node.proto().op_type() == "Upsample" || node.opset < 11;
  std::string name = node.attributes.text("coordinate_transformation_mode", early ? "asymmetric" : "half_pixel");
  if (name == "half_pixel_symmetric")
    name = "half_pixel"; // the same where no extent is rounded
  auto known = train::symbolizeCoordinates(name);
  if (!known)
    return node.error("coordinate_transformation_mode '" + name + "' is not supported");
  return *known;
}

FailureOr<NearestMode> readNearest(NodeImport &node) {
  bool early = node.proto().op_type() == "Upsample" || node.opset < 11;
  std::string name = node.attributes.text("nearest_mode", early ? "floor" : "round_prefer_floor");
  auto known = train::symbolizeNearestMode(name);
  if (!known)
    return node.error("nearest_mode '" + name + "' is not supported");
  return *known;
}

LogicalResult importResize(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  auto shape = shapeOf(x);
  if (!asImage(node, x)) // of any other rank
    return failure();
  auto target = readTarget(node, shape);
  if (failed(target))
    return failure();
  if (target->size[0] != shape[0] || (shape.size() > 1 && target->size[1] != shape[1]))
    return node.error("resizes batch or channels: " + shapeText(shape.vec()) + " to " +
                      shapeText(std::vector<int64_t>(target->size.begin(), target->size.end())));
  std::string mode = node.attributes.text("mode", "nearest");
  if (mode == "bilinear") // Upsample 7 in some files
    mode = "linear";
  if (mode != "nearest" && mode != "linear")
    return node.error("mode '" + mode + "' is not supported; use nearest or linear");
  if (node.attributes.integer("antialias", 0) ||
      node.attributes.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    return node.error("antialias and keep_aspect_ratio_policy are not supported");
  auto coordinates = readCoordinates(node);
  auto nearest = readNearest(node);
  Value image = failed(coordinates) || failed(nearest) ? Value() : asImage(node, x);
  if (!image)
    return failure();
  if (isFractional(*target, shape)) {
    if (node.attributes.text("coordinate_transformation_mode", "") == "half_pixel_symmetric")
      return node.error("half_pixel_symmetric is not supported for extents that are rounded");
    if (*coordinates == Coordinates::AlignCorners) {
      alignFractionalCorners(*target, shape);
      coordinates = Coordinates::Asymmetric;
    }
  }
  bool line = shape.size() == 3;
  int64_t size[] = {line ? 1 : target->size[2], target->size.back()};
  auto resizeMode = mode == "nearest" ? ResizeMode::Nearest : ResizeMode::Linear;
  auto op = node.make<train::ResizeOp>(image, ArrayRef<int64_t>(size), node.f32(line ? 1 : target->scale[2]),
                                       node.f32(target->scale.back()), resizeMode, *coordinates, *nearest);
  return op ? node.result(fromImage(node, op, shape.size())) : failure();
}

} // namespace

void addResizes(NodeImporters &table) {
  table["Resize"] = importResize;
  table["Upsample"] = importResize;
}

} // namespace sluice
