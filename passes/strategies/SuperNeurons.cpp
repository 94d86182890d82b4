// SPDX-License-Identifier: Apache-2.0
// superneurons: L. Wang et al., SuperNeurons: Dynamic GPU Memory Management for Training Deep Neural Networks,
// PPoPP 2018, Section 3.
//
// Rule: free tensors by liveness; when memory is short, first move outputs of checkpoint layers (convolution, fully
// connected, join, concatenation) to the host, least recently used first; when that is not enough, drop the outputs
// of cheap layers (pooling, activation, normalization, dropout) and run them again, a segment between checkpoints
// at a time: once and kept (speed-centric) where the segment's memory stays below the largest backward working set,
// per reader otherwise (memory-centric).
//
// Changed: the tensor pool becomes a plan. What its cache would evict on demand are the earliest-born outputs of
// checkpoint layers, as few as are needed; and what runs again on demand are the cheap layers of the earliest segments,
// none to all: by the rule they do only where moving is not enough, which a slow link makes the slower remedy, so each
// share of segments is tried with the fewest evictions that it leaves necessary, and the fastest plan is taken.
// Memory-centric re-runs are those of our recompute segments, which come back as late as possible. A planning view: no
// dynamic runtime.
//
// Complexity O(shares * log(checkpoints) * ops^2).
//
// No knobs.
//
// Fails where checkpoints on the host and cheap layers dropped still do not fit.
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>

namespace sluice::planner {

static bool isCheckpoint(OpKind kind) {
  return kind == OpKind::Conv || kind == OpKind::FullyConnected || kind == OpKind::Join || kind == OpKind::Concat;
}

/// Shares of the cheap layers' outputs that are tried.
constexpr size_t shares = 8;

/// The best plan that drops `dropped` and moves as few of the earliest `checkpoints` as fit, or all of them.
static Attempt fewestEvictions(const Combiner &combiner, const std::vector<int> &checkpoints,
                               const std::vector<int> &dropped) {
  const auto moving = [&](size_t count) {
    Choice choice;
    choice.recomputed = dropped;
    choice.offloaded.assign(checkpoints.begin(), checkpoints.begin() + count);
    return combiner.attempt(choice);
  };
  Attempt best = moving(checkpoints.size());
  for (size_t low = 0, high = checkpoints.size(); best.feasible && low < high;) {
    const size_t middle = low + (high - low) / 2;
    Attempt attempt = moving(middle);
    (attempt.feasible ? high : low) = attempt.feasible ? middle : middle + 1;
    improve(best, std::move(attempt));
  }
  return best;
}

/// Kinds decide: outputs of checkpoint layers move, of cheap ones run again, those of the earliest segments first.
static Answer planSuperNeurons(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "superneurons", memory);
  if (!combiner.can(Action::Offload) || !combiner.can(Action::Recompute))
    return Refused{
        "strategy 'superneurons' needs actions 'offload' and 'recompute', which the target does not both execute"};
  std::vector<int> checkpoints, cheap;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    const auto &writers = combiner.recomputation.writersOf(b);
    if (!problem.buffers[b].activation)
      continue;
    const bool keeps = writers.empty() || std::any_of(writers.begin(), writers.end(),
                                                      [&](int op) { return isCheckpoint(problem.ops[op].kind); });
    // What no forward op wrote comes from outside and can only move.
    if (keeps)
      checkpoints.push_back(b);
    else if (combiner.recomputation.possible(b) && !combiner.recomputation.closure({b}).empty())
      cheap.push_back(b);
  }
  std::stable_sort(checkpoints.begin(), checkpoints.end(),
                   [&](int a, int b) { return combiner.accesses[a].first < combiner.accesses[b].first; });
  std::stable_sort(cheap.begin(), cheap.end(),
                   [&](int a, int b) { return combiner.accesses[a].first < combiner.accesses[b].first; });
  for (size_t share = 0; share <= shares; ++share)
    improve(best,
            fewestEvictions(combiner, checkpoints, {cheap.begin(), cheap.begin() + cheap.size() * share / shares}));
  return answerOf(std::move(best), "superneurons", memory);
}

Strategy superneuronsStrategy() {
  Strategy s{"superneurons", "checkpoints to the host, cheap layers again (Wang et al. 2018)", planSuperNeurons};
  s.actions = {Action::Offload, Action::Recompute};
  return s;
}

} // namespace sluice::planner
