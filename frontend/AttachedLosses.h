// SPDX-License-Identifier: Apache-2.0
// One loss on one value: its target, what it refuses, its op.
#ifndef SLUICE_FRONTEND_ATTACHED_LOSSES_H
#define SLUICE_FRONTEND_ATTACHED_LOSSES_H

#include "frontend/NodeImport.h"

namespace sluice {

/// The dimension of classes; -1 for losses without.
int64_t classDimension(AttachedLoss loss, int64_t rank);

/// What a loss is made of.
struct LossValues {
  mlir::Value loss;
  mlir::Value target;          ///< the function's argument
  mlir::Value scores, classes; ///< what right answers are counted of; null: nothing
};

/// Adds what data compare with to the function's arguments, unless one has that name already, and the loss op. `x`: the
/// value of `output`, with the batch in front.
Result<LossValues> createLoss(FunctionImport &state, mlir::func::FuncOp function, const OutputLoss &loss,
                              const GraphOutput &output, mlir::Value x);

} // namespace sluice

#endif
