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
// (see Pack.h).
//
// Complexity O(L^2).
//
// Knobs: mode=0 (0: the fastest that fits of 1 all, 2 conv, 3 aconv), synchronous=0 (1: vDNN's protocol, which ends
// every layer when both its compute and its copy have ended).
//
// Fails where a mode's set, with its prefetches, does not fit; needs the kinds of layers. Plans chains only: its
// protocol is one of layers.
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <limits>

namespace sluice::planner {

namespace {

class Protocol {
public:
  Protocol(const Chain &chain, double memory, std::vector<bool> offloaded, bool synchronous)
      : c(chain), memory(memory), offloaded(std::move(offloaded)), synchronous(synchronous), n(chain.uF.size()) {
    choosePrefetches();
  }

  /// Bytes below which the backward half, prefetches included, or the forward half does not fit.
  double need() const {
    double most = chainNeed(c, offloaded);
    std::vector<bool> back(n, false);
    for (int m = n - 1; m >= 0; --m) {
      back[m] = true;
      if (prefetch[m] >= 0)
        back[prefetch[m]] = true;
      double bytes = c.exB[m] + c.y[m] + c.y[m + 1] + c.moved(m + 1);
      for (int j = 0; j <= m; ++j)
        bytes += !offloaded[j] || back[j] ? c.moved(j) : 0;
      most = std::max(most, bytes);
    }
    return most;
  }

  ChainAnswer run() {
    if (need() > memory + byteSlack(c))
      return ChainInfeasible{need(), "the mode's set and its prefetches do not fit"};
    forward();
    backward();
    ChainPlan plan;
    for (bool off : offloaded)
      plan.actions.push_back(off ? Action::Offload : Action::Keep);
    std::stable_sort(timeline.events.begin(), timeline.events.end(),
                     [](const auto &a, const auto &b) { return a.start < b.start; });
    timeline.makespan = now;
    timeline.peakBytes = std::max(need(), peak);
    plan.timeline = std::move(timeline);
    return plan;
  }

private:
  using What = ChainEvent::What;

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

  Seconds copy(What what, int index) {
    const Seconds start = std::max(now, linkFree);
    linkFree = start + c.moved(index) / c.bandwidth;
    timeline.events.push_back({what, index, start, linkFree});
    return linkFree;
  }

  void forward() {
    std::vector<Seconds> freed(n, std::numeric_limits<Seconds>::infinity());
    for (int i = 0; i < n; ++i) {
      const Seconds out = offloaded[i] ? copy(What::Out, i) : 0;
      // Wait for copies, oldest first, until the output fits.
      auto live = [&] {
        double bytes = c.exF[i] + c.moved(i + 1);
        for (int j = 0; j <= i; ++j)
          bytes += freed[j] > now ? c.moved(j) : 0;
        return bytes;
      };
      for (int j = 0; j < i && live() > memory + byteSlack(c); ++j)
        if (offloaded[j])
          now = std::max(now, freed[j]);
      peak = std::max(peak, live());
      timeline.events.push_back({What::Forward, i, now, now + c.uF[i]});
      now += c.uF[i];
      if (offloaded[i])
        freed[i] = std::max(out, now);
      if (synchronous)
        now = std::max(now, out);
    }
    now = std::max(now, linkFree);
  }

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
  std::vector<int> prefetch; ///< per layer, what its backward step brings back; -1: nothing
  ChainTimeline timeline;
  Seconds now = 0, linkFree = 0;
  double peak = 0;
};

} // namespace

ChainAnswer chainVdnnpp(const Chain &chain, double memory, Release, const Options &options) {
  if (chain.kinds.empty())
    return Refused{"strategy 'vdnnpp' chooses by kind of layer, and the problem has no 'op'"};
  if (chain.bandwidth == 0)
    return Refused{"strategy 'vdnnpp' always offloads, and the problem's 'bandwidth' is 0"};
  const int mode = static_cast<int>(numberKnob(options, "mode", 0));
  if (mode > 3)
    return Refused{"knob 'mode' of strategy 'vdnnpp' is " + std::to_string(mode) + ", it must be 0 to 3"};
  ChainAnswer best = ChainInfeasible{std::numeric_limits<double>::max(), ""};
  for (int m = 1; m <= 3; ++m) {
    if (mode != 0 && mode != m)
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

} // namespace sluice::planner
