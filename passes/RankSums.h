// SPDX-License-Identifier: Apache-2.0
// Sums over ranks in a step, as reduce-gradients makes them: as many tensors in an op as fit one message.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// What a module for several ranks asks for.
struct RanksRequest {
  bool ordered;
  int64_t sums;  ///< of a rank's batches, the digits of the counter; 0: a step has one batch
  bool weighted; ///< gradients are weighed where they are summed; else the loss was
  int shares;    ///< of each gradient, one for each of so many ranks at least; 0: all have all of it
};

/// Tensors that are summed in one op, and what they are then.
struct Bucket {
  mlir::SmallVector<mlir::Value> own;
  mlir::Operation *sum = nullptr;
  mlir::ResultRange sums() const { return sum->getResults().take_front(own.size()); }
};

/// What was made is part of what belongs to the forward op of this number.
void numberOps(mlir::Operation *first, mlir::Operation *last, int64_t ordinal);

/// Makes sums over a rank's batches, and over ranks.
class RankSums {
public:
  RankSums(mlir::ModuleOp module, mlir::func::FuncOp step, RanksRequest request)
      : symbols(module), step(step), request(request), builder(step.getContext()) {}

  int64_t reductions = 0;

protected:
  /// A variable for a sum, behind `after`.
  train::VariableOp addSum(train::VariableOp after, const mlir::Twine &name, mlir::RankedTensorType type);
  /// The rank's part of the tree. `first` is the smallest digit; the others are named after it.
  mlir::Value sumBatches(mlir::Location loc, mlir::Value x, train::VariableOp first, bool weighted);
  /// Of gradients (`mean`) or others. In their order, as many in each op as go in one message; what reads them reads
  /// the sums then.
  mlir::SmallVector<Bucket> sumTogether(mlir::ArrayRef<mlir::Value> values, bool mean);

  mlir::SymbolTable symbols;
  mlir::func::FuncOp step;
  const RanksRequest request;
  mlir::OpBuilder builder;

private:
  mlir::Value read(train::VariableOp variable);
  void sum(Bucket &bucket, bool mean);
  mlir::SmallVector<mlir::Type> shareTypes(mlir::ArrayRef<mlir::Value> values) const;
};

/// Running statistics of BatchNorms take the shares of all ranks' batches, at the end of the step.
class StatisticsSums : public RankSums {
public:
  using RankSums::RankSums;
  void run();

private:
  static int64_t ranksOf(train::UpdateStatisticsOp update);
  mlir::Operation *lastReader(train::UpdateStatisticsOp update);
  mlir::Value shareOf(train::UpdateStatisticsOp update);
  void apply(train::UpdateStatisticsOp update, mlir::Value sum);
};

} // namespace sluice
