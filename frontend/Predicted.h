// SPDX-License-Identifier: Apache-2.0
// What a program predicts, what it is compared with, and what of the inputs predictions need; noted as attributes of
// the module (ir/TensorName.h).
#ifndef SLUICE_FRONTEND_PREDICTED_H
#define SLUICE_FRONTEND_PREDICTED_H

#include "frontend/NodeImport.h"

namespace sluice {

/// An op that is a mean over what it compares.
bool isLossOp(mlir::Operation *op);

/// What a model that ends in its own loss predicts: the first of its other outputs that has a number or more for each
/// sample, else the scores that a loss op reads; null where there is neither.
mlir::Value predictedBesides(FunctionImport &state, mlir::Value loss);

/// The argument that a loss op compares with, or else the only one that `scores` do not depend on and could be compared
/// with by its shape; null where there is none.
mlir::Value targetOfOwnLoss(mlir::func::FuncOp function, mlir::Value loss, mlir::Value scores);

/// `scores` and `target` may be null.
void notePrediction(mlir::func::FuncOp function, mlir::Value scores, mlir::Value target);

} // namespace sluice

#endif
