// SPDX-License-Identifier: Apache-2.0
// Trade-off curves of a training step: every strategy at many budgets.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Timeline.h"
#include "passes/strategies/Registry.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// What one strategy makes of one budget.
struct SweepPoint {
  planner::Bytes budget = 0;
  std::optional<planner::Plan> plan; ///< none: infeasible or refused
  planner::Seconds makespan = 0;
  planner::Bytes smallestMemory = 0; ///< when infeasible
  planner::Seconds bound = 0;        ///< no plan with the actions that the strategy may use is faster
  std::string refused;               ///< why the strategy cannot plan this problem
};

/// Points of one strategy, budgets rising.
struct SweepCurve {
  std::string strategy;
  std::string refused; ///< why the strategy has no points
  std::vector<SweepPoint> points;
};

/// All that a report or a table of strategies shows. `floor`: no plan of whole tensors takes less memory.
struct Sweep {
  std::string title, device;
  planner::Problem problem;
  planner::Options options; ///< what compiled programs may do: actions of the target, lossy ones where they are named
  planner::Plan keep;
  planner::Seconds keepSeconds = 0;
  planner::Bytes floor = 0;
  std::vector<SweepCurve> curves;
  /// The plan that the report explains, as compiled; none: the fastest at about half of keep, as an example.
  std::optional<SweepPoint> chosen;
};

/// Every strategy, without synonyms.
std::vector<std::string> sweepStrategies();

/// A sweep without curves: what keeping everything takes, and the floor.
Sweep sweepOf(planner::Problem problem, const planner::Options &options, const std::string &title,
              const std::string &device);

/// Plans under every strategy ("NAME[,k=v...]") at `steps` + 1 budgets from the floor to keep's arena. Published
/// strategies may do all that they were published with, lossy actions included; mixed and auto what the sweep's options
/// allow.
void addCurves(Sweep &sweep, const std::vector<std::string> &strategies, int steps);

/// One strategy at one budget, as addCurves() plans.
SweepPoint pointOf(const Sweep &sweep, planner::Bytes budget, const std::string &strategy);

/// One line a strategy and budget, with a header.
std::string csvOf(const Sweep &sweep);

} // namespace sluice
