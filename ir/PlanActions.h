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

/// Whether the decision is when a parameter comes from the shares of all ranks, which is no action of the plan.
inline bool isGathered(mlir::ModuleOp module, DecisionAttr decision) {
  return module->hasAttr(parameterSharesAttribute) && !decision.getAbsences().empty() &&
         decision.getAbsences().front().getKind() == AbsenceKind::AroundEnd;
}

} // namespace sluice::train
