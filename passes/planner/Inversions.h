// SPDX-License-Identifier: Apache-2.0
// Where the inversions of a plan stand. Rebuilding content early keeps it for longer, rebuilding it late keeps its
// sources for longer; sources may have to be run again or rebuilt themselves first.
#pragma once

#include "passes/planner/Program.h"

namespace sluice::planner {

/// Gives every Invert decision its absence, which ends in the backward half, as the content is rebuilt inexactly: after
/// all its sources are there, before the first access to the content, before a source is overwritten or a parameter
/// changes, and in between where the least bytes live for the fewest positions. Recomputed ops must be in the plan.
/// Decisions without such a place, as those of two buffers that are rebuilt from each other, become Keep.
void placeInversions(const Problem &problem, Plan &plan);

/// Whether the buffer's content may come back from `codec`, where the plan's absences are placed. Forward
/// ops read what they would without a plan, and what backward ops wrote has no bound of its error, so nothing may round
/// that. An inversion that reads it multiplies zfp's errors, which are absolute, and those of half precision unless it
/// is made for them.
bool mayRound(const Problem &problem, const Plan &plan, int buffer, Codec codec);

} // namespace sluice::planner
