// SPDX-License-Identifier: Apache-2.0
// What a step takes op by op, from what was recorded of several steps: the numbers of profiles and of the roofline.
#pragma once

#include "runtime/Stream.h"

#include <string>
#include <vector>

namespace sluice {

/// All calls of a step that have one name.
struct OpTimes {
  std::string node, op;
  double seconds = 0;             ///< of all calls together, see timesOfOps()
  size_t calls = 0;               ///< of one step
  std::vector<double> zeros = {}; ///< of each tensor that they write, the mean of the steps; empty: not counted
};

/// From `records` of so many steps, in the order of the first calls. What has bytes is left out: copies, and kernels
/// that pack and unpack. Seconds are the medians of the steps' sums, all longer by one factor, so that together they
/// take what these ops take of a step.
std::vector<OpTimes> timesOfOps(const std::vector<OpRecord> &records, int64_t steps);

} // namespace sluice
