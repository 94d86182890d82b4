// SPDX-License-Identifier: Apache-2.0
// What the host runtime's kernels say about themselves at compile time.
#pragma once

#include "ir/KernelTable.h"
#include "runtime/common/FusedGeometry.h"

namespace sluice {

/// Workspaces depend on the number of threads that the program will have; call before the first question.
void planForThreads(int threads);

/// Scratch bytes that the op's kernel needs on this machine with the threads of planForThreads(). Builds the very
/// kernel object that the generated program will build; 0 for ops without one.
int64_t workspaceBytes(mlir::Operation *op);

/// How the kernel of a fused region, on either target, walks its operands; outputs, which never shape it, are left out.
FusedGeometry geometryOf(const KernelOp &region, const FusedOperands &operands);

} // namespace sluice
