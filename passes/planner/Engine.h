// SPDX-License-Identifier: Apache-2.0
// What runs beside compute while a plan is simulated (Simulate.cpp).
#pragma once

#include "passes/planner/Timeline.h"

namespace sluice::planner {

/// A copy, or a job of the codec stream, of the communication stream or of threads at home.
struct Copy {
  int buffer, after, before; ///< issued after op `after`, awaited by position `before`
  double work;               ///< bytes, latency included as bytes at the single rate; seconds of other jobs
  double most;               ///< limit of the rate
  double contention;         ///< seconds that compute loses per unit of work
};

/// A direction of a link or of the codec stream, or one of the other streams: serves its queue in order, one copy at a
/// time.
struct Engine {
  Event::What what;
  Stream stream;
  std::vector<Copy> queue = {};
  std::vector<size_t> needed = {}; ///< entries that must have ended before position k starts
  size_t done = 0;
  bool busy = false;
  double left = 0;
  Seconds start = 0;
};

} // namespace sluice::planner
