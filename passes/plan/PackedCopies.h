// SPDX-License-Identifier: Apache-2.0
// What `codec=` of a strategy makes of the copies of its plan, and what these take of the host.
#pragma once

#include "passes/plan/PlanRequest.h"

namespace sluice {

/// A lossy codec of copies: all floats that leave for the host are packed on the way, with a mask where their signs
/// are read and the codec loses them; codec=zvc: those that are expected to shrink, where a pool takes them for the
/// host memory that saves, else as mixed chooses. Positions stay those of raw copies, so the plan is at worst more
/// careful than it need be.
void packCopies(const planner::Problem &problem, const PlanRequest &request, planner::Plan &plan);

/// Host memory, in bytes, of what the plan copies out once it is packed: a place of its own each, or all together in a
/// pool, which is no larger than that.
int64_t hostBytes(const planner::Problem &problem, const PlanRequest &request, planner::Plan plan);

} // namespace sluice
