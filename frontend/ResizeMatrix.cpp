// SPDX-License-Identifier: Apache-2.0
// Where an element of the result lies among those of the operand, and the weights of its neighbours by their distance.
#include "frontend/ResizeMatrix.h"
#include <algorithm>
#include <cmath>
#include <optional>

namespace sluice {
namespace {

/// Nothing for coordinates that are unknown.
std::optional<double> positionOf(int64_t x, const ResizeRule &rule, const ResizedExtent &extent) {
  const double at = static_cast<double>(x), from = static_cast<double>(extent.from), width = extent.scale * from;
  const std::string &name = rule.coordinates;
  if (name == "half_pixel")
    return (at + 0.5) / extent.scale - 0.5;
  if (name == "pytorch_half_pixel")
    return extent.to == 1 ? -0.5 : (at + 0.5) / extent.scale - 0.5;
  if (name == "half_pixel_symmetric")
    return from / 2 * (1 - static_cast<double>(extent.to) / width) + (at + 0.5) / extent.scale - 0.5;
  if (name == "align_corners")
    return width == 1 ? 0 : at * (from - 1) / (width - 1);
  if (name == "asymmetric")
    return at / extent.scale;
  if (name != "tf_crop_and_resize")
    return std::nullopt;
  const double crop = (extent.cropEnd - extent.cropStart) * (from - 1);
  return (width == 1 ? crop / 2 : at * crop / (width - 1)) + extent.cropStart * (from - 1);
}

double cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double linear(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

/// Nothing for modes that are unknown.
std::optional<double> nearest(double position, const std::string &mode) {
  const double below = std::floor(position), rest = position - below;
  if (mode == "floor")
    return below;
  if (mode == "ceil")
    return std::ceil(position);
  if (mode == "round_prefer_floor")
    return below + (rest > 0.5);
  return mode == "round_prefer_ceil" ? std::optional(below + (rest >= 0.5)) : std::nullopt;
}

/// Adds the weights of all elements in reach of `position` to a row of the matrix.
void weigh(double position, const ResizeRule &rule, const ResizedExtent &extent, double *row) {
  const double narrow = rule.antialias ? std::min(extent.scale, 1.0) : 1.0, last = static_cast<double>(extent.from - 1);
  const double reach = std::min((rule.mode == "cubic" ? 2 : 1) / narrow, last + 2);
  double sum = 0;
  for (double at = std::floor(position - reach); at <= std::ceil(position + reach); ++at) {
    const double distance = (at - position) * narrow;
    const double weight = rule.mode == "cubic" ? cubic(distance, rule.cubicFactor) : linear(distance);
    if (rule.excludeOutside && (at < 0 || at > last))
      continue;
    row[static_cast<int64_t>(std::clamp(at, 0.0, last))] += weight;
    sum += weight;
  }
  for (int64_t i = 0; i < extent.from; ++i)
    row[i] = sum != 0 ? row[i] / sum : 0;
}

} // namespace

/// Weights are rounded to float32 at the end, as tables of a program hold them. Positions far outside are brought near
/// before they are weighed: from there on all weights fall on the edge, and the loop over them stays short.
Result<HostTensor> resizeMatrix(const ResizeRule &rule, const ResizedExtent &extent, bool &outside) {
  auto matrix = HostTensor::zeros({extent.to, extent.from}, /*integral=*/false);
  if (!matrix)
    return Error{"resizing an extent of " + std::to_string(extent.from) + " to " + std::to_string(extent.to) +
                 " takes a matrix of more than the " + std::to_string(HostTensor::maximumElements) +
                 " elements that are computed at compile time"};
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic")
    return Error{"mode '" + rule.mode + "' is not supported; use nearest, linear or cubic"};
  const double last = static_cast<double>(extent.from - 1);
  for (int64_t x = 0; x < extent.to; ++x) {
    const std::optional<double> position = positionOf(x, rule, extent);
    if (!position)
      return Error{"coordinate_transformation_mode '" + rule.coordinates + "' is not supported"};
    const std::optional<double> whole = nearest(*position, rule.nearest);
    if (!whole)
      return Error{"nearest_mode '" + rule.nearest + "' is not supported"};
    double *row = matrix->floats.data() + x * extent.from;
    if (rule.coordinates == "tf_crop_and_resize" && !(*position >= 0 && *position <= last)) {
      outside = true;
    } else if (!(std::abs(*position) < 1e15)) {
      return Error{"a scale of " + std::to_string(extent.scale) + " is not possible"};
    } else if (rule.mode == "nearest") {
      row[static_cast<int64_t>(std::clamp(*whole, 0.0, last))] = 1;
    } else {
      weigh(std::clamp(*position, -2 - last, 2 * last + 2), rule, extent, row);
    }
  }
  for (double &weight : matrix->floats)
    weight = static_cast<float>(weight);
  return *matrix;
}

} // namespace sluice
