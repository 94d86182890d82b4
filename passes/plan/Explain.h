// SPDX-License-Identifier: Apache-2.0
// The table of --explain: every activation with its bytes, life, action, reason and what the whole plan costs.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace sluice {

/// Text of many lines; a note when the module holds no plan yet.
std::string explain(mlir::ModuleOp module);

} // namespace sluice
