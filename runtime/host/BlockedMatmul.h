// SPDX-License-Identifier: Apache-2.0
// Matrix products of our own, where oneDNN has only its gemm, which allocates megabytes while it runs, or none for
// bf16. A block of the right factor is packed into panels while it is in the cache. Every element is one sum of floats
// in the order of the depth. Of bf16 blocks of the left factor and of the result are floats in scratch, too.
#pragma once

#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/MatmulShape.h"

#include <cstddef>

namespace sluice {

class BlockedMatmul {
public:
  BlockedMatmul() = default;
  /// Row-major factors, transposed in their last two dimensions where it says so; of F32 or BF16, and a result of F32,
  /// or of the factors' type. Rows of the result of one product begin `step` elements apart, 0: one after another.
  BlockedMatmul(const MatmulShape &shape, bool transposeA, bool transposeB, DataType factors = DataType::F32,
                DataType result = DataType::F32, int64_t step = 0);

  /// What each of threads() threads needs for its blocks.
  size_t workspaceBytes() const;
  /// c = alpha op(a) op(b), of bf16 with `row`, of c's type, added before it is stored, unless that is null; where the
  /// shape says so, c += op(a) op(b); synchronous.
  void run(const void *a, const void *b, float alpha, const void *row, void *c, void *scratch) const;

private:
  struct Block;
  int64_t columnsEach() const;
  int64_t tallestBlock() const;
  int64_t scratchEach() const;
  template <typename T, typename C>
  void runTyped(const T *a, const T *b, float alpha, const C *bias, C *c, float *scratch) const;
  void multiply(const Block &block, const float *a, const float *b, float alpha, const float *bias, float *c,
                float *work) const;
  template <typename C>
  void multiply(const Block &block, const BFloat16 *a, const BFloat16 *b, float alpha, const C *bias, C *c,
                float *work) const;

  MatmulShape shape;
  int64_t rowStepA = 0, depthStepA = 0, depthStepB = 0, columnStepB = 0, rowStepC = 0;
  DataType factors = DataType::F32, result = DataType::F32;
};

} // namespace sluice
