// SPDX-License-Identifier: Apache-2.0
// Checks absences against the step and sorts them by position, see PlacedAbsences.h.
#include "passes/plan/PlacedAbsences.h"

#include "passes/analysis/Masks.h"
#include "passes/planner/Words.h"

#include "ir/RuntimeTypes.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;
using planner::Action;

bool PlacedAbsences::touches(Operation *op, int s) const {
  return llvm::is_contained(storages.reads(op), s) || llvm::is_contained(storages.writes(op), s);
}

/// The last op before `position` that writes a storage; -1 for none.
int PlacedAbsences::writtenBefore(int s, int position) const {
  while (--position >= 0 && !llvm::is_contained(storages.writes(ops[position]), s)) {
  }
  return position;
}

InFlightDiagnostic PlacedAbsences::refuse(int s, const planner::Decision &d) {
  return step.emitError() << "the plan wants to " << planner::actionName(d.action) << " '" << storages[s].name << "'";
}

/// What needs the step to be said: plans may come from a file of IR, and even a checked one may ask for what programs
/// cannot do.
LogicalResult PlacedAbsences::check(int s, const planner::Decision &d, const planner::Absence &away) {
  const bool visits = !!visitorOf(storages[s]) || !!homeUpdateOf(storages[s]);
  switch (away.kind()) {
  case AbsenceKind::AroundEnd:
    if (visits)
      return checkVisit(s, d);
    return refuse(s, d) << " around the end of the step, which is for states that are at home elsewhere";
  case AbsenceKind::Between:
    if (!visits)
      return checkBetween(s, d, away);
    return refuse(s, d) << " between ops " << away.leaveAfter << " and " << away.neededBy
                        << "; it is at home elsewhere, and away around the end of the step alone";
  }
  llvm_unreachable("all kinds return");
}

/// An absence between two accesses is of what the step makes, in a form that programs can give it.
LogicalResult PlacedAbsences::checkBetween(int s, const planner::Decision &d, const planner::Absence &away) {
  const int count = ops.size();
  if (!executable(s, d, away))
    return refuse(s, d) << (d.codec ? " with " + codecName(d.codec) : "") << ", which generated programs cannot do";
  if (int last = std::max(away.freeBefore, away.neededBy); last >= count)
    return refuse(s, d) << " as far as op " << last << " of " << count;
  if (int written = writtenBefore(s, away.freeBefore); written > away.leaveAfter)
    return refuse(s, d) << " after op " << away.leaveAfter << ", which op " << written << " is the last to write";
  return success();
}

/// A visitor is there while its op runs, which may only read it, and its copies are the ones that stand around it, raw.
LogicalResult PlacedAbsences::checkVisit(int s, const planner::Decision &d) {
  const int count = ops.size();
  const planner::Absence &away = d.absences.front();
  if (d.action != Action::Offload || d.codec || d.absences.size() != 1)
    return refuse(s, d) << (d.codec ? " with " + codecName(d.codec) : "") << ", " << d.absences.size()
                        << " times; it is at home elsewhere, comes once a step and goes as it is";
  const bool inOrder = away.returnAfter < away.neededBy && away.freeBefore > away.leaveAfter;
  const auto uses = [&](Operation *op) { return touches(op, s); };
  const auto first = llvm::find_if(ops, uses), end = llvm::find_if(llvm::reverse(ops), uses).base();
  if (!inOrder || away.freeBefore > count || end - ops.begin() > away.leaveAfter + 1 ||
      first - ops.begin() < away.neededBy)
    return step.emitError() << "the plan lets '" << storages[s].name << "' come after op " << away.returnAfter
                            << " and leave before op " << away.freeBefore << " of " << count
                            << ", and it is not there when it is used";
  return success();
}

/// Sorts what has to be done for the decision by position. Absences that share a copy with the one before have a return
/// but no copy of their own.
void PlacedAbsences::add(int s, const planner::Decision &d) {
  for (auto [i, away] : llvm::enumerate(d.absences)) {
    if (d.departs(i)) {
      departures[away.leaveAfter].push_back(s);
      releases[away.freeBefore].push_back(s);
    }
    if (d.action == Action::Invert)
      rebuilds[away.neededBy].push_back(s);
    else if (factsOf(d.action).returns && !homeUpdateOf(storages[s]))
      returns[away.returnAfter].push_back(s);
    if (d.action == Action::Compress && d.codec.mask)
      if (int position = afterValues(s, away); position < static_cast<int>(ops.size()))
        masks[position].push_back(s);
  }
}

// Copies of one position are issued in the order in which the simulator serves them, which is what their times were
// planned by: on the way out those whose bytes are needed first, on the way back those that are read first.
LogicalResult PlacedAbsences::place() {
  const int count = ops.size();
  for (auto [s, d] : llvm::enumerate(plan.decisions)) {
    for (const planner::Absence &away : d.absences)
      if (failed(check(s, d, away)))
        return failure();
    add(s, d);
  }
  // At most one absence of a storage has a copy at a position.
  const auto issue = [&](Lists &lists, int planner::Absence::*at, int planner::Absence::*by) {
    for (auto &[position, list] : lists)
      llvm::stable_sort(list, [&, position = position](int s, int t) {
        const auto key = [&](int storage) {
          const auto &absences = plan.decisions[storage].absences;
          return (*llvm::find_if(absences, [&](const planner::Absence &away) { return away.*at == position; })).*by;
        };
        return key(s) < key(t);
      });
  };
  issue(departures, &planner::Absence::leaveAfter, &planner::Absence::freeBefore);
  issue(returns, &planner::Absence::returnAfter, &planner::Absence::neededBy);
  for (const planner::Recompute &r : plan.recomputes)
    for (int again : r.ops)
      if (r.before >= count || !isa<Recomputable>(ops[again]))
        return step.emitError() << "the plan recomputes op " << again << " before op " << r.before << " of " << count;
  return success();
}

/// The first position after the last op that needs the values which come back: from there on only masks are read.
int PlacedAbsences::afterValues(int s, const planner::Absence &away) const {
  int last = away.neededBy;
  for (int position = away.neededBy; position < static_cast<int>(ops.size()); ++position)
    if (touches(ops[position], s) && !readsMaskOnly(ops[position], contents[s], storages))
      last = position;
  for (const planner::Recompute &r : plan.recomputes)
    if (llvm::any_of(r.ops, [&](int again) { return touches(ops[again], s); }))
      last = std::max(last, r.before);
  for (const auto &[inverted, inversion] : inverters)
    if (const planner::Decision &d = plan.decisions[inverted];
        d.action == Action::Invert && llvm::is_contained(inversion.sources, s))
      last = std::max(last, d.absences.front().neededBy);
  return last + 1;
}

/// Whether programs can do it with this content: actions ask for a form that the codec has of its type, an op that can
/// be undone, or readers that ask no more than a mask says.
bool PlacedAbsences::executable(int s, const planner::Decision &d, const planner::Absence &away) const {
  Value content = contents[s];
  if (d.action == Action::Invert)
    return inverters.contains(s) && away.returnAfter == away.neededBy - 1 &&
           away.neededBy <= inverters.lookup(s).latest && sourcesSuffice(s);
  if (d.action == Action::Offload && !d.codec)
    return writtenBefore(s, std::min<int>(away.freeBefore, ops.size())) >= 0;
  if (!content)
    return false;
  if (planner::readDirectly(d.codec))
    return d.action == Action::Encode && d.codec.kind == Codec::Mask && maskIsPositive(content, storages);
  if (d.action == Action::Offload)
    return true; // what has no such form is copied as it is
  return d.action == Action::Compress && packedType(cast<RankedTensorType>(content.getType()), d.codec) &&
         factsOf(d.codec)->onDevice;
}

/// Where an inversion saves nothing, its sources need all bits.
bool PlacedAbsences::sourcesSuffice(int s) const {
  StorageInversion inversion = inverters.lookup(s);
  bool halves = !!inversion.op.savedType(inversion.operand);
  return llvm::all_of(inversion.sources, [&](int source) {
    const Codec codec = plan.decisions[source].codec;
    return !planner::rounds(codec) || (factsOf(codec)->guardedInversion && halves);
  });
}
