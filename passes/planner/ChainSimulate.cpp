// SPDX-License-Identifier: Apache-2.0
// Three steps (Beaumont et al., Section 3.3, and their late-prefetch rewrite): the forward half in forward time, the
// backward half in reversed time, where a prefetch is an offload and B_0 runs first, and the join. A naive forward
// simulation of prefetches could deadlock: an early prefetch takes memory that a later op needs and cannot be released.
#include "passes/planner/ChainSimulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace sluice::planner {

Stream ChainEvent::stream() const {
  switch (what) {
  case What::Out:
    return Stream::ToHost;
  case What::In:
    return Stream::ToDevice;
  case What::Compress:
  case What::Decompress:
    return Stream::Codec;
  default:
    return Stream::Compute;
  }
}

std::string ChainEvent::name() const {
  const std::string i = std::to_string(index);
  switch (what) {
  case What::Forward:
    return "F_" + i;
  case What::Backward:
    return "B_" + i;
  case What::Out:
    return "offload x_" + i;
  case What::In:
    return "prefetch x_" + i;
  case What::Compress:
    return "compress x_" + i;
  case What::Decompress:
    return "decompress x_" + i;
  case What::Invert:
    return "invert x_" + i;
  }
  return i;
}

namespace {

struct Copy {
  int index;
  Seconds start, end;
  Seconds released; ///< whole release: when its bytes are free
};

/// One half in its own time; vectors by op index.
struct Half {
  std::vector<Seconds> starts, ends;
  std::vector<Copy> copies;
};

/// Walks ops 0..L. `uses[i]`: bytes that op i needs besides x_j with j <= i; x_i's copy may start when op i - 1
/// (forward) or op i (backward, in reversed time) has ended.
class HalfWalk {
public:
  HalfWalk(const Chain &chain, double memory, const std::vector<bool> &offloaded, Release release, bool forward)
      : chain(chain), memory(memory), offloaded(offloaded), release(release), forward(forward),
        slack(byteSlack(chain)) {}

  /// The no-wait schedule of one half: each op as soon as the one before has ended and its bytes fit, each copy as soon
  /// as its tensor is complete and the link free. In reversed time a tensor is "complete" after its last use, which is
  /// B_i.
  Half run() {
    for (int i = 0; i <= chain.last(); ++i) {
      held += chain.moved(i);
      if (forward)
        issue(i);
      now = std::max(now, roomFor(use(i)));
      half.starts.push_back(now);
      now += forward ? chain.uF[i] : chain.uB[i];
      half.ends.push_back(now);
      if (!forward)
        issue(i);
      // Whole release: the bytes of x_i leave when its copy and its reader have ended.
      if (offloaded[i])
        for (Copy &copy : half.copies)
          if (copy.index == i)
            copy.released = std::max(copy.end, now);
    }
    return half;
  }

private:
  double use(int i) const {
    const double next = chain.moved(i + 1);
    return forward ? next + chain.exF[i] : next + chain.exB[i] + chain.y[i] + chain.y[i + 1];
  }

  /// The link carries one copy after the other; when its bytes are free is known once its reader has run.
  void issue(int i) {
    if (!offloaded[i])
      return;
    const Seconds start = std::max(now, half.copies.empty() ? 0 : half.copies.back().end);
    half.copies.push_back(
        {i, start, start + chain.moved(i) / chain.bandwidth, std::numeric_limits<Seconds>::infinity()});
  }

  /// Bytes of x_0..x_i still on the device at time t.
  double heldAt(Seconds t) const {
    double bytes = held;
    for (const Copy &copy : half.copies)
      if (release == Release::Whole)
        bytes -= copy.released <= t ? chain.moved(copy.index) : 0;
      else
        bytes -= std::clamp((t - copy.start) * chain.bandwidth, 0.0, chain.moved(copy.index));
    return bytes;
  }

  /// Earliest time at which `need` more bytes fit; the set is known to suffice.
  Seconds roomFor(double need) const {
    double excess = heldAt(now) + need - memory;
    if (excess <= slack)
      return now;
    if (release == Release::Partial) {
      // While an op waits the queued copies follow one another without a break.
      return now + excess / chain.bandwidth;
    }
    for (const Copy &copy : half.copies) {
      if (copy.released <= now)
        continue;
      excess -= chain.moved(copy.index);
      if (excess <= slack)
        return copy.released;
    }
    return now;
  }

  const Chain &chain;
  const double memory;
  const std::vector<bool> &offloaded;
  const Release release;
  const bool forward;
  const double slack;
  Half half;
  double held = 0;
  Seconds now = 0;
};

/// Earliest time t of the half at which at most `allowed` bytes of its copies are pending.
Seconds drainedTo(const Chain &chain, const std::vector<Copy> &copies, Release release, double allowed) {
  Seconds t = -std::numeric_limits<Seconds>::infinity();
  double pending = 0;
  for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy) {
    const double bytes = chain.moved(copy->index);
    if (pending + bytes > allowed)
      return release == Release::Whole ? copy->released : copy->end - (allowed - pending) / chain.bandwidth;
    pending += bytes;
  }
  return t;
}

/// Bytes of one copy that have not left at time t of its half.
double pendingAt(const Chain &chain, const Copy &copy, Release release, Seconds t) {
  if (release == Release::Whole)
    return copy.released > t ? chain.moved(copy.index) : 0;
  return std::clamp((copy.end - t) * chain.bandwidth, 0.0, chain.moved(copy.index));
}

/// Extra time between the end of F_L and the start of B_L. Three reasons: copies of the two halves may not overlap;
/// early B's meet bytes that are still leaving; late F's meet bytes that are already coming back.
class Join {
public:
  Join(const Chain &chain, double memory, const std::vector<bool> &offloaded, Release release)
      : chain(chain), memory(memory), offloaded(offloaded), release(release), slack(byteSlack(chain)) {
    double kept = 0;
    for (int i = 0; i <= chain.last(); ++i) {
      keptBelow.push_back(kept);
      kept += offloaded[i] ? 0 : chain.moved(i);
    }
  }

  Seconds gap(const Half &f, const Half &b) const {
    if (f.copies.empty())
      return 0;
    const Seconds overlap = (f.copies.back().end - f.ends.back()) + (b.copies.back().end - b.ends.back());
    return std::max({0.0, overlap, meet(f, b, true), meet(b, f, false)});
  }

private:
  /// Ops of `other` that run while bytes of `half` are pending. Both half's times count towards the turn, so an op of
  /// `other` lies ends.back() - ends[j] beyond it. While the other half's own copies run, exclusion has already drained
  /// this half.
  Seconds meet(const Half &half, const Half &other, bool backward) const {
    Seconds gap = 0;
    for (int j = chain.last(); j >= 0 && other.ends[j] >= other.copies.back().end; --j) {
      const Seconds t = drainedTo(chain, half.copies, release, memory - holds(j, backward) + slack);
      gap = std::max(gap, t - half.ends.back() - (other.ends.back() - other.ends[j]));
    }
    return gap;
  }

  /// Bytes that op j holds at its end that faces the turn, once all copies of its half are over.
  double holds(int j, bool backward) const {
    if (backward)
      return keptBelow[j] + chain.moved(j) + chain.moved(j + 1) + chain.exB[j] + chain.y[j] + chain.y[j + 1];
    // Copied bytes of x_j itself are free while F_j still runs only where parts are released.
    const bool gone = offloaded[j] && release == Release::Partial;
    return keptBelow[j] + (gone ? 0 : chain.moved(j)) + chain.moved(j + 1) + chain.exF[j];
  }

  const Chain &chain;
  const double memory;
  const std::vector<bool> &offloaded;
  const Release release;
  const double slack;
  std::vector<double> keptBelow; ///< kept bytes among x_0..x_(j-1)
};

/// Puts both halves on one clock.
ChainTimeline onOneClock(const Half &f, const Half &b, Seconds gap) {
  using What = ChainEvent::What;
  ChainTimeline timeline;
  const Seconds turn = f.ends.back() + gap + b.ends.back(); // time t of the reversed half happens at turn - t
  for (size_t i = 0; i < f.starts.size(); ++i) {
    const int index = static_cast<int>(i);
    timeline.events.push_back({What::Forward, index, f.starts[i], f.ends[i]});
    timeline.events.push_back({What::Backward, index, turn - b.ends[i], turn - b.starts[i]});
  }
  for (const Copy &copy : f.copies)
    timeline.events.push_back({What::Out, copy.index, copy.start, copy.end});
  for (const Copy &copy : b.copies)
    timeline.events.push_back({What::In, copy.index, turn - copy.end, turn - copy.start});
  std::stable_sort(timeline.events.begin(), timeline.events.end(), [](const ChainEvent &p, const ChainEvent &q) {
    return std::tie(p.start, p.end) < std::tie(q.start, q.end);
  });
  timeline.makespan = turn;
  return timeline;
}

/// Most bytes on the device. They peak where an op starts or, when content is coming back, where it ends.
double peakOf(const Chain &chain, const ChainTimeline &timeline, const std::vector<bool> &offloaded, const Half &f,
              const Half &b, Release release) {
  const Seconds turn = timeline.makespan;
  const Seconds instant = 1e-12 * turn; // both clocks round; bytes that leave at the very moment have left
  auto bytesAt = [&](Seconds t, int index, bool backward) {
    double bytes = backward ? chain.exB[index] + chain.y[index] + chain.y[index + 1] : chain.exF[index];
    for (int j = 0; j <= index + 1; ++j)
      if (j > index || !offloaded[j] || (j == index && (backward || release == Release::Whole)))
        bytes += chain.moved(j);
    for (const Copy &copy : f.copies)
      if (copy.index < index || (copy.index == index && !backward && release == Release::Partial))
        bytes += pendingAt(chain, copy, release, t + instant);
    for (const Copy &copy : b.copies)
      if (copy.index < index || (!backward && copy.index == index && release == Release::Partial))
        bytes += pendingAt(chain, copy, release, turn - t + instant);
    return bytes;
  };
  double peak = 0;
  for (const ChainEvent &e : timeline.events)
    if (e.stream() == Stream::Compute)
      for (Seconds t : {e.start, e.end})
        peak = std::max(peak, bytesAt(t, e.index, e.what == ChainEvent::What::Backward));
  return peak;
}

} // namespace

std::optional<ChainTimeline> simulateChain(const Chain &chain, double memory, const std::vector<bool> &offloaded,
                                           Release release) {
  const bool any = std::find(offloaded.begin(), offloaded.end(), true) != offloaded.end();
  if (chainNeed(chain, offloaded) > memory + byteSlack(chain) || (any && chain.bandwidth == 0))
    return std::nullopt;
  const Half f = HalfWalk(chain, memory, offloaded, release, true).run();
  const Half b = HalfWalk(chain, memory, offloaded, release, false).run();
  ChainTimeline timeline = onOneClock(f, b, Join(chain, memory, offloaded, release).gap(f, b));
  timeline.peakBytes = peakOf(chain, timeline, offloaded, f, b, release);
  return timeline;
}

} // namespace sluice::planner
