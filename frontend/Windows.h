// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share: attributes of sliding windows in one to three dimensions, and lines brought to
// images.
#ifndef SLUICE_FRONTEND_WINDOWS_H
#define SLUICE_FRONTEND_WINDOWS_H

#include "frontend/NodeImport.h"

namespace sluice {

/// A sliding window as kernels take it.
struct Window {
  /// One entry for each spatial dimension of the image or volume: (depth,) height, width.
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  llvm::SmallVector<int64_t> pads; ///< in front of each, then after each: top, left, bottom, right
  int dimensions() const { return static_cast<int>(kernel.size()); }
  /// Span of the dilated kernel along dimension i.
  int64_t span(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// x [N,C,L] as [N,C,1,L]; ranks 4 and 5 as they are. Null after an error.
mlir::Value asImage(NodeImport &node, mlir::Value x);
/// An image back to rank 3 when `rank` is 3.
mlir::Value fromImage(NodeImport &node, mlir::Value image, int64_t rank);

/// Window of a node over x (of rank 3 to 5, before asImage) with `kernel` extents; auto_pad is resolved for the image's
/// extents, except for transposed convolutions, which resolve it themselves. A line's window has height 1.
mlir::FailureOr<Window> readWindow(NodeImport &node, mlir::Value x, llvm::ArrayRef<int64_t> kernel,
                                   bool transposed = false);

} // namespace sluice

#endif
