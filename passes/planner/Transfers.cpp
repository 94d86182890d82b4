// SPDX-License-Identifier: Apache-2.0
// Two mirrored walks over positions. Each keeps the buffers whose copy is pending resident for as long as memory
// allows, oldest copy first to leave. Which half walks first decides who gets the memory around the turn; both are
// simulated and the faster is taken.
#include "passes/planner/Transfers.h"

#include "passes/planner/Inversions.h"
#include "passes/planner/Simulate.h"

#include <algorithm>
#include <deque>

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
  const std::vector<Gap> gaps = gapsOf(problem, plan);
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    Decision &d = plan.decisions[b];
    if (!leavesAndReturns(d.action))
      continue;
    if (gaps[b].empty()) {
      d = {};
      continue;
    }
    d.offloadAfter = gaps[b].first - 1;
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
    std::vector<std::vector<int>> arrivals(n + 1);
    for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
      if (plan.decisions[b].action == Action::Offload || plan.decisions[b].action == Action::Compress)
        arrivals[gapFirst(b)].push_back(b);
    for (int k = 0; k < n; ++k) {
      arrive(arrivals[k]);
      release(k);
      now += positions.seconds[at(k)];
    }
  }

private:
  struct Pending {
    int buffer;
    Seconds copyEnd;
  };
  struct Engine {
    std::deque<Pending> pending;
    Seconds free = 0;
  };

  int at(int k) const { return mirrored ? n - 1 - k : k; }
  int gapFirst(int b) const { return mirrored ? at(plan.decisions[b].prefetchAfter) : plan.decisions[b].freeBefore; }
  int gapLast(int b) const { return mirrored ? at(plan.decisions[b].freeBefore) : plan.decisions[b].prefetchAfter; }
  Bytes size(int b) const { return aligned(problem, problem.buffers[b].bytes); }

  void arrive(std::vector<int> &buffers) {
    // Copies that can start at the same moment go in the order in which the other half wants them.
    std::stable_sort(buffers.begin(), buffers.end(), [&](int a, int b) { return gapLast(a) > gapLast(b); });
    for (int b : buffers) {
      const Decision &d = plan.decisions[b];
      const bool packs = d.action == Action::Compress;
      const Encoding *form = packs ? encodingOf(problem.buffers[b], d.codec) : nullptr;
      const Seconds seconds = !packs     ? copySeconds(problem, b, d, !mirrored)
                              : mirrored ? form->decodeSeconds
                                         : form->encodeSeconds;
      Engine &engine = engines[packs];
      engine.free = std::max(engine.free, now) + seconds;
      engine.pending.push_back({b, engine.free});
      held += size(b);
    }
  }

  /// The engine whose next copy ends first; null when nothing is pending.
  Engine *nextToEnd() {
    Engine *first = nullptr;
    for (Engine &engine : engines)
      if (!engine.pending.empty() && (!first || engine.pending.front().copyEnd < first->pending.front().copyEnd))
        first = &engine;
    return first;
  }

  /// Decides who is still resident at position k.
  void release(int k) {
    for (Engine *next = nextToEnd(); next; next = nextToEnd()) {
      const Pending &front = next->pending.front();
      if (front.copyEnd > now && positions.live[at(k)] + held <= memory)
        break;
      now = std::max(now, front.copyEnd);
      setGapFirst(front.buffer, k);
      held -= size(front.buffer);
      next->pending.pop_front();
    }
    // Who would have to be back at the next position never needs to leave; whoever must leave is waited for.
    for (Engine &engine : engines)
      for (auto p = engine.pending.begin(); p != engine.pending.end();)
        if (gapLast(p->buffer) == k) {
          held -= size(p->buffer);
          if (mayStay) {
            keep(p->buffer);
          } else {
            now = std::max(now, p->copyEnd);
            setGapFirst(p->buffer, k);
          }
          p = engine.pending.erase(p);
        } else {
          ++p;
        }
  }

  void setGapFirst(int b, int k) {
    if (mirrored)
      plan.decisions[b].prefetchAfter = at(k);
    else
      plan.decisions[b].freeBefore = k;
  }

  /// From now on resident: its bytes join the live ones of the rest of its gap, which is over.
  void keep(int b) { plan.decisions[b] = {}; }

  const Problem &problem;
  const Bytes memory;
  Plan &plan;
  const bool mirrored, mayStay;
  const Positions positions;
  const int n;
  Engine engines[2]; ///< link, codec stream
  Bytes held = 0;
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
