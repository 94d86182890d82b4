// SPDX-License-Identifier: Apache-2.0
// Two mirrored walks over positions. Each keeps the buffers whose copy is pending resident for as long as memory
// allows. A copy out may begin when the content is complete, while forward ops still read it; of those that may begin,
// the one whose bytes are read no more first goes first. Which half walks first decides who gets the memory around the
// turn; both are simulated and the faster is taken.
#include "passes/planner/Transfers.h"

#include "passes/planner/Room.h"
#include "passes/planner/Simulate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace sluice::planner {

namespace {

/// Live bytes and compute seconds by position, under the plan as it stands.
struct Positions {
  std::vector<Bytes> live;
  std::vector<Seconds> seconds;

  Positions(const Problem &problem, const Plan &plan) : seconds(problem.ops.size(), 0) {
    const Program program = expand(problem, plan);
    live = liveByPosition(problem, program);
    for (const Step &step : program.steps)
      seconds[step.position] += secondsOf(problem, plan, step);
  }
};

/// One absence of a plan's decisions.
struct Trip {
  int buffer;
  size_t index;
};

/// Erases absences without a place; decisions that are left with none become Keep.
void eraseDropped(Plan &plan) {
  for (Decision &d : plan.decisions) {
    const size_t placed = d.absences.size();
    d.absences.erase(std::remove_if(d.absences.begin(), d.absences.end(),
                                    [](const Absence &absence) { return absence.freeBefore < 0; }),
                     d.absences.end());
    if (placed > 0 && d.absences.empty())
      d = {};
  }
}

/// One walk. Position and gap ends are mirrored for the backward half, so the code below only knows "later".
class Walk {
public:
  Walk(const Problem &problem, Bytes memory, Plan &plan, bool mirrored, bool mayStay)
      : problem(problem), memory(memory), plan(plan), mirrored(mirrored), mayStay(mayStay), positions(problem, plan),
        n(problem.ops.size()) {}

  /// Position by position: copies that may begin queue up, what is read no more counts as held, and release() lets go
  /// of what memory needs. Time goes on with the ops, and with the copies that were waited for.
  void run() {
    std::vector<std::vector<Trip>> complete(n + 1), unread(n + 1); // positions where copies may begin, gaps do
    for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
      const Decision &d = plan.decisions[b];
      for (size_t i = 0; (d.action == Action::Offload || d.action == Action::Compress) && i < d.absences.size(); ++i) {
        const bool early = !mirrored && d.departs(i);
        complete[early ? d.absences[i].leaveAfter + 1 : gapFirst({b, i})].push_back({b, i});
        unread[gapFirst({b, i})].push_back({b, i});
      }
    }
    for (int k = 0; k < n; ++k) {
      begin(now, false); // while the op before ran
      for (Trip trip : complete[k])
        if (copies(trip))
          arrive(trip);
      begin(now, true);
      for (Trip trip : unread[k])
        held += copies(trip) ? size(trip) : 0;
      release(k);
      now += positions.seconds[at(k)];
    }
    eraseDropped(plan);
  }

private:
  /// Of one absence: on the way out of this half, mirrored or not.
  struct Copy {
    Trip trip;
    int gapFirst;
    Seconds since, seconds; ///< when it may begin, and how long it takes
    Seconds end = 0;        ///< of one that has begun
  };
  /// The link or the codec stream, which serves one copy after the other.
  struct Engine {
    /// Not begun. First those whose gaps begin first; of equals, in the order in which the other half wants them.
    std::map<std::tuple<int, int, int>, Copy> waiting;
    std::vector<Copy> begun; ///< in order; bytes still resident
    Seconds free = 0;
    int after = -1; ///< op that the last one was issued after
  };

  int at(int k) const { return mirrored ? n - 1 - k : k; }
  Absence &absence(Trip trip) const { return plan.decisions[trip.buffer].absences[trip.index]; }
  int gapFirst(Trip t) const { return mirrored ? at(absence(t).returnAfter) : absence(t).freeBefore; }
  int gapLast(Trip t) const { return mirrored ? at(absence(t).freeBefore) : absence(t).returnAfter; }
  Bytes size(Trip t) const { return aligned(problem, problem.buffers[t.buffer].bytes); }
  void drop(Trip t) { absence(t).freeBefore = -1; }

  /// Whether it may stay on the device after all. What is packed with a mask leaves for good: its last readers would
  /// keep all of its bytes instead of the mask.
  bool stays(Trip t) const {
    const Decision &d = plan.decisions[t.buffer];
    const Encoding *form = d.action == Action::Compress ? encodingOf(problem.buffers[t.buffer], d.codec) : nullptr;
    return mayStay && (!form || form->maskReaders.empty());
  }

  /// Whether the walk's half has a copy for it: on the way out only the first of those that share one.
  bool copies(Trip t) const {
    const std::vector<Absence> &all = plan.decisions[t.buffer].absences;
    for (size_t i = t.index; !mirrored && i > 0 && all[i - 1].leaveAfter == all[t.index].leaveAfter; --i)
      if (all[i - 1].freeBefore >= 0) // not dropped
        return false;
    return true;
  }

  /// The copy of a trip may begin from now on. Waiting ones are served by whose gap begins first.
  void arrive(Trip trip) {
    const int b = trip.buffer;
    const Decision &d = plan.decisions[b];
    const bool packs = d.action == Action::Compress;
    const Encoding *form = packs ? encodingOf(problem.buffers[b], d.codec) : nullptr;
    const Seconds seconds = !packs     ? copySeconds(problem, b, d, !mirrored)
                            : mirrored ? form->decodeSeconds
                                       : form->encodeSeconds;
    engines[packs].waiting.emplace(std::tuple(gapFirst(trip), -gapLast(trip), b),
                                   Copy{trip, gapFirst(trip), now, seconds});
  }

  /// Issues the copy after what the engine has begun; when it ends is known from here on.
  void beginNext(Engine &engine) {
    Copy copy = engine.waiting.begin()->second;
    engine.waiting.erase(engine.waiting.begin());
    copy.end = engine.free = std::max(engine.free, copy.since) + copy.seconds;
    engine.begun.push_back(copy);
    if (mirrored)
      return;
    // The stream serves copies in the order of issue: one that was overtaken is issued after the one that overtook it.
    const int before = absence(copy.trip).leaveAfter;
    engine.after = std::max(engine.after, before);
    std::vector<Absence> &all = plan.decisions[copy.trip.buffer].absences;
    for (size_t i = copy.trip.index; i < all.size() && all[i].leaveAfter == before; ++i)
      all[i].leaveAfter = engine.after;
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
      const auto returns = [&](const Copy &copy) { return gapLast(copy.trip) == k; };
      const auto waits = [&](const auto &entry) { return returns(entry.second); };
      while (std::any_of(engine.waiting.begin(), engine.waiting.end(),
                         [&](const auto &entry) { return waits(entry) && !stays(entry.second.trip); }))
        beginNext(engine);
      for (auto entry = engine.waiting.begin(); entry != engine.waiting.end();)
        if (waits(*entry)) {
          held -= size(entry->second.trip);
          drop(entry->second.trip);
          entry = engine.waiting.erase(entry);
        } else {
          ++entry;
        }
      for (const Copy &copy : engine.begun)
        if (!stays(copy.trip) && returns(copy))
          now = std::max(now, copy.end);
    }
    leave(k, [&](const Copy &copy) { return gapLast(copy.trip) == k; });
  }

  /// The bytes go of those copies that have begun and of which `which` is true. Those that have not ended stay for
  /// good: their bytes join the live ones of the rest of their gap, which is over.
  template <typename Which> void leave(int k, Which which) {
    for (Engine &engine : engines)
      for (auto copy = engine.begun.begin(); copy != engine.begun.end();)
        if (which(*copy)) {
          held -= size(copy->trip);
          if (copy->end > now)
            drop(copy->trip);
          else
            (mirrored ? absence(copy->trip).returnAfter : absence(copy->trip).freeBefore) = at(k);
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

/// Gives back every absence that memory has room to do without, the shortest first: it saves its copies.
void giveBackShortest(const Problem &problem, Bytes memory, Plan &plan) {
  const std::vector<Seconds> seconds = Positions(problem, plan).seconds;
  Room room(problem, memory, plan);
  std::vector<std::pair<Seconds, Trip>> trips;
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
    for (size_t i = 0; plan.decisions[b].action == Action::Offload && i < plan.decisions[b].absences.size(); ++i) {
      const Absence &away = plan.decisions[b].absences[i];
      const auto first = seconds.begin() + away.freeBefore, end = seconds.begin() + away.returnAfter + 1;
      trips.push_back({std::accumulate(first, end, Seconds(0)), {b, i}});
    }
  std::stable_sort(trips.begin(), trips.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[length, trip] : trips) {
    Absence &away = plan.decisions[trip.buffer].absences[trip.index];
    if (room.giveBack({{away.freeBefore, away.returnAfter}}, aligned(problem, problem.buffers[trip.buffer].bytes)))
      away.freeBefore = -1;
  }
  eraseDropped(plan);
}

} // namespace

// Both orders of the two walks are simulated unless the first one leaves nothing to wait for.
bool placeTransfers(const Problem &problem, Bytes memory, Plan &plan, Placing placing) {
  widenGaps(problem, plan, placing.gaps);
  if (peakBytes(problem, expand(problem, plan)) > memory)
    return false;
  if (placing.gaps == Gaps::Every)
    giveBackShortest(problem, memory, plan);
  Plan best;
  Seconds bestSpan = std::numeric_limits<Seconds>::infinity();
  for (bool mirroredFirst : {false, true}) {
    Plan attempt = plan;
    Walk(problem, memory, attempt, mirroredFirst, placing.mayStay).run();
    Walk(problem, memory, attempt, !mirroredFirst, placing.mayStay).run();
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
