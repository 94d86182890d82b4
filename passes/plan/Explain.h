// SPDX-License-Identifier: Apache-2.0
// The table of --explain: every activation with its bytes, life, action, reason and what the whole plan costs.
#pragma once

#include "ir/Train.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace sluice {

/// Text of many lines; a note when the module holds no plan yet.
std::string explain(mlir::ModuleOp module);

/// ", at most 2.1 % above the fastest plan": what the plan's lower bound says of its predicted seconds. Empty for a
/// plan without a bound.
std::string gapText(train::PlanAttr plan);

} // namespace sluice
