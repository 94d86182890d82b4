// SPDX-License-Identifier: Apache-2.0
// Visitors in the plans of strategies, which know nothing of them.
#pragma once

#include "passes/strategies/Registry.h"

namespace sluice::planner {

/// A strategy's plan with its visitors placed, or a faster one that left them more room and their part of the link.
/// Other answers as they are.
Answer withVisitors(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options,
                    Answer answer);

/// The problem as it is for what does not visit: copies of visitors take no time, but their part of the link, and the
/// room in which they come ahead and leave later, in part from 0 to 1, is not there.
Problem besideVisitors(const Problem &problem, double room);

} // namespace sluice::planner
