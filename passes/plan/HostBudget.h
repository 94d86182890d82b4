// SPDX-License-Identifier: Apache-2.0
// Planning within a limit of host memory as well.
#pragma once

#include "passes/strategies/Registry.h"

#include <functional>

namespace sluice {

/// Host memory of what a plan copies out, in bytes.
using HostBytes = std::function<planner::Bytes(const planner::Plan &)>;

/// A plan of the strategy whose copies take at most `hostRoom` bytes of host memory. Mixed (and auto) may leave tensors
/// out of the choice, the latest-born first, since the earliest have most time for their copies; when no such plan is
/// found within `memory`, they are infeasible with a memory within which this function finds one, the same for every
/// `memory`. Other strategies run as they are, and their plan may take more of the host. With a negative `hostRoom` all
/// do.
planner::Answer planWithinHost(const planner::Problem &problem, planner::Bytes memory, const std::string &strategy,
                               const planner::Options &options, planner::Bytes hostRoom, const HostBytes &hostBytes);

} // namespace sluice
