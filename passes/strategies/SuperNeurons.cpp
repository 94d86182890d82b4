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
// Changed: the tensor pool becomes a plan: the tensors that its cache would evict are the earliest-born ones, as
// many as needed. Whether a segment is dropped is tried for all and for none, and the faster plan is taken: by the rule
// cheap layers run again only where moving is not enough, which a slow link makes the slower remedy. Memory-centric
// re-runs are those of our recompute segments, which come back as late as possible. A planning view: no dynamic
// runtime.
//
// Complexity O(ops^2).
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

static Answer planSuperNeurons(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "superneurons", memory);
  if (!combiner.can("offload") || !combiner.can("recompute"))
    return Refused{
        "strategy 'superneurons' needs actions 'offload' and 'recompute', which the target does not both execute"};
  std::vector<int> checkpoints, cheap;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    const auto &writers = combiner.recomputation.writersOf(b);
    if (!problem.buffers[b].activation)
      continue;
    const bool keeps = writers.empty() || std::any_of(writers.begin(), writers.end(),
                                                      [&](int op) { return isCheckpoint(problem.ops[op].kind); });
    if (keeps)
      checkpoints.push_back(b);
    else if (combiner.recomputation.possible(b) && !combiner.recomputation.closure({b}).empty())
      cheap.push_back(b);
  }
  std::stable_sort(checkpoints.begin(), checkpoints.end(),
                   [&](int a, int b) { return combiner.accesses[a].first < combiner.accesses[b].first; });
  // Evict more and more, with cheap layers kept and with all of them dropped.
  for (bool drop : {false, true})
    for (size_t count = drop || checkpoints.empty() ? 0 : 1; count <= checkpoints.size();
         count += std::max<size_t>(1, checkpoints.size() / 64)) {
      Choice choice;
      choice.offloaded.assign(checkpoints.begin(), checkpoints.begin() + count);
      if (drop)
        choice.recomputed = cheap;
      Attempt attempt = combiner.attempt(choice);
      const bool enough = attempt.feasible;
      improve(best, std::move(attempt));
      if (enough)
        break;
    }
  Choice everything;
  everything.offloaded = checkpoints;
  everything.recomputed = cheap;
  improve(best, combiner.attempt(everything));
  return answerOf(std::move(best), "superneurons", memory);
}

Strategy superneuronsStrategy() {
  Strategy s{"superneurons", "checkpoints to the host, cheap layers again (Wang et al. 2018)", planSuperNeurons};
  s.actions = {"offload", "recompute"};
  return s;
}

} // namespace sluice::planner
