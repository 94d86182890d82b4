// SPDX-License-Identifier: Apache-2.0
// Finds the gaps between accesses in which a buffer may be away from the device, and widens absences to whole gaps.
#pragma once

#include "passes/planner/Program.h"

namespace sluice::planner {

/// Where a buffer may be away: positions first..last. Accesses by recomputed ops and by inversions count.
struct Gap {
  int first = 0, last = -1;
  bool empty() const { return last < first; }
};

/// Longest: the one between a buffer's forward accesses and the next, as published strategies have it. Every: all
/// between two accesses, among forward ops and among backward ops, too, where one copy out may serve several returns.
enum class Gaps { Longest, Every };

/// The longest gap of every buffer between its forward accesses and its next access under the plan's recomputed ops and
/// inversions; empty where there is none.
std::vector<Gap> gapsOf(const Problem &problem, const Plan &plan);

/// By buffer, the gaps of that kind in the order of the program; none of them is empty.
std::vector<std::vector<Gap>> gapsOf(const Problem &problem, const Plan &plan, Gaps gaps);

/// Places inversions, then gives every Compress and Invert decision the longest gap that it can have, and every Offload
/// decision those of `gaps`: the fewest live bytes for the plan's set. Decisions without a gap become Keep.
void widenGaps(const Problem &problem, Plan &plan, Gaps gaps = Gaps::Longest);

} // namespace sluice::planner
