// SPDX-License-Identifier: Apache-2.0
// When buffers come that visit the device, and when they leave: after a strategy has planned the rest, in what memory
// it left.
#pragma once

#include "passes/planner/Plan.h"

namespace sluice::planner {

/// Whether any buffer visits.
bool hasVisitors(const Problem &problem);

/// Lets visitors come so early and leave so late that their copies run beside other ops, one after the other, as far as
/// live bytes stay within `memory` (base included). Who finds no room comes right before its op and leaves right after
/// it. `plan` has them as Keep; its peakBytes and arenaBytes are not brought up to date.
Plan withVisits(const Problem &problem, Bytes memory, Plan plan);

} // namespace sluice::planner
