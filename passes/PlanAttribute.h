// SPDX-License-Identifier: Apache-2.0
// The attribute `train.plan` of @step: what plan-memory decided, for apply-plan, schedule preface and reports.
//   {strategy, budget, base, floor, keep_arena, keep_seconds, seconds, lower_bound, longest, arena,
//    decisions = [{storage, name, bytes, first, last, action, codec, offload_after, free_before, prefetch_after,
//    needed_by, reason, node, seconds, stall,
//                  frees_nothing}...],
//    recomputes = [{before, ops = [...]}...], alternatives = [index into the `alternatives` of each op's cost...]}
// Positions count the ops of @step that have a kernel; storages count as in Buffers.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "passes/ActionCosts.h"

namespace sluice {

constexpr llvm::StringLiteral planAttributeName = "train.plan";
/// On the module after an infeasible budget: the smallest one that works, in bytes.
constexpr llvm::StringLiteral smallestBudgetName = "train.smallest_budget";
/// On the module after a failure that is not the model's: the exit status, 2 for what the command line asks for and
/// nothing can do, 3 for a budget that is too small.
constexpr llvm::StringLiteral exitStatusName = "train.exit_status";

/// Figures about a plan that are not in the plan. Bytes and seconds.
struct PlanSummary {
  int64_t budget = 0, base = 0, floor = 0, keepArena = 0;
  double keepSeconds = 0, seconds = 0, lowerBound = 0;
  double longest = 0; ///< of any single kernel or copy
};

/// `costs` and `nodes` (ONNX nodes that made them) by buffer.
mlir::DictionaryAttr planAttribute(mlir::MLIRContext *context, const planner::Problem &problem,
                                   const planner::Plan &plan, const PlanSummary &summary,
                                   const std::vector<ActionCost> &costs, const std::vector<std::string> &nodes);
/// The plan back from the attribute, with decisions for `storages` storages. Missing or malformed entries are Keep.
planner::Plan planOfAttribute(mlir::DictionaryAttr attribute, int storages);
PlanSummary summaryOfAttribute(mlir::DictionaryAttr attribute);

} // namespace sluice
