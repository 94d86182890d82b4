// SPDX-License-Identifier: Apache-2.0
// tflms: T. D. Le, H. Imai, Y. Negishi, K. Kawachiya, TFLMS: Large Model Support in TensorFlow by Graph Rewriting,
// arXiv 1807.02037.
//
// Rule: rewrite the graph so that tensors with a long distance between producer and consumer are swapped out and
// in, the swap-in a fixed number of ops ahead; how many tensors and how far is a setting, tried out by the user.
// Nothing knows times, link or memory.
//
// Changed: distances count ops of the linearized program; all settings of a grid are simulated and the best that
// fits is reported, as in Beaumont et al., Euro-Par 2020, Section 5. A planning view: no dynamic runtime.
//
// Complexity O(settings * ops).
//
// Knobs: threshold=0 (0: a grid), ahead=0 (0: a grid), ops before its reader at which a tensor returns.
//
// Fails where no setting fits: it cannot make an op wait for memory on purpose.
#include "passes/planner/Transfers.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>

namespace sluice::planner {

/// Everything at least `threshold` ops apart leaves at once and returns `ahead` ops before its reader.
static Attempt settle(const Problem &problem, Bytes memory, int threshold, int ahead) {
  Plan plan = keepPlan(problem);
  const std::vector<Gap> gaps = gapsOf(problem, plan);
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    const Gap gap = gaps[b];
    if (!problem.buffers[b].offloadable || gap.last - gap.first + 1 < threshold)
      continue;
    Decision &d = plan.decisions[b];
    d.offloadAfter = gap.first - 1;
    // The graph orders copies, not frees: bytes leave with the first op that follows the copy's successor.
    d.freeBefore = std::min(gap.first + 1, gap.last);
    d.prefetchAfter = std::max(gap.last + 1 - ahead, d.freeBefore);
    d.neededBy = gap.last + 1;
    if (d.prefetchAfter > gap.last) {
      d = {};
      continue;
    }
    d.action = Action::Offload;
    d.reason = std::to_string(gap.last - gap.first + 1) + " ops between its uses";
  }
  return measured(problem, memory, std::move(plan));
}

static Answer planTflms(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (!best.feasible && !combiner.can("offload"))
    return Refused{"strategy 'tflms' needs action 'offload', which the target does not execute"};
  if (best.feasible)
    return answerOf(best, "tflms", memory);
  const int n = problem.ops.size();
  const int threshold = static_cast<int>(numberKnob(options, "threshold", 0)),
            distance = static_cast<int>(numberKnob(options, "ahead", 0));
  for (double share : {0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9})
    for (int ahead : {1, 2, 3, 5, 8, 13, 21})
      improve(best, settle(problem, memory, threshold > 0 ? threshold : std::max(2, static_cast<int>(share * n)),
                           distance > 0 ? distance : ahead));
  return answerOf(best, "tflms", memory);
}

Strategy tflmsStrategy() {
  Strategy s{"tflms", "swap by distance in the graph (Le et al. 2018)", planTflms};
  s.knobs = {{"threshold", 1e6}, {"ahead", 1e6}};
  s.actions = {"offload"};
  s.takenOver.stages = 64;
  return s;
}

} // namespace sluice::planner
