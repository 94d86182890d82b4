// SPDX-License-Identifier: Apache-2.0
// Where the elements of a tensor stand in another one, from which only reshapes, transposes and slices lead to it.
#ifndef SLUICE_PASSES_MOVED_ELEMENTS_H
#define SLUICE_PASSES_MOVED_ELEMENTS_H

#include "ir/Train.h"

namespace sluice {

/// Some elements of a row-major tensor, in their order: each dimension is a list of factors, outermost first.
class MovedElements {
public:
  struct Factor {
    int64_t extent, step; ///< so many, so many elements apart
  };

  /// All of a tensor.
  explicit MovedElements(mlir::RankedTensorType type);

  /// An op that through() knows; false for null.
  static bool isMovement(mlir::Operation *op);
  /// Whether what the op makes of these elements can be told so; these are those then.
  bool through(mlir::Operation *op);
  /// What through() does for these ops. False where new extents do not divide the factors; the elements are then as
  /// they were.
  void transpose(mlir::ArrayRef<int64_t> permutation);
  bool reshape(mlir::ArrayRef<int64_t> shape);

  /// Null where a dimension has no single step, or a row's elements are no neighbours.
  train::ViewAttr view(mlir::MLIRContext *context) const;
  /// All elements in order, as few factors as do, none of one element.
  mlir::SmallVector<Factor, 2> factors() const;
  /// Those of one dimension, likewise.
  mlir::SmallVector<Factor, 2> factorsOf(size_t dim) const;

private:
  using Dim = mlir::SmallVector<Factor, 2>;
  static void merge(Dim &dim);
  bool slice(Dim &dim, int64_t start, int64_t length);

  mlir::SmallVector<Dim> dims;
  int64_t offset = 0;
};

} // namespace sluice

#endif
