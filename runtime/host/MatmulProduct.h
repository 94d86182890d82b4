// SPDX-License-Identifier: Apache-2.0
// One matrix product by one of the ways of MatmulEngine.h: oneDNN's matmul, or ours ("blocked") where oneDNN has only
// its gemm, which allocates memory of its own, or none.
#pragma once

#include "runtime/host/BlockedMatmul.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/MatmulEngine.h"
#include "runtime/kernels/MatmulShape.h"

namespace sluice {

MatmulShape shapeOf(const char *node, const MatmulGeometry &geometry);

/// c = alpha op(a) op(b), added to what c holds where the shape says so.
class MatmulProduct {
public:
  MatmulProduct() = default;
  /// Rows of the result of a single product may begin `step` elements apart; 0: one after another. Throws
  /// MemoryNotAvailable where this processor lacks the algorithm that the options name.
  MatmulProduct(Node node, const MatmulGeometry &geometry, int64_t step = 0);

  size_t workspaceBytes() const;
  /// Whether run() adds a bias of one row.
  bool addsRow() const { return row; }
  /// Synchronous. `bias` is read where addsRow().
  void run(const void *a, const void *b, const void *bias, void *c, void *scratch) const;

private:
  dnnl::memory::desc a, b, c, bias;
  Primitive product; ///< absent: ours
  BlockedMatmul own;
  bool row = false;
  float alpha = 1;
};

} // namespace sluice
