// SPDX-License-Identifier: Apache-2.0
// Time of a chain when a given set of its tensors is offloaded: the ordered no-wait schedule (Beaumont et al., Euro-Par
// 2020, Section 3.3: out by increasing, back by decreasing index, everything as soon as data and memory allow).
#pragma once

#include "passes/planner/Chain.h"
#include "passes/planner/Timeline.h"

#include <optional>

namespace sluice::planner {

/// One op or copy of a chain. Compute: F_i or B_i, perhaps again, and inversions of x_i; copies and codec: of x_i (with
/// what is saved along with it).
struct ChainEvent {
  enum class What { Forward, Backward, Out, In, Compress, Decompress, Invert };
  What what = What::Forward;
  int index = 0;
  Seconds start = 0, end = 0;
  Stream stream() const;
  std::string
  name() const; ///< "F_3", "B_3", "offload x_3", "prefetch x_3", "compress x_3", "decompress x_3", "invert x_3"
};

/// Both halves on one clock that starts with F_0.
struct ChainTimeline {
  std::vector<ChainEvent> events; ///< by start
  Seconds makespan = 0;
  double peakBytes = 0;
};

/// Both halves are built as soon as possible, the backward one in reversed time, and joined with the smallest gap at
/// which no copies overlap and every op has its memory. Nothing when the set does not suffice for `memory` (see
/// chainNeed). Complexity O(L^2).
std::optional<ChainTimeline> simulateChain(const Chain &chain, double memory, const std::vector<bool> &offloaded,
                                           Release release);

/// Replays a timeline of a chain: one thing at a time on compute and on the link, ops in order, copies within their
/// rules, bytes within `memory`. Shares nothing with the simulator. Names the first violation with its numbers.
Status checkChain(const Chain &chain, double memory, const std::vector<bool> &offloaded, Release release,
                  const ChainTimeline &timeline);

} // namespace sluice::planner
