// SPDX-License-Identifier: Apache-2.0
// Chooses when offloaded and compressed buffers leave and return, for a set that a strategy has chosen: the part that
// every offloading strategy shares. Construction of planners' practice for the ordered no-wait schedule (Beaumont et
// al., Euro-Par 2020, Section 3.3): the forward half in forward time, the backward half in reversed time, where a
// prefetch is an offload; joined by the memory that both must respect.
#pragma once

#include "passes/planner/Gaps.h"

namespace sluice::planner {

/// How placeTransfers() decides.
struct Placing {
  bool mayStay = true; ///< what never needs to leave stays; else everything leaves, and ops wait for copies
  Gaps gaps = Gaps::Longest;
};

/// Fills the absences of every Offload and Compress decision such that live bytes stay within `memory` (base included)
/// and waits are short: bytes stay until their copy has ended or the memory is needed, content returns as late as hides
/// its copy. Of every gap those are used that memory has no room to do without, the longest first. Decisions without
/// absences become Keep. False, with the plan's gaps at their longest, when even those do not fit.
bool placeTransfers(const Problem &problem, Bytes memory, Plan &plan, Placing placing = {});

/// The forward half of placeTransfers() alone: every absence, which is as long as its gap, begins when its copy has
/// ended or the memory is needed. Absences that are not needed go, if `mayStay`.
void delayDepartures(const Problem &problem, Bytes memory, Plan &plan, bool mayStay = true);

} // namespace sluice::planner
