// SPDX-License-Identifier: Apache-2.0
// Chooses when offloaded and compressed buffers leave and return, for a set that a strategy has chosen: the part that
// every offloading strategy shares. Builds the ordered no-wait schedule of Beaumont et al. (Euro-Par 2020, Section
// 3.3): plans the forward half forwards in time and the backward half backwards, where a prefetch becomes an offload.
// Both halves share one memory limit.
#pragma once

#include "passes/planner/Gaps.h"

namespace sluice::planner {

/// How placeTransfers() decides.
struct Placing {
  bool mayStay = true; ///< buffers that need not leave stay; else all leave, and ops wait for their copies
  Gaps gaps = Gaps::Longest;
};

/// Fills the absences of every Offload and Compress decision such that live bytes stay within `memory` (base included)
/// and waits are short: bytes stay until their copy has ended or the memory is needed, content returns as late as
/// possible while its copy stays hidden. With Gaps::Every, uses a gap only if the plan does not fit without it, longest
/// gaps first. Decisions without absences become Keep. False, with the plan's gaps at their longest, when even those do
/// not fit.
bool placeTransfers(const Problem &problem, Bytes memory, Plan &plan, Placing placing = {});

/// The forward half of placeTransfers() alone: every absence, which is as long as its gap, begins when its copy has
/// ended or the memory is needed. Absences that are not needed go, if `mayStay`.
void delayDepartures(const Problem &problem, Bytes memory, Plan &plan, bool mayStay = true);

} // namespace sluice::planner
