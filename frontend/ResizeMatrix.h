// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize along one dimension as a matrix: whatever mode, coordinates, antialiasing and crop, an element of the
// result is a sum of elements with factors that are known at compile time. No MLIR in here.
#ifndef SLUICE_FRONTEND_RESIZE_MATRIX_H
#define SLUICE_FRONTEND_RESIZE_MATRIX_H

#include "frontend/HostTensor.h"
#include "runtime/Result.h"
#include <string>

namespace sluice {

/// As ONNX names them, opset 19; where the text is vague, onnx.reference decides.
struct ResizeRule {
  std::string mode = "nearest";           ///< nearest, linear, cubic
  std::string coordinates = "half_pixel"; ///< coordinate_transformation_mode
  std::string nearest = "round_prefer_floor";
  double cubicFactor = -0.75;  ///< cubic_coeff_a
  bool excludeOutside = false; ///< what lies outside has no weight, instead of that of the edge
  bool antialias = false;      ///< kernels as wide as what one element of a smaller result stands for
};

/// One dimension: its extent, that of the result, what ONNX scales by, and the part that tf_crop_and_resize takes.
struct ResizedExtent {
  int64_t from, to;
  double scale, cropStart = 0, cropEnd = 1;
};

/// [to, from], float32; an error names the attribute that makes no sense, or says that the matrix is too large. Rows of
/// elements outside a crop are zero, and `outside` tells that there are some.
Result<HostTensor> resizeMatrix(const ResizeRule &rule, const ResizedExtent &extent, bool &outside);

} // namespace sluice

#endif
