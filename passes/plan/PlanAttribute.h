// SPDX-License-Identifier: Apache-2.0
// Between planner::Plan and the attribute that carries it in the IR, see ir/PlanAttrs.td.
#pragma once

#include "ir/LossyPlan.h"
#include "ir/Train.h"
#include "passes/plan/ActionCosts.h"
#include "passes/planner/Placement.h"
#include "runtime/Result.h"

namespace sluice {

/// Figures about a plan that are not in the plan, as in the attribute. Bytes and seconds.
struct PlanSummary {
  int64_t budget = 0, base = 0, floor = 0, keepArena = 0;
  double keepSeconds = 0, seconds = 0, lowerBound = 0, longest = 0;
  /// Of the device arena, where transients begin: `base` without the staging slots of batches, which count as base
  /// where one memory has both arenas.
  int64_t persistent = 0;
  int rounds = 1;
};

/// `costs` and `nodes` (ONNX nodes that made them) by buffer. `codecs` gives codecs of the problem the parameters that
/// they have in programs.
train::PlanAttr planAttribute(mlir::MLIRContext *context, const planner::Problem &problem, const planner::Plan &plan,
                              const planner::Placement &placement, const PlanSummary &summary,
                              const std::vector<ActionCost> &costs, const std::vector<std::string> &nodes,
                              llvm::function_ref<Codec(Codec)> codecs);

/// What the plan's lossy actions do to the gradients, with all activations that have packed forms.
train::LossyPlan lossyPlan(const planner::Problem &problem, const planner::Plan &plan);

/// The plan back from the attribute, with a decision for each of `storages`, Keep where the attribute has none. Errors
/// name a storage that is not among them.
Result<planner::Plan> planOfAttribute(train::PlanAttr attribute, llvm::ArrayRef<llvm::StringRef> storages);

/// That of @step, or of the program that was made of it; null: it has none.
train::PlanAttr planOfStep(mlir::ModuleOp module);

/// Of a problem's buffers, which have them from the step's storages.
llvm::SmallVector<llvm::StringRef> storageNames(const planner::Problem &problem);

} // namespace sluice
