// SPDX-License-Identifier: Apache-2.0
// What the host runtime's kernels say about themselves at compile time.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice {

/// Workspaces depend on the number of threads that the program will have; call before the first question.
void planForThreads(int threads);

/// Scratch bytes that the op's kernel needs on this machine with the threads of planForThreads(). Builds the very
/// kernel object that the generated program will build; 0 for ops without one.
int64_t workspaceBytes(mlir::Operation *op);

} // namespace sluice
