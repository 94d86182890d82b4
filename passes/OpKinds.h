// SPDX-License-Identifier: Apache-2.0
// What an op of the train dialect mainly is, in the planner's words.
#pragma once

#include "ir/Train.h"
#include "passes/planner/Problem.h"

namespace sluice {

planner::OpKind kindOf(mlir::Operation *op);

} // namespace sluice
