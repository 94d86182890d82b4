// SPDX-License-Identifier: Apache-2.0
// Matrix products of our own, where oneDNN has only its gemm, which allocates megabytes while it runs. A block of the
// right factor is packed into panels while it is in the cache. Every element is one sum in the order of the depth.
#pragma once

#include "runtime/kernels/MatmulShape.h"

#include <cstddef>

namespace sluice {

class BlockedMatmul {
public:
  BlockedMatmul() = default;
  /// Row-major factors, transposed in their last two dimensions where it says so.
  BlockedMatmul(const MatmulShape &shape, bool transposeA, bool transposeB);

  /// A packed block for each of threads() threads.
  size_t workspaceBytes() const;
  /// c = alpha op(a) op(b), without a bias; synchronous.
  void run(const float *a, const float *b, float alpha, float *c, void *scratch) const;

private:
  struct Block;
  int64_t columnsEach() const;
  void multiply(const Block &block, const float *a, const float *b, float alpha, float *c, float *work) const;

  MatmulShape shape;
  int64_t rowStepA = 0, depthStepA = 0, depthStepB = 0, columnStepB = 0;
};

} // namespace sluice
