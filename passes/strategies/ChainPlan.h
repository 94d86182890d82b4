// SPDX-License-Identifier: Apache-2.0
// Answers for chains: what a strategy does with x_0..x_L, which stages run again, and when everything happens.
#pragma once

#include "passes/planner/ChainSimulate.h"
#include "passes/planner/Plan.h"

#include <utility>
#include <variant>
#include <vector>

namespace sluice::planner {

/// What a strategy does with a chain, and when.
struct ChainPlan {
  std::vector<Action> actions;                ///< of x_0..x_L
  std::vector<std::pair<int, int>> recompute; ///< F_i..F_j run again, in order of time
  ChainTimeline timeline;
  bool rawCopiesOnly = true; ///< keeps and offloads only, without codecs: what checkChain() knows
};

struct ChainInfeasible {
  /// The same strategy and release succeed with it, in bytes. Whatever was asked for, and the least with which they do
  /// as far as the strategy's own search, or for those without a rule for chains 4 to 64 tries, can say.
  double smallestMemory = 0;
  std::string reason;
};

using ChainAnswer = std::variant<ChainPlan, ChainInfeasible, Refused>;

/// The plan that offloads a set, or Infeasible with what the set needs.
ChainAnswer offloadChain(const Chain &chain, double memory, const std::vector<bool> &offloaded, Release release);

/// Of several sets the one with the shortest schedule; Infeasible with the least that any of them needs.
ChainAnswer bestOffload(const Chain &chain, double memory, const std::vector<std::vector<bool>> &sets, Release release);

/// A plan that only keeps and offloads whole tensors after changes of one tensor and exchanges of one that moves for
/// one that stays, each of which made it faster; 1e6 / L simulations at most.
ChainPlan exchanged(const Chain &chain, double memory, ChainPlan plan, Release release);

/// Keeps the better of two answers: a plan first, then the shorter makespan or the smaller memory.
void takeBetter(ChainAnswer &best, ChainAnswer answer);

} // namespace sluice::planner
