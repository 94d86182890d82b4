// SPDX-License-Identifier: Apache-2.0
// Event-driven: start whatever may start, advance to the next end, repeat. Copies progress fluidly because their rate
// changes when the other direction starts or stops.
#include "passes/planner/Simulate.h"

#include "passes/planner/Program.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>

namespace sluice::planner {

const char *streamName(Stream stream) {
  switch (stream) {
  case Stream::Compute:
    return "compute";
  case Stream::DeviceToHost:
    return "d2h";
  case Stream::HostToDevice:
    return "h2d";
  }
  return "";
}

Bytes copiedBytes(const Problem &problem, int buffer, const Decision &decision) {
  const Bytes raw = problem.buffers[buffer].bytes;
  // zvc packs on the host: the link carries raw bytes.
  return decision.codec == "fp16" ? (raw + 1) / 2 : raw;
}

Seconds copySeconds(const Link &link, Bytes bytes, bool toHost) {
  return link.latency + bytes / (toHost ? link.d2h : link.h2d);
}

namespace {

struct Copy {
  int buffer, after, before; ///< issued after op `after`, awaited by position `before`
  double work;               ///< bytes, latency included as bytes at the single rate
};

struct Engine {
  std::vector<Copy> queue;
  size_t done = 0;
  bool busy = false;
  double left = 0;
  Seconds start = 0;
};

class Simulation {
public:
  Simulation(const Problem &problem, const Plan &plan) : problem(problem), plan(plan), program(expand(problem, plan)) {
    prepare();
  }
  Timeline run();

private:
  void prepare();
  void prepareWaits();
  void startCompute();
  void startCopies();
  bool mayStart(const Engine &engine, bool toHost) const;
  double rate(bool toHost) const;
  void advance();
  void finishCopy(Engine &engine, bool toHost);
  void finishCompute();
  void noteWait(const Step &step);

  const Problem &problem;
  const Plan &plan;
  const Program program;
  Engine out, in;
  std::vector<size_t> outNeeded, inNeeded; ///< copies that must have ended before position k starts
  std::vector<std::vector<int>> encodeAfter, decodeBefore;
  Timeline timeline;
  Seconds now = 0, computeEnd = 0, readySince = 0;
  size_t nextStep = 0;
  int opsEnded = 0; ///< original ops that have ended
  bool computing = false;
};

void Simulation::prepare() {
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
    const Decision &d = plan.decisions[b];
    if (d.action != Action::Offload)
      continue;
    const Bytes bytes = copiedBytes(problem, b, d);
    out.queue.push_back({b, d.offloadAfter, d.freeBefore, bytes + problem.link.latency * problem.link.d2h});
    in.queue.push_back({b, d.prefetchAfter, d.neededBy, bytes + problem.link.latency * problem.link.h2d});
    timeline.hostBytes += aligned(problem, bytes);
  }
  for (Engine *engine : {&out, &in})
    std::sort(engine->queue.begin(), engine->queue.end(), [](const Copy &a, const Copy &b) {
      return std::tie(a.after, a.before, a.buffer) < std::tie(b.after, b.before, b.buffer);
    });
  prepareWaits();
  timeline.peakBytes = planner::peakBytes(problem, program);
}

void Simulation::prepareWaits() {
  const size_t n = problem.ops.size();
  for (auto [engine, needed] : {std::pair(&out, &outNeeded), std::pair(&in, &inNeeded)}) {
    needed->assign(n + 2, 0);
    for (size_t i = 0; i < engine->queue.size(); ++i)
      (*needed)[engine->queue[i].before] = std::max((*needed)[engine->queue[i].before], i + 1);
    for (size_t k = 1; k < needed->size(); ++k)
      (*needed)[k] = std::max((*needed)[k], (*needed)[k - 1]);
  }
  encodeAfter.resize(n);
  decodeBefore.resize(n + 1);
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
    if (plan.decisions[b].action == Action::Encode) {
      encodeAfter[plan.decisions[b].offloadAfter].push_back(b);
      if (plan.decisions[b].neededBy >= 0)
        decodeBefore[plan.decisions[b].neededBy].push_back(b);
    }
}

static const Encoding *encodingOf(const Buffer &buffer, const std::string &codec) {
  for (const Encoding &e : buffer.encodings)
    if (e.codec == codec)
      return &e;
  return nullptr;
}

void Simulation::noteWait(const Step &step) {
  if (now <= readySince)
    return;
  // The copy that ended last is the one that was waited for.
  const Event *cause = nullptr;
  for (auto e = timeline.events.rbegin(); e != timeline.events.rend() && !cause; ++e)
    if (e->stream != Stream::Compute && e->end == now)
      cause = &*e;
  timeline.waits.push_back(
      {step.op, cause ? cause->buffer : -1, now - readySince, cause && cause->what == Event::What::CopyOut});
}

void Simulation::startCompute() {
  if (computing || nextStep == program.steps.size())
    return;
  const Step &step = program.steps[nextStep];
  if (out.done < outNeeded[step.position] || in.done < inNeeded[step.position])
    return;
  noteWait(step);
  Seconds end = now;
  auto add = [&](Event::What what, int op, int buffer, Seconds seconds) {
    timeline.events.push_back({what, Stream::Compute, op, buffer, end, end + seconds});
    end += seconds;
    timeline.busy += seconds;
  };
  if (static_cast<int>(nextStep) == program.firstStep[step.position])
    for (int b : decodeBefore[step.position])
      if (const Encoding *e = encodingOf(problem.buffers[b], plan.decisions[b].codec); e && e->decodeSeconds > 0)
        add(Event::What::Decode, step.op, b, e->decodeSeconds);
  add(step.recomputed ? Event::What::Rerun : Event::What::Run, step.op, -1, secondsOf(problem, plan, step.op));
  if (!step.recomputed)
    for (int b : encodeAfter[step.op])
      if (const Encoding *e = encodingOf(problem.buffers[b], plan.decisions[b].codec); e && e->encodeSeconds > 0)
        add(Event::What::Encode, step.op, b, e->encodeSeconds);
  computing = true;
  computeEnd = end;
}

bool Simulation::mayStart(const Engine &engine, bool toHost) const {
  if (engine.busy || engine.done == engine.queue.size())
    return false;
  const Copy &copy = engine.queue[engine.done];
  if (copy.after >= opsEnded)
    return false;
  return toHost || out.done >= outNeeded[copy.after + 1];
}

void Simulation::startCopies() {
  const bool shared = problem.link.duplex == 0;
  auto start = [&](Engine &engine, bool toHost, const Engine &other) {
    if (!mayStart(engine, toHost) || (shared && other.busy))
      return;
    engine.busy = true;
    engine.left = engine.queue[engine.done].work;
    engine.start = now;
  };
  start(out, true, in);
  start(in, false, out);
}

double Simulation::rate(bool toHost) const {
  const Link &link = problem.link;
  const double alone = toHost ? link.d2h : link.h2d;
  return out.busy && in.busy ? std::min(alone, link.duplex) : alone;
}

void Simulation::finishCopy(Engine &engine, bool toHost) {
  const Copy &copy = engine.queue[engine.done];
  timeline.events.push_back({toHost ? Event::What::CopyOut : Event::What::CopyIn,
                             toHost ? Stream::DeviceToHost : Stream::HostToDevice, copy.after, copy.buffer,
                             engine.start, now});
  engine.busy = false;
  ++engine.done;
}

void Simulation::finishCompute() {
  computing = false;
  readySince = now;
  if (!program.steps[nextStep].recomputed)
    opsEnded = program.steps[nextStep].op + 1;
  ++nextStep;
}

/// Moves to the next end of anything and books it.
void Simulation::advance() {
  const Seconds never = std::numeric_limits<Seconds>::infinity();
  const Seconds toCompute = computing ? computeEnd - now : never;
  const Seconds toOut = out.busy ? out.left / rate(true) : never;
  const Seconds toIn = in.busy ? in.left / rate(false) : never;
  const Seconds step = std::max(0.0, std::min({toCompute, toOut, toIn}));
  assert(std::isfinite(step) && "the plan waits for a copy that never starts");
  const double outRate = rate(true), inRate = rate(false);
  now = step == toCompute ? computeEnd : now + step;
  out.left -= out.busy ? step * outRate : 0;
  in.left -= in.busy ? step * inRate : 0;
  if (toOut <= step)
    finishCopy(out, true);
  if (toIn <= step)
    finishCopy(in, false);
  if (toCompute <= step)
    finishCompute();
}

Timeline Simulation::run() {
  while (nextStep < program.steps.size() || out.done < out.queue.size() || in.done < in.queue.size()) {
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
