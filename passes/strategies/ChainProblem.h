// SPDX-License-Identifier: Apache-2.0
// Chains as op-level problems, for strategies that recompute: ops F_0..F_L, B_L..B_0, buffers x_i, saved_i and y_i.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/strategies/Registry.h"

namespace sluice::planner {

/// One chain as a problem; keeps a reference to it. Plans of it are checked as any other, and said in the chain's
/// words.
class ChainProblem {
public:
  /// `merged`: saved_i is part of x_(i+1), so that one action moves both, as a chain's answer says it. Otherwise they
  /// are buffers of their own and nothing can be offloaded. Sizes that are no integers are scaled by a power of two and
  /// rounded up.
  ChainProblem(const Chain &chain, bool merged);

  Problem problem;
  /// Every buffer may have been rounded up by one unit, which must not cost a plan that fits exactly: these are units
  /// of 1e-15 of the total.
  Bytes bytes(double memory) const;
  double size(Bytes bytes) const { return (bytes - slack) / scale; } ///< the inverse

  /// Simulates the plan and says it in the chain's words.
  ChainPlan planOf(const Plan &plan) const;

  /// Plans with an op-level strategy.
  ChainAnswer run(double memory, PlanFunction strategy, const Options &options) const;

private:
  const Chain &chain;
  double scale = 1;
  Bytes slack = 0;
};

/// The merged problem of a chain with what lossy strategies were published with: copies convert to fp16 faster than the
/// link, stages of kind bn and relu invert their input from their output in the time of F_i, every x_i packs to a fifth
/// at three times the link's rate (the ratio of the Titan X profile). Needs bandwidth; without kinds nothing is
/// inverted.
ChainProblem publishedProblem(const Chain &chain);

/// The options with every action executable and allowed, as chain files are planned.
Options everythingAllowed(Options options);

} // namespace sluice::planner
