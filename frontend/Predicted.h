// SPDX-License-Identifier: Apache-2.0
// What a program predicts, what it is compared with, and what of the inputs predictions need; noted as attributes of
// the module (train.outputs; ir/TensorName.h).
#ifndef SLUICE_FRONTEND_PREDICTED_H
#define SLUICE_FRONTEND_PREDICTED_H

#include "frontend/NodeImport.h"

namespace sluice {

/// An op that is a mean over what it compares.
bool isLossOp(mlir::Operation *op);

/// The outputs of a program, in order, while a function is imported.
class Predictions {
public:
  Predictions(FunctionImport &state, mlir::func::FuncOp function) : state(state), function(function) {}

  /// An output with a loss of the kind `loss`, or none. `value`: null: nobody reads it; `part`: of its loss among those
  /// of a sum, -1: it has none of its own.
  void add(const std::string &name, mlir::Value value, const std::string &loss = "", mlir::Value target = {},
           double weight = 1, int64_t part = -1);
  /// All other outputs of the model that have a number or more for each sample and depend on none of these arguments.
  void addOthers(const llvm::DenseSet<mlir::Value> &unwanted);
  /// What a model that ends in its own loss predicts: its other outputs, first one of numbers that are no integers, or
  /// else the scores that a loss op reads.
  void addBesidesOwnLoss(mlir::Value loss);

  /// Writes them into the module; in @evaluate. Returns the values to keep, none of which shares its bytes with another
  /// or with an argument.
  llvm::SmallVector<mlir::Value> note();

private:
  mlir::Value apart(mlir::Value value);

  FunctionImport &state;
  mlir::func::FuncOp function;
  llvm::SmallVector<train::OutputAttr> outputs;
  llvm::SmallVector<mlir::Value> kept;
  llvm::DenseMap<mlir::Value, int64_t> numbers; ///< of kept values, by what was asked for
};

} // namespace sluice

#endif
