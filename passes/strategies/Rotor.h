// SPDX-License-Identifier: Apache-2.0
// The rematerialization table by itself, for strategies that build on its sequences.
#pragma once

#include "passes/planner/Chain.h"
#include "passes/planner/Plan.h"
#include "passes/strategies/Registry.h"
#include "passes/strategies/Stages.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::planner {

/// One run of a stage: forward (perhaps again) or backward.
struct StageRun {
  int stage = 0;
  bool forward = true;
};

/// Fastest persistent rematerialization of a chain for every memory at once.
class RotorTable {
public:
  /// Sizes are rounded up to `slots` parts of the chain's peak. O(L^3 * slots) time, O(L^2 * slots) memory.
  RotorTable(Chain chain, int slots);

  /// True when the table is what the constructor would make of these.
  bool isOf(const Chain &other, int slots) const;
  int slots() const { return slotCount; }
  double slotBytes() const { return unit; }
  /// Seconds with `m` slots for everything; infinite when impossible.
  Seconds best(int m) const;
  /// The same for stages i..l alone, `bytes` being what there is besides x_i, which is kept.
  Seconds best(double bytes, int i, int l) const;
  /// The runs of a feasible `m`: F_0..F_L once in order, then backward runs with re-runs between them.
  std::vector<StageRun> sequence(int m) const;
  /// Appends the runs of stages i..l alone.
  void append(double bytes, int i, int l, std::vector<StageRun> &runs) const;

private:
  int size(double bytes) const;
  int slotsIn(double bytes) const;
  void fill(int i, int l);
  void emit(int m, int i, int l, std::vector<StageRun> &runs) const;
  size_t at(int i, int l) const { return (static_cast<size_t>(i) * n + l) * (slotCount + 1); }

  const Chain chain;
  const int n, slotCount;
  double unit;
  std::vector<float> cost;
  std::vector<int16_t> choice; ///< 0: impossible; 1: save everything (C2); j - i + 1: checkpoint x_j (C1)
};

/// The chain's table, of `slots` parts, or for 0 of as many as the length of the chain allows in about a second. One in
/// options.known is used again: it takes the most time of all and depends on no budget.
std::shared_ptr<const RotorTable> rotorTable(const Chain &chain, int slots, const Options &options);

/// Runs of whole stages, forward runs after the first being re-runs, as recompute segments of the op-level program.
std::vector<Recompute> segmentsOf(const Problem &problem, const Stages &stages, const std::vector<StageRun> &runs);

} // namespace sluice::planner
