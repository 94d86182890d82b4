// SPDX-License-Identifier: Apache-2.0
// Where the samples of a batch stand in the values of a function, and which ops can be computed for some samples alone.
#pragma once

#include "ir/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace sluice {

/// What the results of a part have to do with that of all samples.
enum class PartResult {
  Rows,      ///< it is some rows of it
  Share,     ///< all parts' results added up are it
  Mean,      ///< it is their mean, each weighted by its number of samples
  Statistics ///< mean and 1/sqrt(variance + epsilon), of which all parts' make those of all samples
};

/// How an op is computed for the samples [begin, begin + count) of a batch.
struct PartRule {
  llvm::SmallVector<std::optional<unsigned>> operands; ///< the dimension along which a part is read; none: all is read
  PartResult results = PartResult::Rows;
  bool scaled = false; ///< the result is that of all samples once it is multiplied by the part's share of them
  std::optional<unsigned> viewed; ///< the dimension of the views that attention reads by
  int64_t first = 0; ///< the op is told by `first` how many rows or elements stand before: so many for each sample
};

/// Which ops are computed in parts: those that read and write `above` bytes of samples or more. A sum over samples that
/// is larger than what it is made of never is, as each part would have to hold it.
/// Samples are the outermost in the dimension that they stand in: its extent is their number times that of a sample.
class SampleAxes {
public:
  /// Of a function whose arguments, but for those that all samples share, have `samples` along their first dimension.
  SampleAxes(mlir::func::FuncOp function, int64_t samples, llvm::function_ref<bool(mlir::BlockArgument)> isShared,
             int64_t above = 0);

  /// The dimension along which a value has the samples; none: all samples have it in common, or it mixes them.
  std::optional<unsigned> of(mlir::Value value) const;

  /// Null where the op is computed for all samples at once.
  const PartRule *ruleOf(mlir::Operation *op) const;

private:
  void visit(mlir::Operation *op);
  bool canPass(mlir::Operation *op) const;
  bool paysInParts(mlir::Operation *op, const PartRule &rule) const;

  int64_t samples, above;
  llvm::DenseMap<mlir::Value, unsigned> axes;
  llvm::DenseMap<mlir::Operation *, PartRule> rules;
};

} // namespace sluice
