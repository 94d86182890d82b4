// SPDX-License-Identifier: Apache-2.0
// The dynamic program by itself, for strategies that build on its sets.
#pragma once

#include "passes/planner/Chain.h"

#include <optional>
#include <vector>

namespace sluice::planner {

/// A set that the recursion ends with.
struct DynProgSet {
  std::vector<bool> offloaded; ///< x_0..x_L
  Seconds makespan = 0;        ///< in the partial-release model
};

/// Offload sets by increasing makespan of the partial-release model, at most `count`; empty when no set fits. The first
/// is optimal among ordered schedules unless `exact` comes back false: then some layer had more undominated states than
/// `limit` and kept a sample.
std::vector<DynProgSet> dynprogSets(const Chain &chain, double memory, size_t count, size_t limit, bool &exact);

/// Seconds that no ordered schedule beats, whether tensors leave as a whole or in parts: states that are more than
/// `limit` become fewer ones that are at least as good. Empty when no set fits.
std::optional<Seconds> dynprogBound(const Chain &chain, double memory, size_t limit);

} // namespace sluice::planner
