// SPDX-License-Identifier: Apache-2.0
// What the decisions of a plan cost and bring, by buffer: for --explain and for the comparison after a run.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Timeline.h"

#include <vector>

namespace sluice {

/// Of one buffer's decision, as simulated.
struct ActionCost {
  double seconds = 0;        ///< of copies, codec, inversion and re-runs, each on its own stream
  double stall = 0;          ///< for which compute waits because of it
  bool freesNothing = false; ///< the plan's peak would be no higher if the buffer were kept
};

/// One entry per buffer. A re-run counts for the first buffer that it brings back.
std::vector<ActionCost> actionCosts(const planner::Problem &problem, const planner::Plan &plan,
                                    const planner::Timeline &timeline);

} // namespace sluice
