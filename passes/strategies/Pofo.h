// SPDX-License-Identifier: Apache-2.0
// The dynamic program of pofo by itself, so that tests can compare it with enumeration.
#pragma once

#include "passes/planner/Chain.h"
#include "passes/strategies/Rotor.h"

#include <vector>

namespace sluice::planner {

/// Neighbouring stages that are treated alike.
struct PofoBlock {
  int first = 0, last = 0; ///< stages, both included
  bool saved = false;      ///< one stage that saves what its backward op needs; otherwise only the block's input stays
  bool offloaded = false;  ///< the input of stage `first` leaves the device, with what the stage before saved along
  double room = 0;         ///< bytes besides the input that re-running the block may use
};

/// One schedule of the recursion.
struct PofoSchedule {
  std::vector<PofoBlock> blocks; ///< cover all stages, in order
  Seconds makespan = 0;          ///< in the model of Pofo.cpp
};

/// Schedules by increasing makespan, at most `count`; empty when nothing fits. The first is the model's optimum as long
/// as no boundary has more than `limit` undominated states.
std::vector<PofoSchedule> pofoSchedules(const Chain &chain, const RotorTable &rotor, double memory, size_t count,
                                        size_t limit);

} // namespace sluice::planner
