// SPDX-License-Identifier: Apache-2.0
// Axes of a resize from shapes and the model's attributes.
#include "runtime/kernels/ResizeTaps.h"

namespace sluice {

ResizeAxis resizeAxis(const char *node, const Shape &x, const Shape &y, int dimension, float scale, ResizeMode mode,
                      ResizeCoordinates coordinates, NearestRounding rounding) {
  if (x.rank != 4 || y.rank != 4 || x[0] != y[0] || x[1] != y[1])
    throw std::invalid_argument(std::string("resize '") + node +
                                "': input and output need rank 4 and equal batch and channels, got " +
                                std::to_string(x[0]) + "x" + std::to_string(x[1]) + " and " + std::to_string(y[0]) +
                                "x" + std::to_string(y[1]));
  const double ratio =
      scale > 0 ? static_cast<double>(scale) : static_cast<double>(y[dimension]) / static_cast<double>(x[dimension]);
  return {x[dimension], y[dimension], ratio, mode, coordinates, rounding};
}

} // namespace sluice
