// SPDX-License-Identifier: Apache-2.0
// What plans may do with a buffer between two accesses, in one table: planner, checker, passes, codegen and reports
// read what holds of an action from here. passes/planner/Plan.h says what the positions of its absences mean. A new
// action is a row here and in ir/PlanAttrs.td, and what CONTRIBUTING.md lists. Standard library only.
#pragma once

#include "runtime/OpRoleTable.h"

#include <cstddef>
#include <iterator>

namespace sluice {

enum class Action { Keep, Offload, Compress, Encode, Invert, Recompute };

/// How many absences a buffer with the action has: none, exactly one, or one and more. All lie between two accesses of
/// a step, but for that of a visitor (AbsenceKind::AroundEnd).
enum class Absences { None, One, Several };

/// How the positions of an absence lie in the step. Who goes by the kind does so in a switch without a default, which a
/// new one stops from compiling; who goes by what takes such absences asks the buffer (planner::Buffer::visits,
/// visitorOf() in passes/analysis/Storages.h).
enum class AbsenceKind {
  Between,   ///< from an access to a later one; of an action that does not return, for good
  AroundEnd, ///< from the last access in a step to the first in the next
};

/// The kind of an absence by two of its positions, as planner::Absence has them. They cannot tell kinds within a step
/// apart: another one of these needs more than two positions.
constexpr AbsenceKind absenceKind(int leaveAfter, int neededBy) {
  return neededBy >= 0 && neededBy <= leaveAfter ? AbsenceKind::AroundEnd : AbsenceKind::Between;
}

struct ActionFacts {
  Action action;
  const char *name;
  Absences absences;
  bool returns;    ///< an absence ends with the content on the device; else readers take the form that stands for it
  bool holdsForm;  ///< meanwhile another form of it, or what rebuilding needs, takes device memory
  bool needsCodec; ///< it is what its codec can do: plans allow it by the codec's name, not by its own
  bool rounds;     ///< whatever the codec, what comes back is not bit-equal
  OpRole role;     ///< of the ops that it adds, in reports
};

/// In the order of the enumerators.
constexpr ActionFacts actionTable[] = {
    {Action::Keep, "keep", Absences::None, false, false, false, false, OpRole::Compute},
    {Action::Offload, "offload", Absences::Several, true, false, false, false, OpRole::Offload},
    {Action::Compress, "compress", Absences::One, true, true, true, false, OpRole::Encode},
    {Action::Encode, "encode", Absences::One, false, true, true, false, OpRole::Encode},
    {Action::Invert, "invert", Absences::One, true, true, false, true, OpRole::Rebuild},
    {Action::Recompute, "recompute", Absences::None, false, false, false, false, OpRole::Rerun},
};

constexpr Action lastAction = Action::Recompute; ///< a new one stands before it

constexpr bool followsEnumerators(const ActionFacts *table, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (static_cast<size_t>(table[i].action) != i)
      return false;
  return true;
}
static_assert(followsEnumerators(actionTable, std::size(actionTable)) &&
                  actionTable[std::size(actionTable) - 1].action == lastAction,
              "a row for each action");

constexpr const ActionFacts &factsOf(Action action) { return actionTable[static_cast<size_t>(action)]; }

} // namespace sluice
