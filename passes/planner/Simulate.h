// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a plan: one compute stream, one copy engine a direction of the link to the arena of what is
// offloaded, and of that to the home of visitors where it is another one, one codec stream, one communication stream,
// and the waits that the plan's positions imply. Model of O. Beaumont, L. Eyraud-Dubois, A. Shilova, Optimal GPU-CPU
// Offloading Strategies for DNN Training, Euro-Par 2020, Section 3, with whole tensors (Problem 1), on a branching
// program and with separate directions.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Timeline.h"

namespace sluice::planner {

/// Runs the plan's program. Copies out are served in the order (leaveAfter, freeBefore, buffer), copies in by
/// (returnAfter, neededBy, buffer); the compiler must issue them so. With `link.duplex` 0 both directions share one
/// engine, outs first; an arena with one stream for both serves copies in the order (after, outs first); otherwise each
/// direction runs at its own rate alone and at `duplex` when both are busy. A copy in starts when its op has ended and
/// every copy out whose bytes are counted free by then has ended. Compressions run on the codec stream by the same
/// rules, one job at a time, packing first. What runs on the compute stream takes `link.contention` longer for every
/// byte copied meanwhile, `packingContention` for every second that such a copy's codec needs, and `codecContention`
/// for every second of the codec stream, `exchangeContention` for every second of the communication stream, which
/// serves ops in their order. The plan must be complete (positions set) and refer to valid indices; see Check.h for a
/// test. Streams have no priorities here (StreamFacts::urgent is the cuda runtime's): what they take from one another
/// is in the three contentions.
Timeline simulate(const Problem &problem, const Plan &plan);

/// Bytes that cross the link one way for an offloaded buffer under its codec: those of its packed form; zvc leaves out
/// zeros and adds a bit for each element, unless it packs after the link.
Bytes copiedBytes(const Problem &problem, int buffer, const Decision &decision);

/// Seconds that packing an offloaded buffer (`toHost`) or unpacking it takes at least, beside the copy; 0 without a
/// codec.
Seconds packingSeconds(const Problem &problem, int buffer, const Decision &decision, bool toHost);

/// Seconds that compute loses while an offloaded buffer is copied one way beside it.
Seconds lostToCopy(const Problem &problem, int buffer, const Decision &decision, bool toHost);

/// Of the longest kernel, copy or job of a codec.
Seconds longestTask(const Timeline &timeline);

/// Bytes of the link per second that the copy's codec can keep up with; infinite without one.
double copyRateLimit(const Problem &problem, int buffer, const Decision &decision, bool toHost);

/// Seconds of a copy when the other direction is idle.
Seconds copySeconds(const Problem &problem, int buffer, const Decision &decision, bool toHost);

/// Whether zvc is worth it for copies of a buffer. It adds a bit an element, so that dense tensors would grow. After
/// the link, or into a pool (`pooled`), it saves host memory; before the link and into a slot of the raw size it has to
/// be faster than a raw copy there and back.
bool zerosPay(const Problem &problem, int buffer, bool pooled);

} // namespace sluice::planner
