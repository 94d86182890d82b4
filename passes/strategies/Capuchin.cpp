// SPDX-License-Identifier: Apache-2.0
// capuchin: X. Peng et al., Capuchin: Tensor-based GPU Memory Management for Deep Learning, ASPLOS 2020, Section 4.
//
// Rule: measure when tensors are accessed. Free time FT of a tensor is what its idle time leaves beside both
// copies: swap by falling FT while FT >= 0 and the link has room. For what is still missing compare recomputation,
// by saved bytes per second of re-running (MSPS), with the part of a swap that cannot be hidden, and take the
// cheaper one, again and again. Where that is not enough, because a re-run needs what is live at the peak, those that
// run again are swapped after all, the dearest first.
//
// Changed: accesses are simulated, not measured, so the feedback loop that moves in-triggers by 5 % of the swap
// time is our simulator's placement of transfers. Costs of re-runs count what is already dropped. The last sentence of
// the rule is ours. A planning view: no dynamic runtime.
//
// Complexity O(tensors * ops).
//
// No knobs.
//
// Fails where all swaps and re-runs together do not fit.
#include "passes/planner/Simulate.h"
#include "passes/planner/Transfers.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sluice::planner {

namespace {

/// An activation with a gap: what its gap leaves beside both copies, what these take, and what making it again takes.
struct Tensor {
  int buffer;
  Seconds freeTime, swap;
  Seconds rerun; ///< infinite when it cannot be dropped
};

/// Of what may not be swapped: longer than any step.
constexpr Seconds neverMoves = 1e30;

/// Seconds to make a buffer again with all that goes with it; infinite when it cannot be dropped.
Seconds rerunSeconds(const Combiner &combiner, int buffer) {
  Seconds rerun = std::numeric_limits<Seconds>::infinity();
  if (combiner.can(Action::Recompute) && combiner.recomputation.possible(buffer)) {
    const std::vector<int> closed = combiner.recomputation.closure({buffer});
    for (int c : closed)
      rerun = (c == closed.front() ? 0 : rerun) + combiner.recomputation.cost(c);
  }
  return rerun;
}

/// Times are those of ops alone, nothing copied or run again: the measurement that the paper begins with.
std::vector<Tensor> tensorsOf(const Combiner &combiner) {
  const Problem &problem = combiner.problem;
  std::vector<Seconds> start(problem.ops.size() + 1, 0);
  for (size_t k = 0; k < problem.ops.size(); ++k)
    start[k + 1] = start[k] + problem.ops[k].seconds;
  const std::vector<Gap> gaps = gapsOf(problem, keepPlan(problem));
  std::vector<Tensor> tensors;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    if (!problem.buffers[b].activation || gaps[b].empty())
      continue;
    const Seconds out = copySeconds(problem, b, {}, true), in = copySeconds(problem, b, {}, false);
    const bool mayMove = combiner.can(Action::Offload) && problem.buffers[b].offloadable;
    const Seconds idle = start[gaps[b].last + 1] - start[gaps[b].first];
    tensors.push_back(
        {b, mayMove ? idle - out - in : -neverMoves, mayMove ? out + in : neverMoves, rerunSeconds(combiner, b)});
  }
  return tensors;
}

} // namespace

/// In three rounds, each until it fits: swaps that hide, then the cheaper remedy for each of the rest, then swaps in
/// place of re-runs. Trying a plan costs more than choosing a tensor, so that at most about a hundred are tried a
/// round.
static Answer planCapuchin(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "capuchin", memory);
  if (!combiner.can(Action::Offload) && !combiner.can(Action::Recompute))
    return Refused{"strategy 'capuchin' needs action 'offload' or 'recompute', which the target does not execute"};
  std::vector<Tensor> tensors = tensorsOf(combiner);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const Tensor &a, const Tensor &b) { return a.freeTime > b.freeTime; });
  Seconds room = std::accumulate(problem.ops.begin(), problem.ops.end(), Seconds{0}, // of the link, both ways
                                 [](Seconds sum, const Op &op) { return sum + op.seconds; });
  Choice choice;
  std::vector<Tensor> rest;
  const size_t stride = std::max<size_t>(1, tensors.size() / 100); // attempts, not tensors, cost time
  // Whether the choice fits, the list's tensor `i` being the last that was chosen.
  const auto isEnough = [&](size_t i, const std::vector<Tensor> &list) {
    if (i % stride == 0 || i + 1 == list.size())
      improve(best, combiner.attempt(choice));
    return best.feasible;
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor &t = tensors[i];
    if (t.freeTime < 0 || t.swap > room) {
      rest.push_back(t);
      continue;
    }
    room -= t.swap;
    choice.offloaded.push_back(t.buffer);
    if (isEnough(i, tensors))
      return answerOf(std::move(best), "capuchin", memory);
  }
  // Of a swap, what its idle time does not hide, and what the link has no room for beside those above.
  const auto exposed = [&](const Tensor &t) { return std::max({0.0, -t.freeTime, t.swap - room}); };
  // Most bytes per second of the cheaper remedy first.
  const auto price = [&](const Tensor &t) {
    return std::min(t.rerun, exposed(t)) / std::max<Bytes>(1, problem.buffers[t.buffer].bytes);
  };
  std::stable_sort(rest.begin(), rest.end(), [&](const Tensor &a, const Tensor &b) { return price(a) < price(b); });
  std::vector<Tensor> again;
  for (size_t i = 0; i < rest.size(); ++i) {
    const Tensor &t = rest[i];
    const bool reruns = t.rerun <= exposed(t) && std::isfinite(t.rerun), moves = t.swap < neverMoves;
    if (reruns || moves)
      (reruns ? choice.recomputed : choice.offloaded).push_back(t.buffer);
    if (reruns && moves)
      again.push_back(t);
    if (isEnough(i, rest))
      return answerOf(std::move(best), "capuchin", memory);
  }
  std::stable_sort(again.begin(), again.end(), [](const Tensor &a, const Tensor &b) { return a.rerun > b.rerun; });
  for (size_t i = 0; i < again.size(); ++i) {
    std::vector<int> &recomputed = choice.recomputed;
    recomputed.erase(std::find(recomputed.begin(), recomputed.end(), again[i].buffer));
    choice.offloaded.push_back(again[i].buffer);
    if (isEnough(i, again))
      break;
  }
  return answerOf(std::move(best), "capuchin", memory);
}

Strategy capuchinStrategy() {
  Strategy s{"capuchin", "swap by free time, then recompute by bytes per second (Peng et al. 2020)", planCapuchin};
  s.actions = {Action::Offload, Action::Recompute};
  s.weaker = {"greedy"};
  return s;
}

} // namespace sluice::planner
