// SPDX-License-Identifier: Apache-2.0
// vdnnpp: S. Shriram, A. Garg, P. Kulkarni, Dynamic Memory Management for GPU-Based Training of Deep Neural
// Networks, IPDPS 2019, Section III.
//
// Rule: offload as vdnn's modes do, but let a layer end when its compute ends: the copy goes on beside the next
// layers and its bytes are freed when it is over. All copies out end before the backward half starts. At layer m at
// most one prefetch is issued: the nearest offloaded input below that is not back yet, searching no further than
// the next convolution below.
//
// Changed: allocation waits until live bytes fit instead of blocking in a pool; pool sizes are a matter of packing
// (see Pack.h). On a branching program the layers of the backward half are its ops in program order, each with the
// tensors that it reads first; a prefetch that would start before all copies out have ended starts one op later.
//
// Complexity O(L^2) on chains, O(ops^2) on programs without convolutions, O(ops) otherwise.
//
// Knobs: mode=0 (0: the fastest that fits of 1 all, 2 conv, 3 aconv; 4: dyn, the first that fits in vdnn-dyn's order),
// synchronous=0 (1: vDNN's protocol, which ends every layer when both its compute and its copy have ended). On
// programs, kernels=0 (1: those of least workspace, the paper's (m); 2: the fastest, its (p); alternatives exist with
// --allow-lossy=algorithms); dyn chooses them itself.
//
// Fails where a mode's set, with its prefetches, does not fit; needs the kinds of layers.
#include "passes/planner/Transfers.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Kernels.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace sluice::planner {

namespace {

/// The protocol on a chain, with a clock of its own: simulateChain() would choose other moments for copies.
class Protocol {
public:
  Protocol(const Chain &chain, double memory, std::vector<bool> offloaded, bool synchronous)
      : c(chain), memory(memory), offloaded(std::move(offloaded)), synchronous(synchronous), n(chain.uF.size()) {
    choosePrefetches();
  }

  /// Bytes below which the backward half, prefetches included, or the forward half does not fit.
  double need() const {
    double most = chainNeed(c, offloaded), held = 0; // of x_0 to the layer's input, what is there or has been asked for
    std::vector<bool> there(n);
    for (int j = 0; j < n; ++j) {
      there[j] = !offloaded[j];
      held += there[j] ? c.moved(j) : 0;
    }
    for (int m = n - 1; m >= 0; --m) {
      for (int back : {m, prefetch[m]})
        if (back >= 0 && !there[back]) {
          there[back] = true;
          held += c.moved(back);
        }
      most = std::max(most, held + c.exB[m] + c.y[m] + c.y[m + 1] + c.moved(m + 1));
      held -= c.moved(m);
    }
    return most;
  }

  ChainAnswer run() {
    const double least = need();
    if (least > memory + slack)
      return ChainInfeasible{least, "the mode's set and its prefetches do not fit"};
    forward();
    backward();
    ChainPlan plan;
    for (bool off : offloaded)
      plan.actions.push_back(off ? Action::Offload : Action::Keep);
    std::stable_sort(timeline.events.begin(), timeline.events.end(),
                     [](const auto &a, const auto &b) { return a.start < b.start; });
    timeline.makespan = now;
    timeline.peakBytes = std::max(least, peak);
    plan.timeline = std::move(timeline);
    return plan;
  }

private:
  using What = ChainEvent::What;

  /// For each layer of the backward half what it brings back: the nearest offloaded input below that nobody has asked
  /// for, if no convolution lies between (the paper's search window).
  void choosePrefetches() {
    prefetch.assign(n, -1);
    std::vector<bool> issued(n, false);
    for (int m = n - 1; m >= 0; --m) {
      issued[m] = true;
      for (int i = m - 1; i >= 0; --i) {
        if (offloaded[i] && !issued[i]) {
          prefetch[m] = i;
          issued[i] = true;
          break;
        }
        if (c.kinds[i] == OpKind::Conv)
          break;
      }
    }
  }

  /// One clock for both directions: copies out have all ended before the first one back begins.
  Seconds copy(What what, int index) {
    const Seconds start = std::max(now, linkFree);
    linkFree = start + c.moved(index) / c.bandwidth;
    timeline.events.push_back({what, index, start, linkFree});
    return linkFree;
  }

  /// Layers wait for memory alone, oldest copy first; bytes go when both copy and layer have ended. The backward half
  /// starts when all copies out are over.
  void forward() {
    std::deque<std::pair<int, Seconds>> leaving; // offloaded, with the time when their bytes are free, which only grows
    double held = 0;                             // of x_0 to the layer's input
    const auto release = [&] {
      for (; !leaving.empty() && leaving.front().second <= now; leaving.pop_front())
        held -= c.moved(leaving.front().first);
    };
    for (int i = 0; i < n; ++i) {
      held += c.moved(i);
      const Seconds out = offloaded[i] ? copy(What::Out, i) : 0;
      const double own = c.exF[i] + c.moved(i + 1);
      release();
      // Wait for copies, oldest first, until the output fits.
      while (held + own > memory + slack && !leaving.empty()) {
        now = leaving.front().second;
        release();
      }
      peak = std::max(peak, held + own);
      timeline.events.push_back({What::Forward, i, now, now + c.uF[i]});
      now += c.uF[i];
      if (offloaded[i])
        leaving.push_back({i, std::max(out, now)});
      if (synchronous)
        now = std::max(now, out);
    }
    now = std::max(now, linkFree);
  }

  /// A layer waits for its input, asks for one more, and runs. What nobody had asked for is fetched on demand.
  void backward() {
    std::vector<Seconds> back(n, -1);
    for (int m = n - 1; m >= 0; --m) {
      if (offloaded[m])
        now = std::max(now, back[m] >= 0 ? back[m] : copy(What::In, m)); // nobody looked that far ahead
      const int p = prefetch[m];
      if (p >= 0)
        back[p] = copy(What::In, p);
      timeline.events.push_back({What::Backward, m, now, now + c.uB[m]});
      now += c.uB[m];
      if (synchronous && p >= 0)
        now = std::max(now, back[p]);
    }
  }

  const Chain &c;
  const double memory;
  const std::vector<bool> offloaded;
  const bool synchronous;
  const int n;
  const double slack = byteSlack(c);
  std::vector<int> prefetch; ///< per layer, what its backward step brings back; -1: nothing
  ChainTimeline timeline;
  Seconds now = 0, linkFree = 0;
  double peak = 0;
};

/// The same protocol on an op-level program.
class ProgramProtocol {
public:
  ProgramProtocol(const Problem &problem, Bytes memory, bool synchronous)
      : problem(problem), memory(memory), synchronous(synchronous), gaps(gapsOf(problem, keepPlan(problem))) {
    while (firstBackward < static_cast<int>(problem.ops.size()) && problem.ops[firstBackward].phase == Phase::Forward)
      ++firstBackward;
  }

  /// From a plan that keeps everything with some kernels.
  Attempt attempt(Plan plan, const std::vector<int> &offloaded) const {
    std::vector<Decision> &decisions = plan.decisions;
    for (int b : offloaded)
      if (!gaps[b].empty() && gaps[b].last + 1 >= firstBackward) {
        decisions[b].action = Action::Offload;
        decisions[b].reason = "input of a layer that the mode offloads";
      }
    widenGaps(problem, plan);
    const std::vector<Decision> widest = decisions;
    if (!synchronous)
      delayDepartures(problem, memory, plan);
    for (size_t b = 0; b < widest.size(); ++b)
      if (widest[b].action == Action::Offload) { // kept ones, too, leave as published
        const int until =
            decisions[b].action == Action::Offload ? decisions[b].absences.front().freeBefore : firstBackward;
        decisions[b] = widest[b];
        decisions[b].absences.front().freeBefore =
            std::min({until, std::max(firstBackward, gaps[b].first), gaps[b].last});
      }
    placePrefetches(decisions);
    return measured(problem, memory, std::move(plan));
  }

private:
  /// Per op, the tensors that it is the first to read again.
  std::vector<std::vector<int>> firstReads(const std::vector<Decision> &decisions) const {
    std::vector<std::vector<int>> readAt(problem.ops.size());
    for (int b = 0; b < static_cast<int>(decisions.size()); ++b)
      if (decisions[b].action == Action::Offload)
        readAt[decisions[b].absences.front().neededBy].push_back(b);
    return readAt;
  }

  /// At every op at most one tensor: the first that is read below and not back yet, no further than the next
  /// convolution.
  void placePrefetches(std::vector<Decision> &decisions) const {
    const std::vector<std::vector<int>> readAt = firstReads(decisions);
    std::vector<bool> issued(decisions.size(), false);
    for (int k = firstBackward; k < static_cast<int>(readAt.size()); ++k) {
      for (int b : readAt[k])
        issued[b] = true; // on demand, if nobody looked that far ahead
      const int b = nextBelow(k, readAt, issued);
      if (b < 0)
        continue;
      issued[b] = true;
      Absence &away = decisions[b].absences.front();
      away.returnAfter = std::clamp(k - 1, away.freeBefore, away.neededBy - 1);
      if (synchronous)
        away.neededBy = std::clamp(k + 1, away.returnAfter + 1, away.neededBy);
    }
  }

  /// The tensor that op k prefetches; -1: none.
  int nextBelow(int k, const std::vector<std::vector<int>> &readAt, const std::vector<bool> &issued) const {
    for (int next = k + 1; next < static_cast<int>(readAt.size()); ++next) {
      for (int b : readAt[next])
        if (!issued[b])
          return b;
      if (problem.ops[next].kind == OpKind::Conv)
        break;
    }
    return -1;
  }

  const Problem &problem;
  const Bytes memory;
  const bool synchronous;
  const std::vector<Gap> gaps;
  int firstBackward = 0;
};

} // namespace

/// The mode that takes the first that fits.
static constexpr int dyn = 4;

/// Of modes 1 to 3 the fastest that fits, or with dyn the first that does, from the one that moves least on.
static ChainAnswer chainVdnnpp(const Chain &chain, double memory, Release, const Options &options) {
  if (chain.kinds.empty())
    return Refused{"strategy 'vdnnpp' chooses by kind of layer, and the problem has no 'op'"};
  if (chain.bandwidth == 0)
    return Refused{"strategy 'vdnnpp' always offloads, and the problem's 'bandwidth' is 0"};
  const int mode = static_cast<int>(numberKnob(options, "mode", 0));
  ChainAnswer best = ChainInfeasible{std::numeric_limits<double>::max(), ""};
  if (mode == dyn)
    best = chainKeep(chain, memory, Release::Whole, options);
  for (int number = 1; number <= 3; ++number) {
    const int m = mode == dyn ? 4 - number : number;
    if ((mode != 0 && mode != dyn && mode != m) || (mode == dyn && std::holds_alternative<ChainPlan>(best)))
      continue;
    ChainAnswer answer = Protocol(chain, memory, vdnnSet(chain, m), numberKnob(options, "synchronous", 0) > 0).run();
    auto *plan = std::get_if<ChainPlan>(&answer), *bestPlan = std::get_if<ChainPlan>(&best);
    auto *none = std::get_if<ChainInfeasible>(&answer), *bestNone = std::get_if<ChainInfeasible>(&best);
    if ((plan && (!bestPlan || plan->timeline.makespan < bestPlan->timeline.makespan)) ||
        (none && bestNone && none->smallestMemory < bestNone->smallestMemory))
      best = std::move(answer);
  }
  return best;
}

static Answer planVdnnpp(const Problem &problem, Bytes memory, const Options &options) {
  if (!options.executable.has(Action::Offload))
    return Refused{"strategy 'vdnnpp' needs action 'offload', which the target does not execute"};
  const int mode = static_cast<int>(numberKnob(options, "mode", 0));
  if (mode == dyn && numberKnob(options, "kernels", 0) > 0)
    return Refused{"strategy 'vdnnpp' with mode=4 chooses kernels itself; leave knob 'kernels' out"};
  if (Status kernels = checkKernels(problem, options, "vdnnpp"); !kernels)
    return Refused{kernels.error()};
  const ProgramProtocol protocol(problem, memory, numberKnob(options, "synchronous", 0) > 0);
  if (mode == dyn)
    return answerOf(vdnnDyn(problem, memory, true,
                            [&](Plan plan, const std::vector<int> &offloaded) {
                              return protocol.attempt(std::move(plan), offloaded);
                            }),
                    "vdnnpp", memory);
  Attempt best;
  for (int m = 1; m <= 3; ++m)
    if (mode == 0 || mode == m)
      improve(best, protocol.attempt(withWantedKernels(problem, options), vdnnInputs(problem, m)));
  return answerOf(std::move(best), "vdnnpp", memory);
}

Strategy vdnnppStrategy() {
  Strategy s{"vdnnpp", "vdnn with copies that outlive their layer (Shriram et al. 2019)", planVdnnpp, chainVdnnpp};
  s.knobs = {{"mode", dyn}, {"synchronous"}, {"kernels", 2}};
  s.actions = {Action::Offload};
  s.takenOver.stages = 64;
  return s;
}

} // namespace sluice::planner
