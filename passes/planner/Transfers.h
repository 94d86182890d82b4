// SPDX-License-Identifier: Apache-2.0
// Chooses when offloaded and compressed buffers leave and return, for a set that a strategy has chosen: the part that
// every offloading strategy shares. Construction of planners' practice for the ordered no-wait schedule (Beaumont et
// al., Euro-Par 2020, Section 3.3): the forward half in forward time, the backward half in reversed time, where a
// prefetch is an offload; joined by the memory that both must respect.
#pragma once

#include "passes/planner/Program.h"

namespace sluice::planner {

/// Where a buffer may be away: positions first..last. Accesses by recomputed ops and by inversions count.
struct Gap {
  int first = 0, last = -1;
  bool empty() const { return last < first; }
};

/// The longest gap of every buffer between its forward accesses and its next access under the plan's recomputed ops and
/// inversions; empty where there is none.
std::vector<Gap> gapsOf(const Problem &problem, const Plan &plan);

/// True for the actions of content that leaves and comes back: offload, compress, invert.
bool leavesAndReturns(Action action);

/// Places inversions, then gives every Offload, Compress and Invert decision the longest gap that it can have: the
/// fewest live bytes for the plan's set. Decisions without a gap become Keep.
void widenGaps(const Problem &problem, Plan &plan);

/// Fills the positions of every Offload and Compress decision such that live bytes stay within `memory` (base included)
/// and waits are short: bytes stay until their copy has ended or the memory is needed, content returns as late as hides
/// its copy. Decisions whose bytes never need to leave become Keep, unless `mayStay` is false: then everything leaves,
/// and ops wait for copies that do not hide. False, with the plan's gaps at their longest, when even those do not fit.
bool placeTransfers(const Problem &problem, Bytes memory, Plan &plan, bool mayStay = true);

/// The forward half of placeTransfers() alone: every Offload and Compress decision, which has its longest gap, lets its
/// bytes stay until their copy has ended or the memory is needed. Decisions whose bytes never need to leave become
/// Keep, if they may.
void delayDepartures(const Problem &problem, Bytes memory, Plan &plan, bool mayStay = true);

} // namespace sluice::planner
