// SPDX-License-Identifier: Apache-2.0
// Derives lives from program order: walks the steps once, binding every access to the current life of its buffer. A
// re-execution that writes a buffer without reading it ends the old life at its last access and starts a new one.
#include "passes/planner/Program.h"

#include <algorithm>
#include <map>

namespace sluice::planner {

Bytes aligned(const Problem &problem, Bytes bytes) {
  const Bytes a = std::max<Bytes>(problem.alignment, 1);
  return (bytes + a - 1) / a * a;
}

static void note(Accesses &a, int op, Phase phase) {
  if (a.first < 0)
    a.first = op;
  a.last = op;
  if (phase == Phase::Forward)
    a.lastForward = op;
  else if (a.firstLater < 0)
    a.firstLater = op;
}

// "Later" accesses are all that no forward op makes, of updates, too.
std::vector<Accesses> accessesOf(const Problem &problem) {
  std::vector<Accesses> all(problem.buffers.size());
  for (int op = 0; op < static_cast<int>(problem.ops.size()); ++op) {
    const Phase phase = problem.ops[op].phase;
    for (int b : problem.ops[op].reads)
      note(all[b], op, phase);
    for (int b : problem.ops[op].writes) {
      note(all[b], op, phase);
      if (all[b].firstWrite < 0)
        all[b].firstWrite = op;
      if (phase == Phase::Forward)
        all[b].lastForwardWrite = op;
      else
        all[b].writtenLater = true;
    }
  }
  return all;
}

static const Alternative *chosen(const Problem &problem, const Plan &plan, int op) {
  if (plan.alternatives.empty() || problem.ops[op].alternatives.empty())
    return nullptr;
  return &problem.ops[op].alternatives[plan.alternatives[op]];
}

/// Seconds of the copies of visitors for which nothing is planned, of those that it makes the copy home alone. A
/// problem with visitors has a link for them. An op that runs again has their seconds in its Rerun.
static Seconds visitSeconds(const Problem &problem, const Plan &plan, const Op &op) {
  Seconds seconds = 0;
  const Link &link = problem.visitorsLink;
  if (link.d2h == 0)
    return seconds;
  const auto copy = [&](int b, double rate) {
    return link.latency + static_cast<double>(problem.buffers[b].bytes) / rate;
  };
  for (int b : op.writes)
    if (const Buffer &visitor = problem.buffers[b];
        visitor.visits && !visitor.born && plan.decisions[b].action == Action::Keep)
      seconds += copy(b, link.h2d) + (visitor.dropped ? 0 : copy(b, link.d2h));
  for (int b : op.sends)
    if (plan.decisions[b].action == Action::Keep)
      seconds += copy(b, link.d2h);
  return seconds;
}

Seconds secondsOf(const Problem &problem, const Plan &plan, const Step &step) {
  const Op &op = problem.ops[step.op];
  if (step.recomputed && op.rerun)
    return op.rerun->seconds;
  const Alternative *a = chosen(problem, plan, step.op);
  return (a ? a->seconds : op.seconds) + visitSeconds(problem, plan, op);
}

Bytes workspaceOf(const Problem &problem, const Plan &plan, const Step &step) {
  const Op &op = problem.ops[step.op];
  if (step.recomputed && op.rerun)
    return op.rerun->workspace;
  const Alternative *a = chosen(problem, plan, step.op);
  return a ? a->workspace : op.workspace;
}

const Encoding *encodingOf(const Buffer &buffer, Codec codec) {
  for (const Encoding &e : buffer.encodings)
    if (e.codec == codec)
      return &e;
  return nullptr;
}

/// Steps in order, and where each position begins. Segments of one position keep the order in which the plan lists
/// them.
static void insertSteps(const Problem &problem, const Plan &plan, Program &program) {
  const int n = problem.ops.size();
  std::vector<std::vector<const Recompute *>> before(n);
  for (const Recompute &r : plan.recomputes)
    before[r.before].push_back(&r);
  for (int k = 0; k < n; ++k) {
    program.firstStep.push_back(program.steps.size());
    for (const Recompute *r : before[k])
      for (int op : r->ops)
        program.steps.push_back({op, k, true});
    program.stepOf.push_back(program.steps.size());
    program.steps.push_back({k, k, false});
  }
  program.firstStep.push_back(program.steps.size());
}

/// Lives as if every buffer stayed on the device between its accesses.
static std::vector<Life> residentLives(const Problem &problem, const Plan &plan, const Program &program) {
  std::vector<Life> lives;
  std::vector<int> current(problem.buffers.size(), -1);
  auto touch = [&](int b, int s, bool startsAnew) {
    if (current[b] < 0 || startsAnew) {
      // A buffer that nobody wrote arrives from outside: it is there from the start.
      const int first = startsAnew || current[b] >= 0 ? s : 0;
      current[b] = lives.size();
      lives.push_back({b, first, s, aligned(problem, problem.buffers[b].bytes), Life::Form::Raw});
    }
    lives[current[b]].last = s;
  };
  std::map<int, std::vector<const Inversion *>> inversions; // by step
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (plan.decisions[b].action == Action::Invert)
      for (const Absence &absence : plan.decisions[b].absences)
        inversions[program.firstStep[absence.neededBy]].push_back(&*problem.buffers[b].inversion);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step &step = program.steps[s];
    const Op &op = problem.ops[step.op];
    const std::vector<int> &reads = op.readsWhen(step.recomputed);
    Bytes inverting = 0; // one after the other
    if (const auto here = inversions.find(s); here != inversions.end())
      for (const Inversion *inversion : here->second) {
        for (int b : inversion->sources)
          touch(b, s, false);
        inverting = std::max(inverting, inversion->workspace);
      }
    for (int b : reads)
      touch(b, s, false);
    for (int b : op.writesWhen(step.recomputed)) {
      const bool alsoReads = std::find(reads.begin(), reads.end(), b) != reads.end();
      touch(b, s, !alsoReads && (current[b] < 0 || step.recomputed));
    }
    if (Bytes w = std::max(workspaceOf(problem, plan, step), inverting))
      lives.push_back({-1, s, s, aligned(problem, w), Life::Form::Workspace});
  }
  return lives;
}

/// Device bytes that stand in for the raw ones while they are away.
static Bytes packedBytes(const Problem &problem, int buffer, const Decision &decision) {
  if (decision.action == Action::Invert)
    return aligned(problem, problem.buffers[buffer].inversion->sideBytes);
  const Encoding *e =
      decision.action == Action::Offload ? nullptr : encodingOf(problem.buffers[buffer], decision.codec);
  return e ? aligned(problem, e->bytes) : 0;
}

/// Whether a step, or an inversion before it, accesses more of a packed buffer than its mask.
static bool needsValues(const Problem &problem, const Plan &plan, const Program &program, int step, int buffer,
                        const Encoding &form) {
  const Step &at = program.steps[step];
  const auto has = [](const std::vector<int> &list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (size_t b = 0; program.firstStep[at.position] == step && b < plan.decisions.size(); ++b)
    if (const Decision &d = plan.decisions[b]; d.action == Action::Invert && !d.absences.empty() &&
                                               d.absences.front().neededBy == at.position &&
                                               has(problem.buffers[b].inversion->sources, buffer))
      return true;
  const Op &op = problem.ops[at.op];
  return (has(op.readsWhen(at.recomputed), buffer) || has(op.writesWhen(at.recomputed), buffer)) &&
         (at.recomputed || !has(form.maskReaders, at.op));
}

/// The last step for which the bytes stay that came back from an absence, in a life that ends at `last`.
static int lastOfValues(const Problem &problem, const Plan &plan, const Program &program, int buffer,
                        const Absence &absence, int last) {
  const Decision &d = plan.decisions[buffer];
  const Encoding *form = d.action == Action::Compress ? encodingOf(problem.buffers[buffer], d.codec) : nullptr;
  if (!form || form->maskReaders.empty())
    return last;
  while (last > program.stepOf[absence.neededBy] && !needsValues(problem, plan, program, last, buffer, *form))
    --last;
  return last;
}

/// Adds what a life becomes under its buffer's absences: the stretches on the device and the forms that stand in for
/// it.
static void cut(const Problem &problem, const Plan &plan, const Program &program, Life life, std::vector<Life> &lives) {
  const Decision &d = plan.decisions[life.buffer];
  for (const Absence &absence : d.absences) {
    switch (absence.kind()) {
    case AbsenceKind::AroundEnd: // the only one, see PlanCheck::visit()
      if (!problem.buffers[life.buffer].born) {
        life.first = program.firstStep[absence.returnAfter + 1];
        life.early = -1;
      }
      life.last = program.firstStep[absence.freeBefore] - 1;
      life.late = 2;
      lives.push_back(life);
      return;
    case AbsenceKind::Between:
      break;
    }
    const int gone = program.firstStep[absence.freeBefore], last = life.last;
    if (life.first >= gone || last < gone)
      continue;
    life.last = gone - 1;
    life.late = 2;
    lives.push_back(life);
    life.late = 1;
    const bool returns = factsOf(d.action).returns;
    const int values = returns ? lastOfValues(problem, plan, program, life.buffer, absence, last) : -1;
    if (Bytes bytes = packedBytes(problem, life.buffer, d)) {
      Life packed = {life.buffer, program.stepOf[absence.leaveAfter], last, bytes, Life::Form::Packed};
      packed.early = 1;
      if (values == last) { // nobody reads it once it is unpacked
        packed.last = program.firstStep[absence.neededBy];
        packed.late = 4 * (program.stepOf[absence.neededBy] - packed.last);
      }
      lives.push_back(packed);
    }
    if (!returns)
      return;
    life.first = program.firstStep[absence.returnAfter + 1];
    life.early = -1;
    life.last = values;
  }
  if (life.first <= life.last)
    lives.push_back(life);
}

/// Splits the lives of buffers that leave the device between two accesses.
static void cutAbsences(const Problem &problem, const Plan &plan, Program &program) {
  std::vector<Life> lives;
  for (const Life &life : program.lives)
    if (life.buffer < 0)
      lives.push_back(life);
    else
      cut(problem, plan, program, life, lives);
  program.lives = std::move(lives);
}

Program expand(const Problem &problem, const Plan &plan) {
  Program program;
  insertSteps(problem, plan, program);
  program.lives = residentLives(problem, plan, program);
  cutAbsences(problem, plan, program);
  return program;
}

std::vector<Bytes> liveBytes(const Problem &problem, const Program &program) {
  std::vector<Bytes> bytes(program.steps.size() + 1, 0);
  for (const Life &life : program.lives) {
    bytes[life.first] += life.bytes;
    bytes[life.last + 1] -= life.bytes;
  }
  Bytes now = problem.base;
  for (Bytes &b : bytes)
    b = now += b;
  bytes.pop_back();
  return bytes;
}

std::vector<Bytes> liveByPosition(const Problem &problem, const Program &program) {
  const std::vector<Bytes> bytes = liveBytes(problem, program);
  std::vector<Bytes> live(problem.ops.size(), 0);
  for (size_t s = 0; s < bytes.size(); ++s)
    live[program.steps[s].position] = std::max(live[program.steps[s].position], bytes[s]);
  return live;
}

Bytes peakBytes(const Problem &problem, const Program &program) {
  Bytes peak = problem.base;
  for (Bytes b : liveBytes(problem, program))
    peak = std::max(peak, b);
  return peak;
}

Plan keepPlan(const Problem &problem) {
  Plan plan;
  plan.strategy = "keep";
  plan.decisions.resize(problem.buffers.size());
  return plan;
}

} // namespace sluice::planner
