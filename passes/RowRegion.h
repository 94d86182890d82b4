// SPDX-License-Identifier: Apache-2.0
// A model's head as something that can be computed for some of its rows: products with weights, what is done to their
// results element by element, the cross-entropy of them, and all gradients in which rows are apart or summed.
#pragma once

#include "ir/Train.h"
#include "runtime/Result.h"

#include "llvm/ADT/MapVector.h"

namespace sluice {

/// Rows lie along the leading dimensions of a value, which have as many elements as the loss has rows. What it refers
/// to belongs to the function.
struct RowRegion {
  train::SoftmaxCrossEntropyOp loss;
  train::LossBackwardOp gradient; ///< null in functions that have none
  int64_t rows = 0;
  llvm::SetVector<mlir::Operation *> forward;  ///< from products on, the loss left out
  llvm::SetVector<mlir::Operation *> backward; ///< in program order, `gradient` left out
  llvm::DenseSet<mlir::Operation *> sums;      ///< of `backward`: their results are sums over rows
  llvm::MapVector<mlir::Value, unsigned> made; ///< results of all others, with the number of leading dimensions

  bool contains(mlir::Operation *op) const {
    return op == loss || op == gradient || forward.contains(op) || backward.contains(op);
  }
};

/// The region in front of the loss and, where a train.loss_backward reads the same scores, of what comes of that; or
/// why its rows cannot be computed apart.
Result<RowRegion> rowRegionOf(train::SoftmaxCrossEntropyOp loss);

/// Why scores may not vanish: the first op outside that reads what the region makes of rows forward; null where none
/// does.
mlir::Operation *otherReader(const RowRegion &region);

/// How many dimensions in front of the last one have `rows` elements together, the most of several; 0: none.
unsigned leadingDimensions(llvm::ArrayRef<int64_t> shape, int64_t rows);

} // namespace sluice
