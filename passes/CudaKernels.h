// SPDX-License-Identifier: Apache-2.0
// What the cuda runtime's kernels reserve, asked without a GPU: sizes follow from shapes and the limit alone.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice {

/// Scratch bytes that the cuda target reserves for the op's kernel under --workspace-limit=`limit`; 0 for ops without.
int64_t cudaWorkspaceBytes(mlir::Operation *op, int64_t limit);

} // namespace sluice
