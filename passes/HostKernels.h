// SPDX-License-Identifier: Apache-2.0
// What the host runtime's kernels say about themselves at compile time.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice {

/// Scratch bytes that the op's kernel needs on this machine with the threads given to setThreads(). Builds the very kernel object that
/// the generated program will build; 0 for ops without one.
int64_t workspaceBytes(mlir::Operation *op);

} // namespace sluice
