// SPDX-License-Identifier: Apache-2.0
// Verifiers of the plan's attributes, see PlanAttrs.td: what can be said without the step. apply-plan checks the rest.
#include "ir/PlanActions.h"
#include "runtime/CodecTable.h"
#include "runtime/StreamTable.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Bounds may be infinite.
static bool isTime(FloatAttr seconds) { return seconds.getValueAsDouble() >= 0; }

/// Of a position that the action has no use for.
static bool isUnset(int32_t position) { return position == -1; }

/// As planner::Absence has the positions.
static bool inOrder(ActionKind action, AbsenceAttr a) {
  const bool leaves = a.getLeaveAfter() < a.getFreeBefore(), comes = a.getReturnAfter() < a.getNeededBy();
  switch (a.getKind()) {
  case AbsenceKind::AroundEnd:
    return action == ActionKind::Offload && -1 <= a.getReturnAfter() && comes && leaves;
  case AbsenceKind::Between:
    return 0 <= a.getLeaveAfter() && leaves &&
           (factsOf(action).returns
                ? a.getFreeBefore() <= a.getReturnAfter() && comes
                : isUnset(a.getReturnAfter()) && (isUnset(a.getNeededBy()) || a.getFreeBefore() <= a.getNeededBy()));
  }
  return false;
}

static LogicalResult verifyAbsence(function_ref<InFlightDiagnostic()> emitError, StringAttr storage, ActionKind action,
                                   AbsenceAttr a) {
  if (inOrder(action, a))
    return success();
  return emitError() << "the plan's positions for " << storage << ", to " << stringifyActionKind(action)
                     << ", are out of order: copied after " << a.getLeaveAfter() << ", free before "
                     << a.getFreeBefore() << ", copied back after " << a.getReturnAfter() << ", needed by "
                     << a.getNeededBy();
}

LogicalResult DecisionAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr storage, ActionKind action,
                                   StringAttr codec, int64_t bytes, int32_t, int32_t, StringAttr, StringAttr,
                                   FloatAttr seconds, FloatAttr stall, bool, ArrayRef<AbsenceAttr> absences) {
  if (bytes < 0 || !isTime(seconds) || !isTime(stall))
    return emitError() << "the plan's figures for " << storage << " are below 0: " << bytes << " bytes, " << seconds
                       << ", " << stall;
  if (!parseForm(codec.getValue()))
    return emitError() << "the plan packs " << storage << " with " << codec << ", which is no codec";
  const Absences allowed = factsOf(action).absences;
  const bool stays = allowed == Absences::None;
  if ((stays || action == ActionKind::Invert) && !codec.empty())
    return emitError() << "the plan packs " << storage << " with " << codec << ", to " << stringifyActionKind(action);
  if (factsOf(action).needsCodec && codec.empty())
    return emitError() << "the plan names no codec for " << storage << ", to " << stringifyActionKind(action);
  if (stays ? !absences.empty() : absences.empty() || (absences.size() > 1 && allowed != Absences::Several))
    return emitError() << "the plan takes " << storage << " away " << absences.size() << " times, to "
                       << stringifyActionKind(action);
  for (auto [i, a] : llvm::enumerate(absences)) {
    if (failed(verifyAbsence(emitError, storage, action, a)))
      return failure();
    const AbsenceAttr before = i > 0 ? absences[i - 1] : AbsenceAttr();
    if (before && (a.getFreeBefore() <= before.getNeededBy() ||
                   (a.getLeaveAfter() != before.getLeaveAfter() && a.getLeaveAfter() < before.getNeededBy())))
      return emitError() << "the plan's absences of " << storage << " overlap: needed by " << before.getNeededBy()
                         << ", then copied after " << a.getLeaveAfter() << " and free before " << a.getFreeBefore();
  }
  return success();
}

LogicalResult RecomputeAttr::verify(function_ref<InFlightDiagnostic()> emitError, int32_t before,
                                    ArrayRef<int32_t> ops) {
  for (int32_t op : ops)
    if (op < 0 || op >= before)
      return emitError() << "the plan recomputes op " << op << " before op " << before;
  return success();
}

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr storage, PlaceForm form,
                                int32_t step, int64_t offset) {
  if (step < 0 || offset < 0)
    return emitError() << "the plan places " << storage << " at byte " << offset << " from step " << step << " on";
  if (storage.empty() != (form == PlaceForm::Workspace))
    return emitError() << "the plan places the " << stringifyPlaceForm(form) << " bytes of storage " << storage
                       << ": workspaces have none, others have one";
  return success();
}

static LogicalResult verifyFigures(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> sizes,
                                   ArrayRef<FloatAttr> times) {
  for (int64_t bytes : sizes)
    if (bytes < 0)
      return emitError() << "the plan has a figure of " << bytes << " bytes";
  for (FloatAttr time : times)
    if (!isTime(time))
      return emitError() << "the plan has a time of " << time;
  return success();
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr, int64_t budget, int64_t arena,
                               int64_t keepArena, int64_t base, int64_t floor, FloatAttr seconds, FloatAttr keepSeconds,
                               FloatAttr lowerBound, FloatAttr longest, StringAttr home, int32_t rounds,
                               ArrayRef<DecisionAttr> decisions, ArrayRef<RecomputeAttr> recomputes,
                               ArrayRef<PlaceAttr> places, ArrayRef<int32_t> alternatives) {
  if (failed(verifyFigures(emitError, {budget, arena, keepArena, base, floor},
                           {seconds, keepSeconds, lowerBound, longest})))
    return failure();
  if (!factsOf(homeOf(home.getValue())).isHome)
    return emitError() << "the plan offloads to " << home << ", which is no arena for that";
  llvm::StringSet<> decided;
  for (DecisionAttr decision : decisions)
    if (!decided.insert(decision.getStorage().getValue()).second)
      return emitError() << "the plan decides twice for " << decision.getStorage();
  if (rounds < 1)
    return emitError() << "the plan was made " << rounds << " times";
  llvm::DenseSet<std::tuple<StringAttr, PlaceForm, int32_t>> placed;
  for (PlaceAttr place : places)
    if (!placed.insert({place.getStorage(), place.getForm(), place.getStep()}).second)
      return emitError() << "the plan places " << place.getStorage() << " twice from step " << place.getStep() << " on";
  for (size_t i = 1; i < recomputes.size(); ++i)
    if (recomputes[i].getBefore() < recomputes[i - 1].getBefore())
      return emitError() << "the plan recomputes before op " << recomputes[i].getBefore() << " after it did before op "
                         << recomputes[i - 1].getBefore();
  for (auto [op, chosen] : llvm::enumerate(alternatives))
    if (chosen < 0)
      return emitError() << "the plan chooses alternative " << chosen << " of op " << op;
  return success();
}
