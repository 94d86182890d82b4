// SPDX-License-Identifier: Apache-2.0
// How two tensors of different layouts or shapes are walked together, for kernels that move or sum elements.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Random.h"

#include <vector>

namespace sluice {

/// Logical dimensions in physical order, outermost first.
std::vector<int> physicalOrder(const Tensor &tensor);

/// Elements between neighbours along each logical dimension.
std::vector<int64_t> physicalStrides(const Tensor &tensor);

/// One dimension of both tensors; strides in elements.
struct StridedDimension {
  int64_t extent, strideX, strideY;
};

/// The dimensions of a Reorder, outermost first in y's memory, neighbours merged that both sides walk alike; one at
/// least. Throws std::invalid_argument naming `node` when x cannot become y.
std::vector<StridedDimension> reorderDimensions(const char *node, const Tensor &x, const Tensor &y,
                                                std::initializer_list<int> permutation);

/// One dimension of x and of y, its sum over the `reduced` ones, whose strideY is 0.
struct SumDimension {
  int64_t extent, strideX, strideY;
  bool reduced;
};

/// Dimensions of a SumTo, innermost of x's memory first, neighbours merged; one at least. Throws std::invalid_argument
/// naming `node` when y does not broadcast to x.
std::vector<SumDimension> sumDimensions(const char *node, const Tensor &x, const Tensor &y);

/// How join() walks its result: `outer` rows of so many bytes, of which xs have these in turn.
struct JoinedRows {
  int64_t outer, bytes;
  std::vector<int64_t> widths;
};

/// Throws std::invalid_argument naming `node` when the xs are not y's slabs along `axis`, one behind the other.
JoinedRows joinedRows(const char *node, const Tensor &y, TensorList xs, int axis);

/// A number without its fraction; the least integer where none holds it.
SLUICE_KERNEL int64_t wholeNumber(float x) {
  return x >= -9.2e18f && x <= 9.2e18f ? static_cast<int64_t>(x) : INT64_MIN;
}

} // namespace sluice
