// SPDX-License-Identifier: Apache-2.0
// Whether a scheduled program computes what the planned function says, op by op and value by value.
#pragma once

#include "ir/Train.h"

#include "mlir/IR/SymbolTable.h"

namespace sluice {

/// V8 of verify-schedule: every op of the function that `program` names has one run or copy of the program, with the
/// calls, types, scratch and facts that the op itself asks for; what it reads is what the op's operands became, what it
/// writes is what its results become; nothing else runs. Succeeds where the program names no function. An error begins
/// with V8 and names the step or the op that has none.
mlir::LogicalResult checkAgainstStep(const mlir::SymbolTable &symbols, sched::ProgramOp program);

} // namespace sluice
