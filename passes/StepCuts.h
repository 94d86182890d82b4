// SPDX-License-Identifier: Apache-2.0
// Where the values of a function are cut, and which ops are computed in parts.
#pragma once

#include "passes/CutRules.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sluice {

/// How a step is cut.
struct CutRequest {
  CutAlong along = CutAlong::Batch;
  int64_t samples = 0; ///< of the batch
  int64_t parts = 1;
  int64_t above = 0; ///< ops that read and write so many bytes of rows, or more, are computed in parts
};

/// Which ops are computed in parts. A sum over rows that is larger than what it is made of never is, as each part would
/// have to hold it.
///
/// Samples are the outermost in the dimension that they stand in: its extent is their number times that of a sample,
/// and all values have the same samples in a part. Rows of images are cut where an op's operands are: a window's result
/// ends where the last window does that has all its rows, so that borders move from op to op, and nothing is computed
/// twice. Windows read rows of the parts before theirs again.
class StepCuts {
public:
  /// Of a function whose arguments, but for those that all samples share, have samples along their first dimension,
  /// images their rows along the third.
  StepCuts(mlir::func::FuncOp function, const CutRequest &request,
           llvm::function_ref<bool(mlir::BlockArgument)> isShared);

  /// Null: all rows have the value in common, or it mixes them.
  const Cut *cutOf(mlir::Value value) const;

  /// Null where the op is computed for all rows at once.
  const PartRule *ruleOf(mlir::Operation *op) const;

  const CutRequest &request() const { return asked; }

private:
  using Borders = llvm::SmallVector<int64_t>;

  std::optional<unsigned> axisOf(mlir::Value value) const;
  void visit(mlir::Operation *op);
  std::optional<Borders> even(mlir::Value value, unsigned dim) const;
  std::optional<Borders> domainOf(mlir::Operation *op, const OpAxes &axes) const;
  PartRule ruleFor(mlir::Operation *op, const OpAxes &axes, const Borders &domain) const;
  bool isInParts(mlir::Value value, const Slabs &slabs) const;
  bool canPass(mlir::Operation *op) const;
  bool paysInParts(mlir::Operation *op, const OpAxes &axes) const;

  CutRequest asked;
  llvm::DenseMap<mlir::Value, Cut> cuts;
  llvm::DenseMap<mlir::Operation *, PartRule> rules;
};

} // namespace sluice
