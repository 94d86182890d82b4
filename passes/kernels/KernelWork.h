// SPDX-License-Identifier: Apache-2.0
// What a profile with samples knows an op's kernel by.
#pragma once

#include "passes/kernels/Touches.h"
#include "passes/planner/Profile.h"

#include "mlir/IR/Operation.h"

namespace sluice {

/// How long the op's kernel takes: by samples of kernels like it (those of tools/Calibrate.cpp) where the profile has
/// some, of operands that were touched so long ago, else by its arithmetic and traffic.
planner::Seconds secondsOf(mlir::Operation *op, llvm::ArrayRef<Touch> touches, const planner::Profile &profile);

} // namespace sluice
