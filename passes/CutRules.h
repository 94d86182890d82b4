// SPDX-License-Identifier: Apache-2.0
// One rule for each kind of op: along which dimensions its operands and results can be cut together.
#pragma once

#include "passes/Cut.h"

#include "ir/Train.h"

namespace sluice {

/// Which rows belong together where an op is not row by row: row o of the smaller side goes with the rows from
/// o * stride - pad on of the larger one, `extent` of them.
struct Window {
  int64_t extent, stride, pad;
  bool transposed; ///< the op's rows are those of the larger side, the operand's those of the smaller one
};

/// The dimensions of one op, before anybody asks whether it pays.
struct OpAxes {
  llvm::SmallVector<std::optional<unsigned>> operands, results; ///< none: all is read, or made
  llvm::SmallVector<std::optional<Window>> windows;             ///< of the operands; none: row by row
  PartResult kind = PartResult::Rows;
  bool parted = false; ///< else the op is computed whole, though its results may be cut
  bool scaled = false;
  std::optional<unsigned> viewed;
  int64_t first = 0;
};

/// From the dimensions of the operands to those of the results. `samples`, those of the batch, is read for cuts along
/// it. What no rule knows mixes rows.
OpAxes axesOf(mlir::Operation *op, CutAlong along, int64_t samples,
              llvm::function_ref<std::optional<unsigned>(mlir::Value)> axisOf);

} // namespace sluice
