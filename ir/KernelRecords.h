// SPDX-License-Identifier: Apache-2.0
// What programs record of an op's kernels, and how fast these could compute: for estimates of time and for what
// programs know of their own ops.
#pragma once

#include "ir/Train.h"

#include <string>

namespace sluice::train {

/// Under which node's name records are filed: that of the op's node, and what the plan runs the op for.
std::string recordedNode(HasKernel kernel);

/// How often the kernel's launchName() is recorded: once for every object, or for a region or function.
int recordedCalls(HasKernel kernel);

/// The precision that the op's arithmetic runs in, as profiles name it: products run on tensor cores unless their
/// factors are f32 and shall stay so.
std::string arithmeticOf(mlir::Operation *op);

} // namespace sluice::train
