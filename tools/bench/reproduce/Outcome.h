// SPDX-License-Identifier: Apache-2.0
// What pages say of one plan of an op-level network.
#pragma once

#include "tools/bench/reproduce/Networks.h"

#include <map>
#include <string>

namespace sluice::bench {

struct Outcome {
  planner::Seconds seconds = 0;
  Bytes arena = 0, host = 0; ///< device and host memory
};

/// The strategy's plan where memory is ample, lossy actions allowed. Throws std::runtime_error when there is none.
Outcome outcome(const planner::Problem &problem, const std::string &strategy,
                const std::map<std::string, std::string> &knobs = {});

/// The same within `memory` bytes.
Outcome within(const planner::Problem &problem, Bytes memory, const std::string &strategy);

/// The same with the least memory that the strategy needs.
Outcome leastOf(const planner::Problem &problem, const std::string &strategy,
                const std::map<std::string, std::string> &knobs = {});

/// A shipped profile.
planner::Profile profileOf(const std::string &name);

std::string digits(double value, int decimals);
std::string percent(double share); ///< with one decimal

} // namespace sluice::bench
