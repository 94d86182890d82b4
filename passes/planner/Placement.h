// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a plan lie: what plan-memory hands on, so that the placed program is the one that was packed.
#pragma once

#include "passes/planner/Program.h"

#include <vector>

namespace sluice::planner {

/// A life and its offset from the end of the base; in the IR (#train.place, `at` of sched.buffer) offsets count from
/// the arena's start, base included.
struct Place {
  Life life;
  Bytes offset = 0;
};

/// Where lives lie in the arena.
struct Placement {
  std::vector<Place> places; ///< of every life that has bytes
  Bytes arena = 0;           ///< base included
};

/// Packs the lives of a plan as tightly as can be, by moments, which are finer than the steps that the plan was packed
/// by while it was sought: the arena is no larger than plan.arenaBytes where that is above 0. An arena of `enough`
/// bytes need not become smaller.
Placement placeLives(const Problem &problem, const Plan &plan, Bytes enough = 0);

} // namespace sluice::planner
