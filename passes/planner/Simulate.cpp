// SPDX-License-Identifier: Apache-2.0
// Event-driven: start whatever may start, advance to the next end, repeat. Copies progress fluidly because their rate
// changes when the other direction starts or stops.
#include "passes/planner/Simulate.h"

#include "passes/planner/Engine.h"
#include "passes/planner/Interconnect.h"
#include "passes/planner/Program.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

namespace sluice::planner {

namespace {

/// One run of a plan. `now` only goes forward; an op or copy that could start at a moment does, whatever follows from
/// it.
class Simulation {
public:
  Simulation(const Problem &problem, const Plan &plan) : problem(problem), plan(plan), program(expand(problem, plan)) {
    prepare();
  }
  Timeline run();

private:
  void prepare();
  void prepareCopies(int b, const Decision &d);
  void prepareWaits();
  bool stepMayStart() const;
  void startCompute();
  Seconds startCodecs(const Step &step, bool after);
  void startCopies();
  bool mayStart(const Engine &engine) const;
  bool isNext(const Engine &engine, const Engine &other) const;
  double rate(const Engine &engine) const;
  void advance();
  void finishCopy(Engine &engine);
  void finishCompute();
  void stretch();
  void noteWait(const Step &step);

  const Problem &problem;
  const Plan &plan;
  const Program program;
  const ArenaFacts &home = factsOf(problem.home);
  Engine out = {Event::What::CopyOut, home.out}, in = {Event::What::CopyIn, home.in};
  Engine pack = {Event::What::Encode, Stream::Codec}, unpack = {Event::What::Decode, Stream::Codec};
  const ArenaFacts &visitorsHome = factsOf(problem.visitorsHome);
  Engine go = {Event::What::CopyOut, visitorsHome.out}, come = {Event::What::CopyIn, visitorsStream(problem)};
  Engine exchanges = {Event::What::Exchange, Stream::Communication}, uses = {Event::What::Use, Stream::Home};
  static constexpr int engineCount = 8;
  Engine *const engines[engineCount] = { // one for each direction of a link and of the codec stream
      &out, &in, &pack, &unpack, &go, &come, &exchanges, &uses};
  std::vector<bool> gone = std::vector<bool>(problem.buffers.size(), false); ///< by buffer: a copy of it has left
  std::vector<std::vector<int>> encodeAfter, decodeBefore;                   ///< on the compute stream
  Timeline timeline;
  Seconds now = 0, computeEnd = 0, readySince = 0;
  Seconds computeAlone = 0; ///< when the step's events would end without contention
  size_t firstEvent = 0;    ///< of the step's events,
  size_t lastEvent = 0;     ///< which end before this one
  size_t nextStep = 0;
  int opsEnded = 0; ///< original ops that have ended
  bool computing = false;
};

/// Of an offloaded buffer. Visitors queue with the others where both are at home in one arena.
void Simulation::prepareCopies(int b, const Decision &d) {
  const Link &link = linkOf(problem, b);
  const bool apart = problem.buffers[b].visits && problem.visitorsHome != problem.home;
  const Bytes bytes = copiedBytes(problem, b, d);
  auto copy = [&](int after, int before, double rate, bool toHost) {
    const double work = bytes + link.latency * rate;
    const Seconds lost = lostToCopy(problem, b, d, toHost);
    return Copy{b, after, before, work, copyRateLimit(problem, b, d, toHost), work > 0 ? lost / work : 0};
  };
  for (size_t i = 0; i < d.absences.size(); ++i) {
    const Absence &absence = d.absences[i];
    if (d.departs(i) && !problem.buffers[b].dropped)
      (apart ? go : out).queue.push_back(copy(absence.leaveAfter, absence.freeBefore, link.d2h, true));
    if (!problem.buffers[b].born)
      (apart ? come : in).queue.push_back(copy(absence.returnAfter, absence.neededBy, link.h2d, false));
  }
  if (!problem.buffers[b].visits || problem.buffers[b].born) // variables have slots of their own
    timeline.hostBytes += aligned(problem, d.codec.kind == Codec::Zvc ? problem.buffers[b].bytes : bytes);
}

/// Queues in the order in which programs issue copies: by the op that they follow, then by who waits for them.
void Simulation::prepare() {
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
    const Decision &d = plan.decisions[b];
    if (d.action == Action::Offload && !d.absences.empty()) {
      prepareCopies(b, d);
    } else if (d.action == Action::Compress) {
      const Encoding &form = *encodingOf(problem.buffers[b], d.codec);
      for (const Absence &absence : d.absences) {
        pack.queue.push_back(
            {b, absence.leaveAfter, absence.freeBefore, form.encodeSeconds, 1, problem.codecContention});
        unpack.queue.push_back(
            {b, absence.returnAfter, absence.neededBy, form.decodeSeconds, 1, problem.codecContention});
      }
    }
  }
  for (const auto &[op, before] : exchangesOf(problem))
    exchanges.queue.push_back({-1, op, before, problem.ops[op].exchange, 1, problem.exchangeContention});
  const int n = static_cast<int>(problem.ops.size());
  for (int op = 0; op < n; ++op)
    for (int b : problem.ops[op].sends)
      uses.queue.push_back({b, op, std::min(n, problem.buffers[b].usedBefore), problem.buffers[b].usedAtHome, 1,
                            problem.homeContention});
  for (Engine *engine : engines)
    std::sort(engine->queue.begin(), engine->queue.end(), [](const Copy &a, const Copy &b) {
      return std::tie(a.after, a.before, a.buffer) < std::tie(b.after, b.before, b.buffer);
    });
  prepareWaits();
  timeline.peakBytes = planner::peakBytes(problem, program);
}

/// For each position how far each queue must have come, as positions wait for copies of their own and all before.
void Simulation::prepareWaits() {
  const size_t n = problem.ops.size();
  for (Engine *engine : engines) {
    std::vector<size_t> &needed = engine->needed;
    needed.assign(n + 2, 0);
    for (size_t i = 0; i < engine->queue.size(); ++i)
      needed[engine->queue[i].before] = std::max(needed[engine->queue[i].before], i + 1);
    for (size_t k = 1; k < needed.size(); ++k)
      needed[k] = std::max(needed[k], needed[k - 1]);
  }
  encodeAfter.resize(n);
  decodeBefore.resize(n + 1);
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
    const Decision &d = plan.decisions[b];
    for (const Absence &absence : d.absences) {
      if (d.action == Action::Encode)
        encodeAfter[absence.leaveAfter].push_back(b);
      if ((d.action == Action::Encode || d.action == Action::Invert) && absence.neededBy >= 0)
        decodeBefore[absence.neededBy].push_back(b);
    }
  }
}

/// For the report: which buffer's copy compute has waited for. Times are compared exactly, as `now` is the end of the
/// event that let it go on.
void Simulation::noteWait(const Step &step) {
  if (now <= readySince)
    return;
  // The copy that ended last is the one that was waited for.
  const Event *cause = nullptr;
  for (auto e = timeline.events.rbegin(); e != timeline.events.rend() && !cause; ++e)
    if (e->stream != Stream::Compute && e->end == now)
      cause = &*e;
  timeline.waits.push_back({step.op, cause ? cause->buffer : -1, now - readySince,
                            cause && (cause->what == Event::What::CopyOut || cause->what == Event::What::Encode)});
}

/// Books the codecs and inversions of the compute stream around a step; returns when they end.
Seconds Simulation::startCodecs(const Step &step, bool after) {
  Seconds end = computeEnd;
  for (int b : after ? encodeAfter[step.op] : decodeBefore[step.position]) {
    const bool inverts = plan.decisions[b].action == Action::Invert;
    const Encoding *form = encodingOf(problem.buffers[b], plan.decisions[b].codec);
    const Seconds seconds = inverts ? problem.buffers[b].inversion->seconds
                            : after ? form->encodeSeconds
                                    : form->decodeSeconds;
    if (seconds <= 0 && !inverts)
      continue;
    timeline.events.push_back({inverts ? Event::What::Invert
                               : after ? Event::What::Encode
                                       : Event::What::Decode,
                               Stream::Compute, step.op, b, end, end + seconds});
    end += seconds;
    timeline.busy += seconds;
  }
  return end;
}

/// The first step of a position waits for all copies that the position needs; the others find them done.
bool Simulation::stepMayStart() const {
  if (computing || nextStep == program.steps.size())
    return false;
  const int position = program.steps[nextStep].position;
  return std::all_of(std::begin(engines), std::end(engines),
                     [&](const Engine *engine) { return engine->done >= engine->needed[position]; });
}

/// Books the next step with the codecs and inversions around it, as one stretch of the compute stream: what copies cost
/// it is spread over all of it when it ends.
void Simulation::startCompute() {
  if (!stepMayStart())
    return;
  const Step &step = program.steps[nextStep];
  noteWait(step);
  computeEnd = now;
  firstEvent = timeline.events.size();
  if (static_cast<int>(nextStep) == program.firstStep[step.position])
    computeEnd = startCodecs(step, false);
  const Seconds seconds = secondsOf(problem, plan, step);
  timeline.events.push_back({step.recomputed ? Event::What::Rerun : Event::What::Run, Stream::Compute, step.op, -1,
                             computeEnd, computeEnd + seconds});
  computeEnd += seconds;
  timeline.busy += seconds;
  if (!step.recomputed)
    computeEnd = startCodecs(step, true);
  lastEvent = timeline.events.size();
  computeAlone = computeEnd;
  computing = true;
}

/// Copies are issued with the op before them, in the order of the queue.
bool Simulation::mayStart(const Engine &engine) const {
  if (engine.busy || engine.done == engine.queue.size())
    return false;
  const Copy &copy = engine.queue[engine.done];
  if (copy.after >= opsEnded)
    return false;
  if (&engine == &uses)
    return gone[copy.buffer] || plan.decisions[copy.buffer].absences.empty();
  // What an op has exchanged leaves when that is over.
  if (&engine != &exchanges && copy.after >= 0 && problem.ops[copy.after].exchange > 0 &&
      (exchanges.done == 0 || exchanges.queue[exchanges.done - 1].after < copy.after))
    return false;
  // What returns may take bytes that count as free by then.
  const bool returns = &engine == &in || &engine == &unpack || &engine == &come;
  const Engine *const leaving[] = {&out, &pack, &go};
  return !returns || std::all_of(std::begin(leaving), std::end(leaving),
                                 [&](const Engine *other) { return other->done >= other->needed[copy.after + 1]; });
}

/// With one stream for both, whether the next copy or exchange of `engine` is issued before that of `other`.
bool Simulation::isNext(const Engine &engine, const Engine &other) const {
  if (engine.stream != other.stream || engine.done == engine.queue.size() || other.done == other.queue.size())
    return true;
  const int mine = engine.queue[engine.done].after, theirs = other.queue[other.done].after;
  return mine < theirs || (mine == theirs && engine.what != Event::What::CopyIn);
}

/// Where both directions share an engine, what leaves goes first; on one stream for both, what was issued first.
void Simulation::startCopies() {
  auto start = [&](Engine &engine, bool free) {
    if (!free || !mayStart(engine))
      return;
    engine.busy = true;
    engine.left = engine.queue[engine.done].work;
    engine.start = now;
  };
  auto startEither = [&](Engine &leaving, Engine &returning, const Link &link) {
    const bool shared = link.duplex == 0 || leaving.stream == returning.stream;
    start(leaving, (!shared || !returning.busy) && isNext(leaving, returning));
    start(returning, (!shared || !leaving.busy) && isNext(returning, leaving));
  };
  startEither(out, in, problem.link);
  startEither(come.stream == exchanges.stream ? exchanges : go, come, problem.visitorsLink);
  start(pack, !unpack.busy);
  start(unpack, !pack.busy);
  start(exchanges, come.stream != exchanges.stream);
  start(uses, true);
}

/// Bytes a second of the copy at hand; of codecs, exchanges and uses at home, whose work is seconds, 1.
double Simulation::rate(const Engine &engine) const {
  if (&engine == &pack || &engine == &unpack || &engine == &exchanges || &engine == &uses)
    return 1;
  const bool visits = &engine == &go || &engine == &come;
  const Link &link = visits ? problem.visitorsLink : problem.link;
  const double alone = engine.what == Event::What::CopyOut ? link.d2h : link.h2d;
  const bool both = visits ? go.busy && come.busy : out.busy && in.busy;
  const double share = both ? std::min(alone, link.duplex) : alone;
  return std::min(share, engine.queue[engine.done].most);
}

void Simulation::finishCopy(Engine &engine) {
  const Copy &copy = engine.queue[engine.done];
  timeline.events.push_back({engine.what, engine.stream, copy.after, copy.buffer, engine.start, now});
  engine.busy = false;
  if (engine.what == Event::What::CopyOut)
    gone[copy.buffer] = true;
  ++engine.done;
}

/// What the step lost to copies is spread over its events.
void Simulation::stretch() {
  if (computeEnd <= computeAlone)
    return;
  timeline.busy += computeEnd - computeAlone;
  const Seconds start = timeline.events[firstEvent].start;
  const double longer = (computeEnd - start) / (computeAlone - start);
  for (size_t e = firstEvent; e < lastEvent; ++e) {
    Event &event = timeline.events[e];
    event.start = start + (event.start - start) * longer;
    event.end = e + 1 == lastEvent ? computeEnd : start + (event.end - start) * longer;
  }
}

/// Copies are issued after original ops; what runs again lies before the op of its position.
void Simulation::finishCompute() {
  computing = false;
  stretch();
  readySince = now;
  if (!program.steps[nextStep].recomputed)
    opsEnded = program.steps[nextStep].op + 1;
  ++nextStep;
}

/// Moves to the next end of anything and books it.
void Simulation::advance() {
  const Seconds never = std::numeric_limits<Seconds>::infinity();
  Seconds step = never, toEnd[engineCount];
  double rates[engineCount], lost = 0; // seconds that compute loses per second
  for (int e = 0; e < engineCount; ++e) {
    rates[e] = engines[e]->busy ? rate(*engines[e]) : 0;
    toEnd[e] = engines[e]->busy ? engines[e]->left / rates[e] : never;
    step = std::min(step, toEnd[e]);
    lost += engines[e]->busy ? rates[e] * engines[e]->queue[engines[e]->done].contention : 0;
  }
  Seconds toCompute = computing ? computeEnd - now : never;
  if (lost > 0 && toCompute > 0)
    toCompute = lost < 1 ? toCompute / (1 - lost) : never;
  step = std::max(0.0, std::min(step, toCompute));
  assert(std::isfinite(step) && "the plan waits for a copy that never starts");
  computeEnd += computing ? step * lost : 0;
  now = step == toCompute ? computeEnd : now + step;
  for (int e = 0; e < engineCount; ++e) {
    engines[e]->left -= step * rates[e];
    if (toEnd[e] <= step)
      finishCopy(*engines[e]);
  }
  if (toCompute <= step)
    finishCompute();
}

Timeline Simulation::run() {
  auto pending = [](const Engine *engine) { return engine->done < engine->queue.size(); };
  while (nextStep < program.steps.size() || std::any_of(std::begin(engines), std::end(engines), pending)) {
    startCompute();
    startCopies();
    advance();
  }
  timeline.makespan = now;
  std::stable_sort(timeline.events.begin(), timeline.events.end(),
                   [](const Event &a, const Event &b) { return a.start < b.start; });
  return timeline;
}

} // namespace

Timeline simulate(const Problem &problem, const Plan &plan) { return Simulation(problem, plan).run(); }

} // namespace sluice::planner
