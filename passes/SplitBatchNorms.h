// SPDX-License-Identifier: Apache-2.0
// The first step of fuse.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// Every train.batch_norm of the function becomes statistics and train.normalize, its backward op channel sums and
/// train.normalize_backward; with ranks, between them stands what these have in common (train.synchronize_statistics,
/// train.synchronize_sums).
void splitBatchNorms(mlir::func::FuncOp function);

} // namespace sluice
