// SPDX-License-Identifier: Apache-2.0
// Planning within a limit of host memory as well.
#pragma once

#include "passes/strategies/Registry.h"

namespace sluice {

/// A plan of the strategy whose copies take at most `hostRoom` bytes of host memory, each a place of its own. Mixed (and auto) may leave
/// tensors out of the choice, the latest-born first, since the earliest have most time for their copies; other strategies run as they are.
/// Infeasible when none is found, with the smallest memory of `planner::runStrategy` where that is what lacks.
planner::Answer planWithinHost(const planner::Problem &problem, planner::Bytes memory, const std::string &strategy,
                               const planner::Options &options, planner::Bytes hostRoom);

/// Host memory of what a plan copies out; 0 for other answers.
planner::Bytes copiedOut(const planner::Problem &problem, const planner::Answer &answer);

} // namespace sluice
