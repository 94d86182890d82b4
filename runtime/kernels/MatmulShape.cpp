// SPDX-License-Identifier: Apache-2.0
// Leading dimensions of the left factor are folded into its rows where the right one has none: one large product
// instead of many small ones.
#include "runtime/kernels/MatmulShape.h"

#include <stdexcept>
#include <string>

namespace sluice {

namespace {

[[noreturn]] void reject(const char *node, const std::string &what) {
  throw std::invalid_argument(std::string("matrix product '") + node + "': " + what);
}

int64_t extent(const Shape &shape, int fromEnd, bool transpose) {
  const int i = transpose ? 3 - fromEnd : fromEnd;
  return shape[shape.rank - i];
}

/// Elements between neighbours along batch dimension `fromEnd` (2: the innermost) of a factor; 0 where it broadcasts.
int64_t batchStride(const Shape &shape, int fromEnd) {
  if (shape.rank <= fromEnd || shape[shape.rank - 1 - fromEnd] == 1)
    return 0;
  int64_t stride = 1;
  for (int i = shape.rank - fromEnd; i < shape.rank; ++i)
    stride *= shape[i];
  return stride;
}

} // namespace

MatmulShape::MatmulShape(const char *node, const Shape &a, const Shape &b, const Shape &c, bool transposeA,
                         bool transposeB, float beta, const Shape &bias)
    : beta(beta) {
  if (a.rank < 2 || b.rank < 2 || c.rank < 2)
    reject(node, "ranks " + std::to_string(a.rank) + ", " + std::to_string(b.rank) + ", " + std::to_string(c.rank) +
                     ", expected at least 2");
  m = extent(a, 2, transposeA), k = extent(a, 1, transposeA), n = extent(b, 1, transposeB);
  if (const int64_t k2 = extent(b, 2, transposeB); k != k2)
    reject(node, "inner extents " + std::to_string(k) + " and " + std::to_string(k2));
  if (c[c.rank - 2] != m || c[c.rank - 1] != n)
    reject(node, "result is " + std::to_string(c[c.rank - 2]) + "x" + std::to_string(c[c.rank - 1]) + ", expected " +
                     std::to_string(m) + "x" + std::to_string(n));
  rows = c.elements() / n;
  takeBias(node, bias);
  if (!transposeA && b.elements() == k * n)
    m = rows;
  else
    takeBatches(a, b, c);
}

void MatmulShape::takeBias(const char *node, const Shape &bias) {
  if (bias.rank == 0 || beta == 0)
    return;
  const int64_t columns = bias[bias.rank - 1];
  biasRows = bias.elements() / columns;
  if ((columns != 1 && columns != n) || (biasRows != 1 && rows % biasRows))
    reject(node, "a bias of " + std::to_string(biasRows) + "x" + std::to_string(columns) + " for " +
                     std::to_string(rows) + "x" + std::to_string(n));
  rowBias = beta == 1 && biasRows == 1 && columns == n;
  ownBias = !rowBias;
  biasColumnStep = columns == 1 ? 0 : 1;
  biasRowStep = columns;
}

void MatmulShape::addToMatrix(float alpha, DataType result) {
  adds = ownBias && biasRows == rows && biasColumnStep == 1 && alpha == 1 && beta == 1 && result == DataType::F32;
  ownBias = ownBias && !adds;
}

void MatmulShape::takeBatches(const Shape &a, const Shape &b, const Shape &c) {
  for (int fromEnd = 2; fromEnd < c.rank; ++fromEnd) { // innermost first
    const int64_t count = c[c.rank - 1 - fromEnd], stepA = batchStride(a, fromEnd), stepB = batchStride(b, fromEnd);
    if (count == 1)
      continue;
    const bool even = outer == 0 && (batch == 1 || (stepA == strideA * batch && stepB == strideB * batch));
    if (even) {
      if (batch == 1)
        strideA = stepA, strideB = stepB;
      batch *= count;
      continue;
    }
    outerExtent[outer] = count, outerA[outer] = stepA, outerB[outer] = stepB;
    ++outer;
    loops *= count;
  }
}

int64_t MatmulShape::offset(int64_t loop, const int64_t *strides) const {
  int64_t offset = 0;
  for (int d = 0; d < outer; ++d) {
    offset += loop % outerExtent[d] * strides[d];
    loop /= outerExtent[d];
  }
  return offset;
}

} // namespace sluice
