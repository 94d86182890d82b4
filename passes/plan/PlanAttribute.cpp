// SPDX-License-Identifier: Apache-2.0
// Writing and reading of `train.plan`, see PlanAttribute.h.
#include "passes/plan/PlanAttribute.h"

#include "ir/PlanActions.h"
#include "passes/planner/Errors.h"
#include "passes/planner/Words.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// First and last op that touches every buffer, for reports.
struct Lives {
  std::vector<int> first, last;
  /// First and last op that touch each buffer; -1 where none does.
  explicit Lives(const planner::Problem &problem)
      : first(problem.buffers.size(), -1), last(problem.buffers.size(), -1) {
    for (size_t op = 0; op < problem.ops.size(); ++op)
      for (const auto *list : {&problem.ops[op].reads, &problem.ops[op].writes})
        for (int buffer : *list) {
          if (first[buffer] < 0)
            first[buffer] = op;
          last[buffer] = op;
        }
  }
};

SmallVector<AbsenceAttr> absencesOf(MLIRContext *context, const planner::Decision &decision) {
  return llvm::map_to_vector(decision.absences, [&](const planner::Absence &away) {
    return AbsenceAttr::get(context, away.leaveAfter, away.freeBefore, away.returnAfter, away.neededBy);
  });
}

PlaceForm formOf(planner::Life::Form form) {
  switch (form) {
  case planner::Life::Form::Raw:
    return PlaceForm::Raw;
  case planner::Life::Form::Packed:
    return PlaceForm::Packed;
  case planner::Life::Form::Workspace:
    return PlaceForm::Workspace;
  }
  llvm_unreachable("not a form");
}

} // namespace

// Reports are about activations: other buffers are listed only where something happens to them. Offsets count from the
// arena's start in the attribute, from the end of the base in the planner.
PlanAttr sluice::planAttribute(MLIRContext *context, const planner::Problem &problem, const planner::Plan &plan,
                               const planner::Placement &placement, const PlanSummary &summary,
                               const std::vector<ActionCost> &costs, const std::vector<std::string> &nodes,
                               llvm::function_ref<Codec(Codec)> codecs) {
  Builder b(context);
  const Lives lives(problem);
  SmallVector<DecisionAttr> decisions;
  for (auto [i, d] : llvm::enumerate(plan.decisions))
    if (const planner::Buffer &buffer = problem.buffers[i]; buffer.activation || d.action != planner::Action::Keep)
      decisions.push_back(DecisionAttr::get(context, b.getStringAttr(buffer.name), kindOf(d.action),
                                            b.getStringAttr(codecName(codecs(d.codec))), buffer.bytes, lives.first[i],
                                            lives.last[i], b.getStringAttr(nodes[i]), b.getStringAttr(d.reason),
                                            b.getF64FloatAttr(costs[i].seconds), b.getF64FloatAttr(costs[i].stall),
                                            costs[i].freesNothing, absencesOf(context, d)));
  SmallVector<RecomputeAttr> recomputes;
  for (const planner::Recompute &r : plan.recomputes)
    recomputes.push_back(RecomputeAttr::get(context, r.before, r.ops));
  SmallVector<PlaceAttr> places;
  for (const auto &[life, offset] : placement.places)
    places.push_back(PlaceAttr::get(context, b.getStringAttr(life.buffer < 0 ? "" : problem.buffers[life.buffer].name),
                                    formOf(life.form), life.first, summary.persistent + offset));
  return PlanAttr::get(context, b.getStringAttr(plan.strategy), summary.budget, placement.arena, summary.keepArena,
                       summary.base, summary.floor, b.getF64FloatAttr(summary.seconds),
                       b.getF64FloatAttr(summary.keepSeconds), b.getF64FloatAttr(summary.lowerBound),
                       b.getF64FloatAttr(summary.longest), b.getStringAttr(factsOf(problem.home).name), summary.rounds,
                       decisions, recomputes, places, plan.alternatives);
}

LossyPlan sluice::lossyPlan(const planner::Problem &problem, const planner::Plan &plan) {
  LossyPlan lossy;
  if (problem.errorBudget) {
    lossy.budget = *problem.errorBudget;
    lossy.error = planner::totalError(problem, plan);
    lossy.usual = problem.errorsAreDefaults;
  }
  for (auto [buffer, decision] : llvm::zip(problem.buffers, plan.decisions))
    if (const double error = problem.errorBudget ? planner::errorOf(buffer, decision) : 0; buffer.compared || error > 0)
      lossy.tensors.push_back({buffer.name, buffer.compared.value_or(sluice::Comparison::Otherwise), error});
  return lossy;
}

/// By name, since the IR may have been changed or written by hand: what names no storage is an error, what the
/// attribute leaves out stays.
Result<planner::Plan> sluice::planOfAttribute(PlanAttr attribute, ArrayRef<StringRef> storages) {
  llvm::StringMap<int> indexOf;
  for (auto [index, name] : llvm::enumerate(storages))
    indexOf[name] = index;
  planner::Plan plan;
  plan.strategy = attribute.getStrategy().str();
  plan.arenaBytes = attribute.getArena();
  plan.decisions.resize(storages.size());
  for (DecisionAttr entry : attribute.getDecisions()) {
    auto found = indexOf.find(entry.getStorage().getValue());
    if (found == indexOf.end())
      return Error{"the plan decides for '" + entry.getStorage().str() + "', which is no storage of the step"};
    planner::Decision &d = plan.decisions[found->second];
    d.action = actionOf(entry.getAction());
    d.codec = *parseForm(entry.getCodec().getValue()); // its verifier has read it
    d.reason = entry.getReason().str();
    for (AbsenceAttr away : entry.getAbsences())
      d.absences.push_back({away.getLeaveAfter(), away.getFreeBefore(), away.getReturnAfter(), away.getNeededBy()});
  }
  for (PlaceAttr place : attribute.getPlaces())
    if (StringRef storage = place.getStorage(); !storage.empty() && !indexOf.contains(storage))
      return Error{"the plan places '" + storage.str() + "', which is no storage of the step"};
  for (RecomputeAttr entry : attribute.getRecomputes())
    plan.recomputes.push_back({entry.getBefore(), entry.getOps().vec()});
  plan.alternatives.assign(attribute.getAlternatives().begin(), attribute.getAlternatives().end());
  return plan;
}

PlanAttr sluice::planOfStep(ModuleOp module) {
  Operation *step = module.lookupSymbol("step");
  return step ? attr::get<attr::Plan>(step) : PlanAttr();
}

SmallVector<StringRef> sluice::storageNames(const planner::Problem &problem) {
  SmallVector<StringRef> names;
  for (const planner::Buffer &buffer : problem.buffers)
    names.push_back(buffer.name);
  return names;
}
