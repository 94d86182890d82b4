// SPDX-License-Identifier: Apache-2.0
// The loss on the model's first output, and the end of both functions.
#ifndef SLUICE_FRONTEND_LOSS_ATTACHMENT_H
#define SLUICE_FRONTEND_LOSS_ATTACHMENT_H

#include "frontend/NodeImport.h"

namespace sluice {

/// Gives the losses of `spec` that say an output by its place, from 0 on, its name. An error where the model has no so
/// many outputs.
Status nameOutputs(const OnnxFile &file, TrainingSpec &spec);

/// Adds the target argument and the loss op and returns the loss (in @evaluate also the number of correct samples when
/// the loss is cross-entropy, and the output as the model has it, or the scores that its own loss reads). A final
/// Softmax, LogSoftmax or Sigmoid is absorbed by the loss that implies it.
Status attachLoss(FunctionImport &state, mlir::func::FuncOp function);

} // namespace sluice

#endif
