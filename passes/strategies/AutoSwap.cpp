// SPDX-License-Identifier: Apache-2.0
// autoswap: J. Zhang et al., Efficient Memory Management for GPU-based Deep Learning Systems, arXiv 1903.06631,
// 2019, Section 4 (formulas as in E7 of the planner digests).
//
// Rule: of the tensors that lie idle across the memory peak, swap those with the best score until the peak fits.
// Scores: DOA, how much longer the idle time is than both copies; AOA, DOA weighted by size; WDOA, the overload
// that the tensor's absence would relieve; SWDOA, the same measured again after every choice. The score is a
// weighted average of the four; Bayesian optimization finds the weights whose plan is the fastest.
//
// Changed: scores are normalized by the largest of each; T_out and T_in are the profile's copy times, and the released
// code's slips (T_out counted twice, WDOA on copies) are not repeated. When tensors leave and return is our simulator's
// choice. The search begins with each score alone and with three mixes, and its random numbers are always the same.
//
// Complexity O(evaluations * tensors * ops).
//
// Knobs: evaluations=32 of weights; min-size, bytes; default: 1048576, the paper's threshold for candidates, and 0
// where copies have no fixed cost, as in chain files, whose sizes have no unit.
//
// Fails where tensors idle across the peak do not suffice.
#include "passes/planner/Simulate.h"
#include "passes/planner/Transfers.h"
#include "passes/strategies/BayesianSearch.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace sluice::planner {

namespace {

/// A tensor that lies idle across the peak. Scores are divided by the largest of each kind.
struct Candidate {
  int buffer;
  Gap gap;
  std::array<double, 3> scores; ///< DOA, AOA, WDOA
};

/// Candidates of a problem and what weights make of them. SWDOA is no number of a tensor alone: it is what is still
/// above memory while the tensor is idle, and so worked out again after every choice.
class Swapper {
public:
  /// Only idle times across the peak count, as others would not lower it. AOA divides a negative DOA by the size: of
  /// copies that do not fit their idle time, large ones are the worst.
  Swapper(const Problem &problem, Bytes memory, Bytes minSize) : problem(problem), memory(memory) {
    const Program program = expand(problem, keepPlan(problem));
    live = liveBytes(problem, program);
    std::vector<Seconds> start(live.size() + 1, 0);
    for (size_t k = 0; k < live.size(); ++k)
      start[k + 1] = start[k] + problem.ops[k].seconds;
    const int peak = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
    const std::vector<Gap> gaps = gapsOf(problem, keepPlan(problem));
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
      const Gap gap = gaps[b];
      const double size = static_cast<double>(problem.buffers[b].bytes);
      if (!problem.buffers[b].offloadable || gap.empty() || size < minSize || gap.first > peak || gap.last < peak)
        continue;
      const Seconds idle = start[gap.last + 1] - start[gap.first];
      const double doa = idle - copySeconds(problem, b, {}, true) - copySeconds(problem, b, {}, false);
      candidates.push_back({b, gap, {doa, doa >= 0 ? doa * size : doa / size, overload(gap, live)}});
    }
    for (int s = 0; s < 3; ++s) {
      double largest = 1e-300;
      for (const Candidate &c : candidates)
        largest = std::max(largest, std::abs(c.scores[s]));
      for (Candidate &c : candidates)
        c.scores[s] /= largest;
    }
  }

  /// Tensors by falling score until no position is above memory, or none is left; `weights` are of DOA, AOA, WDOA and
  /// SWDOA.
  std::vector<int> choose(const std::vector<double> &weights) const {
    std::vector<Bytes> load = live;
    std::vector<Candidate> left = candidates;
    std::vector<int> chosen;
    while (!left.empty() && *std::max_element(load.begin(), load.end()) > memory) {
      auto best = left.begin();
      double bestScore = -1e300, scale = 1e-300;
      std::vector<double> submodular;
      for (const Candidate &c : left) {
        submodular.push_back(weights[3] > 0 ? overload(c.gap, load) : 0);
        scale = std::max(scale, submodular.back());
      }
      for (size_t i = 0; i < left.size(); ++i) {
        double score = weights[3] * submodular[i] / scale;
        for (int s = 0; s < 3; ++s)
          score += weights[s] * left[i].scores[s];
        if (score > bestScore) {
          bestScore = score;
          best = left.begin() + i;
        }
      }
      chosen.push_back(best->buffer);
      for (int k = best->gap.first; k <= best->gap.last; ++k)
        load[k] -= aligned(problem, problem.buffers[best->buffer].bytes);
      left.erase(best);
    }
    return chosen;
  }

  std::vector<int> all() const {
    std::vector<int> buffers;
    for (const Candidate &c : candidates)
      buffers.push_back(c.buffer);
    return buffers;
  }

private:
  /// Seconds times bytes above the limit while the tensor is idle.
  double overload(Gap gap, const std::vector<Bytes> &load) const {
    double sum = 0;
    for (int k = gap.first; k <= gap.last; ++k)
      sum += static_cast<double>(std::max<Bytes>(0, load[k] - memory)) * problem.ops[k].seconds;
    return sum;
  }

  const Problem &problem;
  const Bytes memory;
  std::vector<Bytes> live;
  std::vector<Candidate> candidates;
};

} // namespace

/// Seconds that no plan takes longer than: everything one after the other.
static Seconds slowest(const Problem &problem) {
  Seconds seconds = 0;
  for (const Op &op : problem.ops)
    seconds += op.seconds;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (problem.buffers[b].offloadable)
      seconds += copySeconds(problem, b, {}, true) + copySeconds(problem, b, {}, false);
  return seconds;
}

/// All candidates at once tell first whether any weights can do. A choice that does not fit has a value, too, for the
/// search to go on by: worse than every plan's, and the worse the more it lacks.
static Answer planAutoSwap(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "autoswap", memory);
  if (!combiner.can(Action::Offload))
    return Refused{"strategy 'autoswap' needs action 'offload', which the target does not execute"};
  const double published = problem.link.latency > 0 ? 1048576 : 0;
  const Swapper swapper(problem, memory, static_cast<Bytes>(numberKnob(options, "min-size", published)));
  Choice everyone;
  everyone.offloaded = swapper.all();
  if (Attempt most = combiner.attempt(everyone); !most.feasible) // whatever the weights
    return answerOf(std::move(most), "autoswap", memory);
  BayesianSearch search(4, {{1, 0, 0, 0},
                            {0, 1, 0, 0},
                            {0, 0, 1, 0},
                            {0, 0, 0, 1},
                            {0.5, 0, 0, 0.5},
                            {0, 0.5, 0, 0.5},
                            {0.25, 0.25, 0.25, 0.25}});
  const Seconds never = slowest(problem);
  std::map<std::vector<int>, double> known; // by what is swapped: many weights choose the same
  for (int left = static_cast<int>(numberKnob(options, "evaluations", 32)); left > 0; --left) {
    std::vector<double> weights = search.next();
    Choice choice;
    choice.offloaded = swapper.choose(weights);
    std::sort(choice.offloaded.begin(), choice.offloaded.end());
    auto [value, fresh] = known.try_emplace(choice.offloaded, 0);
    if (fresh) {
      Attempt attempt = combiner.attempt(choice);
      value->second = attempt.feasible ? attempt.makespan : never * (2 - static_cast<double>(memory) / attempt.peak);
      improve(best, std::move(attempt));
    }
    search.tell(std::move(weights), value->second);
  }
  return answerOf(best, "autoswap", memory);
}

Strategy autoswapStrategy() {
  Strategy s{"autoswap", "swap by priority scores (Zhang et al. 2019)", planAutoSwap};
  s.knobs = {{"min-size"}, {"evaluations", 1000}};
  s.actions = {Action::Offload};
  s.weaker = {"vdnn-all"};
  s.takenOver.stages = 64;
  return s;
}

} // namespace sluice::planner
