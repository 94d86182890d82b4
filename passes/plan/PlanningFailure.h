// SPDX-License-Identifier: Apache-2.0
// What passes say of a failure besides their diagnostics, to whoever runs them and asks for it.
#pragma once

#include <cstdint>
#include <optional>

namespace sluice {

namespace planner {
struct KnownPlans;
}

struct PlanningFailure {
  /// The exit status that it deserves: 1 for a fault of the model, 2 for what was asked for and nothing can do, 3 for a
  /// budget that is too small.
  int status = 1;
  /// Where the device's budget is too small: what it was, and one that works, in bytes.
  int64_t budget = 0;
  std::optional<int64_t> smallestBudget;
  /// Two buffers live longer in the placed program than the plan that put them into common bytes had thought.
  bool placesFail = false;
  /// Not a failure: which attempt at this budget the plan comes from, 1 for the first.
  int rounds = 1;
  /// Not a failure: what earlier attempts found out, read and filled by the next; null: there is only one.
  planner::KnownPlans *known = nullptr;
};

} // namespace sluice
