// SPDX-License-Identifier: Apache-2.0
// Generated declarations of all passes, and their registration.
#pragma once

#include "ir/Train.h"
#include "passes/Cut.h"
#include "passes/plan/PlanningFailure.h"
#include "runtime/StreamTable.h"
#include "runtime/TargetTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sluice {

/// The words of an option that is a target.
struct TargetWords {
  template <typename Option> void apply(Option &option) const {
    for (const TargetFacts &facts : targetTable)
      option.getParser().addLiteralOption(facts.name, facts.target, "");
  }
};

/// The words of an option that is an arena which plans may use.
struct HomeWords {
  template <typename Option> void apply(Option &option) const {
    for (const ArenaFacts &facts : arenaTable)
      if (facts.isHome)
        option.getParser().addLiteralOption(facts.name, facts.space, "");
  }
};

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Fails, with an error at the first op of a train function that is as the pass `later` leaves it: `pass` would undo
/// it, or do nothing any more.
mlir::LogicalResult checkRunsBefore(mlir::ModuleOp module, llvm::StringRef pass, llvm::StringRef later,
                                    llvm::function_ref<bool(mlir::Operation *)> isAsItLeaves);

/// Two of the passes, which write down why they fail; `cause` must outlive them, null: nobody asks.
std::unique_ptr<mlir::Pass> createPlanMemory(PlanMemoryOptions options, PlanningFailure *cause);
std::unique_ptr<mlir::Pass> createAssignSlots(AssignSlotsOptions options, PlanningFailure *cause);

} // namespace sluice
