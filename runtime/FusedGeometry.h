// SPDX-License-Identifier: Apache-2.0
// How an elementwise region walks its operands: broadcasts are strides of 0, neighbouring dimensions that every operand
// walks alike are one, the innermost one is the row. Worked out once, when a kernel is made.
#pragma once

#include "runtime/Columns.h"
#include "runtime/Kernels.h"

namespace sluice {

/// Operands that a region was printed for: `types` of its inputs, then of its outputs.
struct RegionSignature {
  size_t inputs, outputs, sums;
  const DataType *types;
  /// Throws std::invalid_argument naming `node` when these are others.
  void check(const char *node, TensorList inputs, TensorList outputs, TensorList sums) const;
};

/// Rows and strides of a region. Operands are numbered inputs, outputs, sums. Few channels make short rows, so that
/// neighbouring rows are grouped into wide ones, with vectors repeated, wherever all operands allow it; sums are
/// ordered by wide rows either way.
struct FusedGeometry {
  static constexpr int maxOperands = 32;

  /// `steps` of the inputs; throws std::invalid_argument naming `node`.
  FusedGeometry(const char *node, const Shape &shape, Layout layout, TensorList inputs, const bool *steps,
                TensorList outputs, TensorList sums);

  /// Scratch bytes of a region with sums; 0 without.
  size_t workspaceBytes() const;
  /// Length of a wide row; the last one may be shorter.
  int64_t rowLength(int64_t wideRow) const { return wideRow + 1 == columns.rows ? lastRow : columns.columns; }
  /// Element offset of `operand` at the beginning of a single row.
  int64_t offset(int operand, int64_t row) const;
  /// Adds up the chunks of all sums, in order.
  void finishSums(const double *partials, float *const *sums) const;

  /// Single rows, and the length of their last one: shorter than rowExtent where one long row was cut.
  int64_t rows = 0, lastSingleRow = 0;

  Columns columns; ///< rows = wide rows, columns = their length
  int64_t lastRow = 0;
  int64_t group = 1, rowExtent = 1; ///< single rows in a wide one, and their length
  bool wide = false;                ///< all inputs continue across the rows of a group, or repeat
  bool repeats[maxOperands] = {};   ///< when wide, by input: a vector that repeats in every row
  int outer = 0;                    ///< outer dimensions after collapsing, outermost first
  int64_t extent[Shape::maxRank] = {};
  int64_t stride[maxOperands][Shape::maxRank] = {};
  int inputs = 0, outputs = 0, sums = 0;
  bool vectorSum[maxOperands] = {}; ///< by sum: a vector, or a scalar

private:
  void cutIntoRows(const bool *steps);
  void groupRows(const bool *steps);
};

} // namespace sluice
