// SPDX-License-Identifier: Apache-2.0
// The actions of #train.plan in the terms of the table that planner and codegen read.
#pragma once

#include "ir/Train.h"
#include "runtime/ActionTable.h"

namespace sluice::train {

static_assert(getMaxEnumValForActionKind() + 1 == std::size(actionTable),
              "the cases of ir/PlanAttrs.td are those of runtime/ActionTable.h, in the same order");

inline Action actionOf(ActionKind kind) { return static_cast<Action>(kind); }
inline ActionKind kindOf(Action action) { return static_cast<ActionKind>(action); }
inline const ActionFacts &factsOf(ActionKind kind) { return sluice::factsOf(actionOf(kind)); }

} // namespace sluice::train
