// SPDX-License-Identifier: Apache-2.0
// Which functions see running averages of parameters.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// Lets all functions but `steps` read a parameter's running average, the last state of its update, in its place.
void readAverages(mlir::ModuleOp module, llvm::ArrayRef<mlir::func::FuncOp> steps);

} // namespace sluice
