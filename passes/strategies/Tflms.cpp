// SPDX-License-Identifier: Apache-2.0
// tflms: T. D. Le, H. Imai, Y. Negishi, K. Kawachiya, TFLMS: Large Model Support in TensorFlow by Graph Rewriting,
// arXiv 1807.02037.
//
// Rule: rewrite the graph so that tensors with a long distance between producer and consumer are swapped out and
// in, the swap-in a fixed number of ops ahead; how many tensors and how far is a setting, tried out by the user.
// Nothing knows times, link or memory, and nothing waits for a copy out.
//
// Changed: distances count ops of the linearized program; bytes go at the position where their copy has ended if
// compute never waits; all settings of a grid are simulated and the best that fits is reported, as in Beaumont et al.,
// Euro-Par 2020, Section 5. A planning view: no dynamic runtime.
//
// Complexity O(settings * ops).
//
// Knobs: threshold=0 (0: a grid), least ops between a tensor's uses; tensors=0 (0: a grid), how many of them, from the
// first on; ahead=0 (0: a grid), ops before its reader at which a tensor returns.
//
// Fails where no setting fits: it cannot make an op wait for memory on purpose.
#include "passes/planner/Transfers.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <limits>

namespace sluice::planner {

namespace {

/// What a user sets: tensors whose uses are at least `threshold` ops apart, the first `count` of them, return `ahead`
/// ops before their reader.
struct Setting {
  int threshold = 2, ahead = 1;
  size_t count = 0;
};

/// Nothing in the rewritten graph makes an op wait for a copy out: bytes go when the copy has ended, whenever that is.
/// A reader waits for its copy in.
Attempt settle(const Problem &problem, Bytes memory, const Setting &setting) {
  Plan plan = keepPlan(problem);
  const std::vector<Gap> gaps = gapsOf(problem, plan);
  std::vector<int> tensors;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (problem.buffers[b].offloadable && gaps[b].last - gaps[b].first + 1 >= setting.threshold)
      tensors.push_back(b);
  std::stable_sort(tensors.begin(), tensors.end(), [&](int a, int b) { return gaps[a].first < gaps[b].first; });
  tensors.resize(std::min(tensors.size(), setting.count));
  for (int b : tensors) {
    plan.decisions[b].action = Action::Offload;
    plan.decisions[b].reason = std::to_string(gaps[b].last - gaps[b].first + 1) + " ops between its uses";
  }
  widenGaps(problem, plan);
  delayDepartures(problem, std::numeric_limits<Bytes>::max() / 2, plan);
  for (Decision &d : plan.decisions)
    for (Absence &away : d.absences)
      away.returnAfter = std::clamp(away.neededBy - setting.ahead, away.freeBefore, away.neededBy - 1);
  return measured(problem, memory, std::move(plan));
}

} // namespace

/// The grid: distances of returns, and for each both thresholds by tenths of the program and numbers of tensors. What a
/// knob fixes is not varied.
static Answer planTflms(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (!best.feasible && !combiner.can(Action::Offload))
    return Refused{"strategy 'tflms' needs action 'offload', which the target does not execute"};
  if (best.feasible)
    return answerOf(best, "tflms", memory);
  const int n = problem.ops.size(), all = problem.buffers.size();
  const int threshold = static_cast<int>(numberKnob(options, "threshold", 0)),
            ahead = static_cast<int>(numberKnob(options, "ahead", 0)),
            count = static_cast<int>(numberKnob(options, "tensors", 0));
  for (int distance : {1, 3, 8, 21, 60, 150}) {
    if (distance > std::max(1, n))
      continue;
    Setting setting{std::max(2, threshold), ahead > 0 ? ahead : distance, size_t(count > 0 ? count : all)};
    for (int tenth = 0; tenth < 10; ++tenth) {
      if (threshold == 0)
        setting.threshold = std::max(2, tenth * n / 10);
      improve(best, settle(problem, memory, setting));
    }
    setting.threshold = std::max(2, threshold);
    if (count > 0)
      continue;
    for (int some = 1; some < all / 2; some += std::max(1, some / 3)) { // half of the buffers, gradients, never leave
      setting.count = some;
      improve(best, settle(problem, memory, setting));
    }
  }
  return answerOf(best, "tflms", memory);
}

Strategy tflmsStrategy() {
  Strategy s{"tflms", "swap by distance in the graph (Le et al. 2018)", planTflms};
  s.knobs = {{"threshold", 1e6}, {"tensors", 1e6}, {"ahead", 1e6}};
  s.actions = {Action::Offload};
  s.takenOver.stages = 64;
  return s;
}

} // namespace sluice::planner
