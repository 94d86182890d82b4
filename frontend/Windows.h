// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share: attributes of sliding windows in two dimensions, and images of other ranks brought
// to rank 4.
#ifndef SLUICE_FRONTEND_WINDOWS_H
#define SLUICE_FRONTEND_WINDOWS_H

#include "frontend/NodeImport.h"

namespace sluice {

struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations; ///< height, width
  llvm::SmallVector<int64_t> pads;                       ///< top, left, bottom, right
  /// Span of the dilated kernel along dimension i.
  int64_t span(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// x [N,C,L] as [N,C,1,L]; rank 4 as it is. Null after an error.
mlir::Value asImage(NodeImport &node, mlir::Value x);
/// An image back to rank 3 when `rank` is 3.
mlir::Value fromImage(NodeImport &node, mlir::Value image, int64_t rank);

/// Window of a node over x (rank 3 or 4 before asImage) with `kernel` extents; auto_pad is resolved for the image's
/// extents, except for transposed convolutions, which resolve it themselves.
mlir::FailureOr<Window> readWindow(NodeImport &node, mlir::Value x, llvm::ArrayRef<int64_t> kernel,
                                   bool transposed = false);

} // namespace sluice

#endif
