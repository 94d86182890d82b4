// SPDX-License-Identifier: Apache-2.0
// Two mirrored walks over positions. Each keeps the buffers whose copy is pending resident for as long as memory
// allows. A copy out may begin when the content is complete, while forward ops still read it; of those that may begin,
// the one whose bytes are read no more first goes first. Which half walks first decides who gets the memory around the
// turn; both are simulated and the faster is taken.
#include "passes/planner/Transfers.h"

#include "passes/planner/Inversions.h"
#include "passes/planner/Simulate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace sluice::planner {

/// First access of every buffer after its forward ones, re-runs and inversions included; the number of ops without one.
static std::vector<int> nextAccesses(const Problem &problem, const Plan &plan, const std::vector<Accesses> &accesses) {
  const int n = problem.ops.size();
  std::vector<int> next(problem.buffers.size(), n);
  for (size_t b = 0; b < next.size(); ++b)
    if (accesses[b].firstLater >= 0)
      next[b] = accesses[b].firstLater;
  for (const Recompute &r : plan.recomputes)
    for (int op : r.ops)
      for (const auto *list : {&problem.ops[op].readsWhen(true), &problem.ops[op].writesWhen(true)})
        for (int b : *list)
          if (r.before > accesses[b].lastForward)
            next[b] = std::min(next[b], r.before);
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (const Decision &d = plan.decisions[b]; d.action == Action::Invert && d.neededBy >= 0) {
      next[b] = std::min(next[b], d.neededBy);
      for (int source : problem.buffers[b].inversion->sources)
        next[source] = std::min(next[source], d.neededBy);
    }
  return next;
}

std::vector<Gap> gapsOf(const Problem &problem, const Plan &plan) {
  const std::vector<Accesses> accesses = accessesOf(problem);
  const int n = problem.ops.size();
  const std::vector<int> next = nextAccesses(problem, plan, accesses);
  std::vector<Gap> gaps(next.size());
  for (size_t b = 0; b < next.size(); ++b)
    if (accesses[b].lastForward >= 0 && next[b] < n)
      gaps[b] = {accesses[b].lastForward + 1, next[b] - 1};
  return gaps;
}

bool leavesAndReturns(Action action) {
  return action == Action::Offload || action == Action::Compress || action == Action::Invert;
}

void widenGaps(const Problem &problem, Plan &plan) {
  placeInversions(problem, plan);
  const std::vector<Accesses> accesses = accessesOf(problem);
  const std::vector<Gap> gaps = gapsOf(problem, plan);
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    Decision &d = plan.decisions[b];
    if (!leavesAndReturns(d.action))
      continue;
    if (gaps[b].empty()) {
      d = {};
      continue;
    }
    d.offloadAfter = d.action == Action::Offload ? accesses[b].lastForwardWrite : accesses[b].lastForward;
    d.freeBefore = gaps[b].first;
    d.prefetchAfter = gaps[b].last;
    d.neededBy = gaps[b].last + 1;
  }
}

namespace {

/// Live bytes and compute seconds by position, under the plan as it stands.
struct Positions {
  std::vector<Bytes> live;
  std::vector<Seconds> seconds;

  Positions(const Problem &problem, const Plan &plan) : live(problem.ops.size(), 0), seconds(problem.ops.size(), 0) {
    const Program program = expand(problem, plan);
    const std::vector<Bytes> bytes = liveBytes(problem, program);
    for (size_t s = 0; s < program.steps.size(); ++s) {
      const Step &step = program.steps[s];
      live[step.position] = std::max(live[step.position], bytes[s]);
      seconds[step.position] += secondsOf(problem, plan, step);
    }
  }
};

/// One walk. Position and gap ends are mirrored for the backward half, so the code below only knows "later".
class Walk {
public:
  Walk(const Problem &problem, Bytes memory, Plan &plan, bool mirrored, bool mayStay)
      : problem(problem), memory(memory), plan(plan), mirrored(mirrored), mayStay(mayStay), positions(problem, plan),
        n(problem.ops.size()) {}

  void run() {
    std::vector<std::vector<int>> complete(n + 1), unread(n + 1); // positions where copies may begin, gaps do
    for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
      if (plan.decisions[b].action == Action::Offload || plan.decisions[b].action == Action::Compress) {
        complete[mirrored ? gapFirst(b) : plan.decisions[b].offloadAfter + 1].push_back(b);
        unread[gapFirst(b)].push_back(b);
      }
    for (int k = 0; k < n; ++k) {
      begin(now, false); // while the op before ran
      for (int b : complete[k])
        arrive(b);
      begin(now, true);
      for (int b : unread[k])
        held += size(b);
      release(k);
      now += positions.seconds[at(k)];
    }
  }

private:
  struct Copy {
    int buffer, gapFirst;
    Seconds since, seconds; ///< when it may begin, and how long it takes
    Seconds end = 0;        ///< of one that has begun
  };
  struct Engine {
    /// Not begun. First those whose gaps begin first; of equals, in the order in which the other half wants them.
    std::map<std::tuple<int, int, int>, Copy> waiting;
    std::vector<Copy> begun; ///< in order; bytes still resident
    Seconds free = 0;
    int after = -1; ///< op that the last one was issued after
  };

  int at(int k) const { return mirrored ? n - 1 - k : k; }
  int gapFirst(int b) const { return mirrored ? at(plan.decisions[b].prefetchAfter) : plan.decisions[b].freeBefore; }
  int gapLast(int b) const { return mirrored ? at(plan.decisions[b].freeBefore) : plan.decisions[b].prefetchAfter; }
  Bytes size(int b) const { return aligned(problem, problem.buffers[b].bytes); }

  void arrive(int b) {
    const Decision &d = plan.decisions[b];
    const bool packs = d.action == Action::Compress;
    const Encoding *form = packs ? encodingOf(problem.buffers[b], d.codec) : nullptr;
    const Seconds seconds = !packs     ? copySeconds(problem, b, d, !mirrored)
                            : mirrored ? form->decodeSeconds
                                       : form->encodeSeconds;
    engines[packs].waiting.emplace(std::tuple(gapFirst(b), -gapLast(b), b), Copy{b, gapFirst(b), now, seconds});
  }

  void beginNext(Engine &engine) {
    Copy copy = engine.waiting.begin()->second;
    engine.waiting.erase(engine.waiting.begin());
    copy.end = engine.free = std::max(engine.free, copy.since) + copy.seconds;
    engine.begun.push_back(copy);
    if (mirrored)
      return;
    // The stream serves copies in the order of issue: one that an urgent one overtook is issued after that.
    Decision &d = plan.decisions[copy.buffer];
    d.offloadAfter = engine.after = std::max(engine.after, d.offloadAfter);
  }

  /// Begins all that begins before `until`, or then.
  void begin(Seconds until, bool then) {
    for (Engine &engine : engines)
      while (!engine.waiting.empty() && (engine.free < until || (then && engine.free == until)))
        beginNext(engine);
  }

  /// When the next copy ends of a buffer that is read no more at position k.
  Seconds nextEnd(int k) {
    Seconds next = std::numeric_limits<Seconds>::infinity();
    for (Engine &engine : engines) {
      const auto unread = [&](const Copy &copy) { return copy.gapFirst <= k; };
      auto first = std::find_if(engine.begun.begin(), engine.begun.end(), unread);
      if (first == engine.begun.end() && !engine.waiting.empty() && unread(engine.waiting.begin()->second)) {
        beginNext(engine);
        first = std::prev(engine.begun.end());
      }
      if (first != engine.begun.end())
        next = std::min(next, first->end);
    }
    return next;
  }

  /// Decides who is still resident at position k.
  void release(int k) {
    for (Seconds next = nextEnd(k);
         next <= now || (positions.live[at(k)] + held > memory && next < std::numeric_limits<Seconds>::infinity());
         next = nextEnd(k)) {
      now = std::max(now, next);
      leave(k, [&](const Copy &copy) { return copy.gapFirst <= k && copy.end <= now; });
    }
    // Who would have to be back at the next position never needs to leave; whoever must leave is waited for.
    for (Engine &engine : engines) {
      const auto returns = [&](const Copy &copy) { return gapLast(copy.buffer) == k; };
      const auto waits = [&](const auto &entry) { return returns(entry.second); };
      while (!mayStay && std::any_of(engine.waiting.begin(), engine.waiting.end(), waits))
        beginNext(engine);
      for (auto entry = engine.waiting.begin(); entry != engine.waiting.end();)
        if (waits(*entry)) {
          held -= size(entry->second.buffer);
          plan.decisions[entry->second.buffer] = {};
          entry = engine.waiting.erase(entry);
        } else {
          ++entry;
        }
      for (const Copy &copy : engine.begun)
        if (!mayStay && returns(copy))
          now = std::max(now, copy.end);
    }
    leave(k, [&](const Copy &copy) { return gapLast(copy.buffer) == k; });
  }

  /// The bytes go of those copies that have begun and of which `which` is true. Those that have not ended stay for
  /// good: their bytes join the live ones of the rest of their gap, which is over.
  template <typename Which> void leave(int k, Which which) {
    for (Engine &engine : engines)
      for (auto copy = engine.begun.begin(); copy != engine.begun.end();)
        if (which(*copy)) {
          held -= size(copy->buffer);
          Decision &d = plan.decisions[copy->buffer];
          if (copy->end > now)
            d = {};
          else
            (mirrored ? d.prefetchAfter : d.freeBefore) = at(k);
          copy = engine.begun.erase(copy);
        } else {
          ++copy;
        }
  }

  const Problem &problem;
  const Bytes memory;
  Plan &plan;
  const bool mirrored, mayStay;
  const Positions positions;
  const int n;
  Engine engines[2]; ///< link, codec stream
  Bytes held = 0;    ///< of those that are read no more
  Seconds now = 0;
};

} // namespace

bool placeTransfers(const Problem &problem, Bytes memory, Plan &plan, bool mayStay) {
  widenGaps(problem, plan);
  if (peakBytes(problem, expand(problem, plan)) > memory)
    return false;
  Plan best;
  Seconds bestSpan = std::numeric_limits<Seconds>::infinity();
  for (bool mirroredFirst : {false, true}) {
    Plan attempt = plan;
    Walk(problem, memory, attempt, mirroredFirst, mayStay).run();
    Walk(problem, memory, attempt, !mirroredFirst, mayStay).run();
    const Timeline timeline = simulate(problem, attempt);
    if (timeline.makespan < bestSpan) {
      bestSpan = timeline.makespan;
      best = std::move(attempt);
    }
    if (timeline.makespan <= timeline.busy)
      break; // nothing waits
  }
  plan = std::move(best);
  return true;
}

void delayDepartures(const Problem &problem, Bytes memory, Plan &plan, bool mayStay) {
  Walk(problem, memory, plan, false, mayStay).run();
}

} // namespace sluice::planner
