// SPDX-License-Identifier: Apache-2.0
// What the programs of a module have in common.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// V1, across placed programs: one size for each arena, one place for each buffer that outlives a step, in bytes that
/// nothing else of any program has.
mlir::LogicalResult checkShared(mlir::ModuleOp module);

} // namespace sluice
