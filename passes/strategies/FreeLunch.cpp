// SPDX-License-Identifier: Apache-2.0
// freelunch: S. Patel, T. Liu, H. Guan, FreeLunch: Compression-based GPU Memory Management for Convolutional Neural
// Networks, Sections III and IV.
//
// Rule: compress every activation at a fixed rate in device memory once its last forward reader has run, one after the
// other on a stream of their own, into one sliding workspace; raw tensors live in a few persistent buffers (three for
// linear networks, six for residual ones), so that many later activations may be born before one must be gone. In the
// backward half the latest is unpacked first, two tensors ahead of the layer that runs. The hybrid compresses outputs
// of convolutions and swaps the rest to the host by the same rules.
//
// Changed: a packed form has a size that is known at planning, so the sliding workspace with its room for one worst
// case becomes lives that nest, which our packing places at their load; the persistent buffers become a limit on raw
// tensors. Where gradients of ReLU ask for signs, which zfp loses, a mask stands in front of the packed form, and where
// they ask for nothing else the mask is all that stays, unless masks=0; such tensors fill raw buffers and are counted
// ahead as the paper's are. Backward does not wait for the whole queue to drain. Budgets below the published plan's get
// fewer raw tensors and less look-ahead.
//
// Complexity O(buffers * ops), with stay=1 O(tensors * ops).
//
// Knobs: buffers=0 (0: three, or six where the graph branches), ahead=2 tensors, hybrid=0 (1: swap what no convolution
// wrote), masks=1 (0: pack what gradients only compare with 0, too, as published), stay=0 (1: tensors stay, those of
// the longest jobs first, where the published plan's peak has room for them, so that the codec works less).
//
// Fails where the packed forms and one raw tensor beside each op do not fit; waits where the codec is slower than the
// layers.
#include "passes/planner/Transfers.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <utility>

namespace sluice::planner {

namespace {

/// Positions of the published protocol on a program: when raw tensors go follows from how many may be there, when they
/// return from how far ahead the backward half looks. Memory has no part in it; the caller tries fewer of both.
class FreeLunch {
public:
  FreeLunch(const Problem &problem, bool hybrid, bool masks)
      : problem(problem), hybrid(hybrid), masks(masks), accesses(accessesOf(problem)),
        gaps(gapsOf(problem, keepPlan(problem))) {
    while (firstBackward < static_cast<int>(problem.ops.size()) && problem.ops[firstBackward].phase == Phase::Forward)
      ++firstBackward;
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
      if (problem.buffers[b].activation && !gaps[b].empty() && accesses[b].firstWrite >= 0 && (mask(b) || mayLeave(b)))
        tensors.push_back(b);
  }

  /// Tensor i goes when tensor i + `buffers` is born, or later where the forward half still reads it; the copy back of
  /// the j-th to return is issued when the one `ahead` before it is about to be read.
  Plan plan(int buffers, int ahead) const {
    Plan plan = keepPlan(problem);
    const std::vector<int> byBirth = tensorsBy([&](int b) { return accesses[b].firstWrite; });
    const std::vector<int> byReturn = tensorsBy([&](int b) { return gaps[b].last; });
    const int n = tensors.size();
    for (int i = 0; i < n; ++i) {
      const int b = byBirth[i];
      const int crowded = i + buffers < n ? accesses[byBirth[i + buffers]].firstWrite : firstBackward;
      if (!mask(b))
        plan.decisions[b] = decision(b, std::max(gaps[b].first, crowded));
    }
    for (int i = 0; i < n; ++i) {
      if (mask(byReturn[i]))
        continue;
      Absence &away = plan.decisions[byReturn[i]].absences.front();
      const int issued = i < ahead ? firstBackward - 1 : gaps[byReturn[i - ahead]].last;
      away.returnAfter = std::clamp(issued, away.freeBefore, away.neededBy - 1);
    }
    for (Decision &d : plan.decisions) // room enough to stay
      if (!d.absences.empty() && d.absences.front().freeBefore >= d.absences.front().neededBy)
        d = {};
    for (size_t b = 0; b < plan.decisions.size(); ++b)
      if (const Encoding *form = mask(static_cast<int>(b)); form && accesses[b].hasGap())
        plan.decisions[b] = encoded(accesses[b], *form);
    return plan;
  }

  /// The plan without what its own peak has room for.
  Plan withoutNeedless(Plan plan) const {
    const Bytes peak = peakBytes(problem, expand(problem, plan));
    std::vector<int> leaving;
    for (int b : tensors)
      if (factsOf(plan.decisions[b].action).returns)
        leaving.push_back(b);
    std::stable_sort(leaving.begin(), leaving.end(),
                     [&](int a, int b) { return problem.buffers[a].bytes > problem.buffers[b].bytes; });
    for (int b : leaving) {
      const Decision left = std::exchange(plan.decisions[b], Decision{});
      if (peakBytes(problem, expand(problem, plan)) > peak)
        plan.decisions[b] = left;
    }
    return plan;
  }

private:
  /// The tensors, sorted by a number that each has.
  template <typename Number> std::vector<int> tensorsBy(Number number) const {
    std::vector<int> sorted = tensors;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return number(a) < number(b); });
    return sorted;
  }

  bool convolved(int b) const {
    return std::any_of(problem.ops.begin(), problem.ops.end(), [&](const Op &op) {
      return op.phase == Phase::Forward && op.kind == OpKind::Conv &&
             std::find(op.writes.begin(), op.writes.end(), b) != op.writes.end();
    });
  }

  bool swaps(int b) const { return hybrid && !convolved(b); }

  bool mayLeave(int b) const { return swaps(b) ? problem.buffers[b].offloadable : packed(b) != nullptr; }

  /// Where it is enough and all that stays; null where it is not.
  const Encoding *mask(int b) const {
    return masks && !accesses[b].writtenLater ? encodingOf(problem.buffers[b], Codec::Mask) : nullptr;
  }

  /// With the signs beside it where gradients ask for them; null where there is no such form.
  const Encoding *packed(int b) const {
    const Encoding *plain = encodingOf(problem.buffers[b], Codec::Zfp);
    return plain ? plain : encodingOf(problem.buffers[b], masked(Codec::Zfp));
  }

  Decision decision(int b, int freeBefore) const {
    Decision d;
    d.action = swaps(b) ? Action::Offload : Action::Compress;
    d.codec = swaps(b) ? Codec() : packed(b)->codec;
    const int neededBy = gaps[b].last + 1, gone = std::min(freeBefore, neededBy);
    d.absences = {
        {swaps(b) ? accesses[b].lastForwardWrite : accesses[b].lastForward, gone, gone /* plan() decides */, neededBy}};
    d.reason = swaps(b) ? "no convolution wrote it" : "used again in the backward half only";
    return d;
  }

  const Problem &problem;
  const bool hybrid, masks;
  const std::vector<Accesses> accesses;
  const std::vector<Gap> gaps;
  std::vector<int> tensors; ///< that leave, and those of which only a mask stays
  int firstBackward = 0;
};

} // namespace

/// The published numbers of buffers and of tensors ahead first, then fewer of each, until a plan fits.
static Answer planFreeLunch(const Problem &problem, Bytes memory, const Options &options) {
  const bool hybrid = numberKnob(options, "hybrid", 0) > 0;
  for (auto [wanted, action] : {std::pair(true, Ability(Codec::Zfp)), {hybrid, Action::Offload}})
    if (Status may = checkAbility(options, "freelunch", action); wanted && !may)
      return Refused{may.error()};
  const bool branches = std::any_of(problem.ops.begin(), problem.ops.end(),
                                    [](const Op &op) { return op.kind == OpKind::Join || op.kind == OpKind::Concat; });
  const int published = static_cast<int>(std::min(1e6, numberKnob(options, "buffers", 0)));
  const int ahead = static_cast<int>(std::min(1e6, numberKnob(options, "ahead", 2)));
  const bool masks = numberKnob(options, "masks", 1) > 0 && options.executable.has(Codec::Mask);
  const bool stay = numberKnob(options, "stay", 0) > 0;
  const FreeLunch freeLunch(problem, hybrid, masks);
  Attempt best;
  for (int buffers = published > 0 ? published : branches ? 6 : 3; buffers > 0; --buffers)
    for (int early : {ahead, 1, 0}) {
      Attempt attempt = measured(problem, memory, freeLunch.plan(buffers, early));
      if (attempt.feasible && stay)
        attempt = measured(problem, memory, freeLunch.withoutNeedless(std::move(attempt.plan)));
      if (attempt.feasible)
        return answerOf(std::move(attempt), "freelunch", memory);
      improve(best, std::move(attempt));
    }
  return answerOf(std::move(best), "freelunch", memory);
}

static ChainAnswer chainFreeLunch(const Chain &chain, double memory, Release, const Options &options) {
  if (chain.bandwidth == 0)
    return Refused{"strategy 'freelunch' takes its codec's rate from the link's, and the problem's 'bandwidth' is 0"};
  return publishedProblem(chain).run(memory, planFreeLunch, everythingAllowed(options));
}

Strategy freelunchStrategy() {
  Strategy s{"freelunch", "compress activations in device memory (Patel et al.)", planFreeLunch, chainFreeLunch};
  s.knobs = {{"buffers", 1e6}, {"ahead", 1e6}, {"hybrid"}, {"masks"}, {"stay"}};
  s.actions = {Action::Offload, Codec::Zfp, Codec::Mask};
  s.lossyAsPublished = true;
  return s;
}

} // namespace sluice::planner
