// SPDX-License-Identifier: Apache-2.0
// chen: T. Chen, B. Xu, C. Zhang, C. Guestrin, Training Deep Nets with Sublinear Memory Cost, arXiv 1604.06174,
// Section 4.
//
// Rule: split the network into segments, keep what crosses their borders, and run a segment's forward ops again
// before its backward ops; with sqrt(n) segments memory is O(sqrt(n)) for one extra forward run.
//
// Changed: segments are runs of whole stages of a branching program. Besides sqrt(n) every segment length is tried
// and the fastest plan that fits is taken, which is the paper's search over its budget b. Tensors come back op by
// op, as late as possible, not all at once.
//
// Complexity O(lengths * ops).
//
// Knobs: segments=0 (0: all lengths).
//
// Fails below the best border set plus one segment; recomputes what a link could have moved for free.
#include "passes/strategies/Stages.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>

namespace sluice::planner {

// A tensor stays where it, or anything that would have to go with it, crosses a border of segments of this length.
Attempt bestSegments(const Combiner &combiner, int wanted) {
  const Problem &problem = combiner.problem;
  const Stages stages(problem);
  const int count = stages.count();
  std::vector<int> droppable;
  std::vector<std::vector<int>> closures(problem.buffers.size());
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (problem.buffers[b].activation && combiner.recomputation.possible(b)) {
      closures[b] = combiner.recomputation.closure({b});
      if (!closures[b].empty())
        droppable.push_back(b);
    }
  Attempt best;
  for (int length = 1; length <= count; ++length) {
    // Long programs: every length up to 64, then steps of an eighth.
    if ((wanted > 0 && length != std::max(1, (count + wanted - 1) / wanted)) ||
        (wanted == 0 && length > 64 && length % (length / 8) != 0))
      continue;
    Choice choice;
    for (int b : droppable)
      if (!stages.anyCrosses(closures[b], length)) // what comes along must not be a border either
        choice.recomputed.push_back(b);
    improve(best, combiner.attempt(choice));
  }
  return best;
}

static Answer planChen(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "chen", memory);
  if (!combiner.can(Action::Recompute))
    return Refused{"strategy 'chen' needs action 'recompute', which the target does not execute"};
  improve(best, bestSegments(combiner, static_cast<int>(numberKnob(options, "segments", 0))));
  return answerOf(best, "chen", memory);
}

Strategy chenStrategy() {
  Strategy s{"chen", "recompute segments between kept borders (Chen et al. 2016)", planChen};
  s.knobs = {{"segments", 1e6}};
  s.actions = {Action::Recompute};
  return s;
}

} // namespace sluice::planner
