// SPDX-License-Identifier: Apache-2.0
// Trade-off curves of a training step: every strategy at many budgets, as CSV or as one HTML file that needs no
// network.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Timeline.h"
#include "passes/strategies/Registry.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct SweepPoint {
  planner::Bytes budget = 0;
  std::optional<planner::Plan> plan; ///< none: infeasible
  planner::Seconds makespan = 0;
  planner::Bytes smallestMemory = 0; ///< when infeasible
  planner::Seconds bound = 0;        ///< no exact plan is faster
};

struct SweepCurve {
  std::string strategy;
  std::string refused; ///< why the strategy has no points
  std::vector<SweepPoint> points;
};

struct Sweep {
  std::string title, device;
  planner::Problem problem;
  planner::Plan keep;
  planner::Seconds keepSeconds = 0;
  planner::Bytes floor = 0;
  std::vector<SweepCurve> curves;
};

/// Plans `problem` under every strategy ("NAME[,k=v...]") at `steps` + 1 budgets from the floor to keep's arena.
Sweep sweepOf(planner::Problem problem, const std::string &title, const std::string &device,
              const std::vector<std::string> &strategies, const planner::Options &options, int steps);

/// One line a strategy and budget, with a header.
std::string csvOf(const Sweep &sweep);

/// Curves of time over memory; for the fastest plan at about half of the activations: memory over time, timeline by
/// stream, tensors.
std::string htmlOf(const Sweep &sweep);

} // namespace sluice
