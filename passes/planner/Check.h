// SPDX-License-Identifier: Apache-2.0
// The checker: replays a plan, and a timeline, against the problem. It trusts nothing that the planner computed and
// shares no helper with program expansion, simulator or strategies but what the plan's own positions mean (Plan.h,
// runtime/ActionTable.h) and which link is whose (Problem.h); it is meant to be dumber than they are.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Timeline.h"
#include "runtime/Result.h"

#include <string>
#include <vector>

namespace sluice::planner {

/// Replays the plan in program order: every access finds its buffer on the device with the content that the original
/// program has there, every position makes sense, live bytes stay within `memory` (base included), and errors within
/// the problem's error budget. Names the first violation with both numbers.
Status checkPlan(const Problem &problem, const Plan &plan, Bytes memory);

/// Adds up the squares of the errors of everything that rounds; part of checkPlan(). Names what exceeds the error
/// budget, or whose error nobody knows.
Status checkErrors(const Problem &problem, const Plan &plan);

/// Replays a timeline of a plan that checkPlan() accepts: events name what the problem has, streams run one thing at a
/// time, ops in order, copies start after what they copy, content is back before it is read, no byte is reused before
/// its copy out has ended. Names the first violation with its times.
Status checkTimeline(const Problem &problem, const Plan &plan, const Timeline &timeline);

/// A time as messages say it.
std::string textOf(Seconds seconds);

/// Each op that has an exchange exchanges once, in the order of ops, for as long as it takes, from when compute has
/// come to it until a later op touches its buffers; part of checkTimeline(). `starts` and `ends`: of each op on
/// compute.
Status checkExchanges(const Problem &problem, const Timeline &timeline, const std::vector<Seconds> &starts,
                      const std::vector<Seconds> &ends);

/// Each buffer that an op sends home is used there once, after its copy and before the position that waits for it; part
/// of checkTimeline(), after its copies were looked at.
Status checkUsesAtHome(const Problem &problem, const Plan &plan, const Timeline &timeline,
                       const std::vector<Seconds> &starts, const std::vector<Seconds> &ends);

/// Of an offloaded buffer: bytes that cross the link, and the seconds that packing or unpacking on the way takes at
/// least.
double crossingBytes(const Problem &problem, const Plan &plan, int b);
Seconds leastPacking(const Problem &problem, const Plan &plan, int b, bool leaves);
/// Seconds of the codec of what has a packed form.
Seconds leastCodec(const Problem &problem, const Plan &plan, int b, bool leaves);

} // namespace sluice::planner
