// SPDX-License-Identifier: Apache-2.0
// A matrix product as numbers: extents, how leading dimensions become batches, where the bias goes.
#pragma once

#include "runtime/Tensor.h"

namespace sluice {

/// c [.., M, N] = op(a) op(b) + beta * bias, see Matmul. A batch of `batch` products whose factors lie strideA and
/// strideB elements apart (0: the same one), `loops` times at offsetA(i) and offsetB(i); c is contiguous.
struct MatmulShape {
  MatmulShape() = default;
  /// Throws std::invalid_argument naming `node` when the shapes do not fit.
  MatmulShape(const char *node, const Shape &a, const Shape &b, const Shape &c, bool transposeA, bool transposeB,
              float beta, const Shape &bias);

  /// Where the bias is a matrix like c, both of floats, whether the product is added to it: then c may be the bias.
  /// There is no bias of our own to add then.
  void addToMatrix(float alpha, DataType result);

  int64_t offsetA(int64_t loop) const { return offset(loop, outerA); }
  int64_t offsetB(int64_t loop) const { return offset(loop, outerB); }

  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1, strideA = 0, strideB = 0, loops = 1;
  int64_t rows = 0;     ///< of c, all batches
  bool rowBias = false; ///< bias [N] of c's type, beta 1: libraries add it on their way
  bool ownBias = false; ///< bias element (r % biasRows) * biasRowStep + column * biasColumnStep, times beta
  bool adds = false;    ///< see addToMatrix()
  int64_t biasRows = 1, biasRowStep = 0, biasColumnStep = 0;
  float beta = 1;

private:
  void takeBias(const char *node, const Shape &bias);
  void takeBatches(const Shape &a, const Shape &b, const Shape &c);
  int64_t offset(int64_t loop, const int64_t *strides) const;

  int outer = 0; ///< dimensions of the loop, innermost first
  int64_t outerExtent[Shape::maxRank] = {}, outerA[Shape::maxRank] = {}, outerB[Shape::maxRank] = {};
};

} // namespace sluice
