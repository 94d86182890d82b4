// SPDX-License-Identifier: Apache-2.0
// A part of fuse's first step.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// Statistics of tensors that were joined along their channels become those of the parts, joined, where most channels
/// have some already: a layer of a DenseNet then reads what the one before it has made, and not all before it once
/// more. The function has no train.batch_norm.
void joinStatistics(mlir::func::FuncOp function);

} // namespace sluice
