// SPDX-License-Identifier: Apache-2.0
// One attempt: recompute segments first, because they move the first backward use of what they read; then encodings,
// then copies.
#include "passes/strategies/Combine.h"

#include "passes/planner/Inversions.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Transfers.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <set>

namespace sluice::planner {

Combiner::Combiner(const Problem &problem, Bytes memory, const Options &options)
    : problem(problem), memory(memory), options(options), recomputation(problem), accesses(accessesOf(problem)),
      lossy(problem, accesses, options.executable) {}

/// What re-run ops and inversions read, which need the raw content.
static std::set<int> readRaw(const Problem &problem, const Plan &plan) {
  std::set<int> readAgain;
  for (const Recompute &r : plan.recomputes)
    for (int op : r.ops)
      readAgain.insert(problem.ops[op].readsWhen(true).begin(), problem.ops[op].readsWhen(true).end());
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (plan.decisions[b].action == Action::Invert)
      readAgain.insert(problem.buffers[b].inversion->sources.begin(), problem.buffers[b].inversion->sources.end());
  return readAgain;
}

Decision encoded(const Accesses &accesses, const Encoding &encoding) {
  Decision d;
  d.action = Action::Encode;
  d.codec = encoding.codec;
  d.absences = {{accesses.lastForward, accesses.lastForward + 1, -1, accesses.firstLater}};
  d.reason = "its backward readers need " + std::to_string(encoding.bytes) + " bytes only";
  return d;
}

/// Only forms that readers take as they are, which cost no time; a buffer that is read raw again gains nothing, and one
/// that backward ops write has to be there.
void Combiner::encode(Plan &plan) const {
  const std::set<int> readAgain = readRaw(problem, plan);
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    Decision &d = plan.decisions[b];
    const Accesses &a = accesses[b];
    if (d.action != Action::Keep || a.lastForward < 0 || a.firstLater < 0 || a.writtenLater || readAgain.count(b))
      continue;
    for (const Encoding &e : problem.buffers[b].encodings)
      if (readDirectly(e.codec) && can(e.codec) && e.bytes < problem.buffers[b].bytes && d.action == Action::Keep)
        d = encoded(a, e);
  }
}

/// Marks buffers that have a place to be rebuilt at.
void Combiner::invert(const std::vector<int> &buffers, Plan &plan) const {
  for (int b : buffers) {
    const auto &inversion = problem.buffers[b].inversion;
    if (!inversion || plan.decisions[b].action != Action::Keep)
      continue;
    plan.decisions[b].action = Action::Invert;
    for (int source : inversion->sources)
      plan.decisions[b].reason +=
          (plan.decisions[b].reason.empty() ? "rebuilt from '" : " and '") + problem.buffers[source].name + "'";
  }
  placeInversions(problem, plan);
}

/// Marks what the choice offloads and compresses.
void Combiner::leave(const Choice &choice, Plan &plan) const {
  for (int b : choice.compressed)
    for (const Encoding &e : problem.buffers[b].encodings)
      if (plan.decisions[b].action == Action::Keep && !readDirectly(e.codec) && can(e.codec) &&
          mayRound(problem, plan, b, e.codec)) {
        plan.decisions[b].action = Action::Compress;
        plan.decisions[b].codec = e.codec;
        plan.decisions[b].reason = "packed into " + std::to_string(e.bytes) + " bytes";
      }
  for (int b : choice.offloaded)
    if (plan.decisions[b].action == Action::Keep && problem.buffers[b].offloadable)
      plan.decisions[b].action = Action::Offload;
  if (choice.rates)
    lossy.pack(*choice.rates, plan);
}

/// Codecs of what is offloaded.
void Combiner::setCodecs(const Choice &choice, Plan &plan) const {
  if (choice.rates)
    return lossy.packCopies(*choice.rates, plan);
  if (!choice.codec)
    return;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (Decision &d = plan.decisions[b]; d.action == Action::Offload && packsOnCopies(problem, b, choice.codec) &&
                                         mayRound(problem, plan, b, choice.codec))
      d.codec = choice.codec.kind != Codec::Zvc || zerosPay(problem, b, false) ? choice.codec : Codec();
}

Plan Combiner::marked(const Choice &choice) const {
  Plan plan = keepPlan(problem);
  invert(choice.inverted, plan);
  leave(choice, plan);
  widenGaps(problem, plan);
  setCodecs(choice, plan);
  return plan;
}

// A choice whose tensors cannot all come back has no peak; the largest number tells it from one that is only too large.
Attempt Combiner::attempt(const Choice &choice, Seconds worthwhile) const {
  Attempt result;
  result.plan = keepPlan(problem);
  if (!choice.recomputed.empty()) {
    const std::vector<int> closed = recomputation.closure(choice.recomputed, choice.dearer);
    if (closed.empty()) {
      result.peak = std::numeric_limits<Bytes>::max();
      return result;
    }
    recomputation.apply(closed, result.plan);
    if (choice.again)
      recomputation.applyAgain(closed, result.plan);
  }
  return complete(std::move(result.plan), choice, worthwhile);
}

Seconds Combiner::computeOf(const Plan &plan) const {
  Seconds seconds = 0;
  for (size_t k = 0; k < problem.ops.size(); ++k)
    seconds += secondsOf(problem, plan, {static_cast<int>(k), 0, false});
  for (const Recompute &r : plan.recomputes)
    for (int op : r.ops)
      seconds += secondsOf(problem, plan, {op, 0, true});
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (plan.decisions[b].action == Action::Invert)
      seconds += problem.buffers[b].inversion->seconds;
  return seconds;
}

// Order matters: inversions are placed by what runs again; encodings leave alone what re-runs and inversions read raw;
// gaps follow from both, and codecs from who reads what comes back.
Attempt Combiner::complete(Plan plan, const Choice &choice, Seconds worthwhile) const {
  Attempt result;
  result.plan = std::move(plan);
  invert(choice.inverted, result.plan);
  // Re-runs that come a second time are given back below, where memory allows.
  if (!choice.again && computeOf(result.plan) >= worthwhile) {
    result.peak = std::numeric_limits<Bytes>::max();
    return result;
  }
  if (choice.encode)
    encode(result.plan);
  leave(choice, result.plan);
  widenGaps(problem, result.plan, choice.gaps);
  result.peak = peakBytes(problem, expand(problem, result.plan));
  if (result.peak > memory && choice.offloadRest)
    result.peak = offloadEarliest(problem, memory, smallestCopy(problem), result.plan, choice.gaps);
  if (choice.again && result.peak <= memory)
    recomputation.giveBack(memory, result.plan);
  if (choice.gaps == Gaps::Every)
    widenGaps(problem, result.plan, choice.gaps); // codecs depend on who reads what comes back
  setCodecs(choice, result.plan);
  if (result.peak > memory || !placeTransfers(problem, memory, result.plan, {choice.mayStay, choice.gaps}))
    return result;
  result.feasible = true;
  result.makespan = simulate(problem, result.plan).makespan;
  return result;
}

// `wanted` is whether content is read later, at the point of the walk; a re-run that reads what it writes leaves it
// wanted.
void pruneRecomputes(const Problem &problem, Plan &plan) {
  const std::vector<Accesses> accesses = accessesOf(problem);
  std::vector<bool> wanted(problem.buffers.size(), false);
  size_t segment = plan.recomputes.size();
  // Backwards: an op is worth running again when something that it writes is read before the next write.
  for (int k = static_cast<int>(problem.ops.size()) - 1; k >= 0; --k) {
    if (problem.ops[k].phase == Phase::Forward)
      break;
    for (int b : problem.ops[k].reads)
      wanted[b] = true;
    for (; segment > 0 && plan.recomputes[segment - 1].before == k; --segment) {
      std::vector<int> kept;
      for (auto op = plan.recomputes[segment - 1].ops.rbegin(); op != plan.recomputes[segment - 1].ops.rend(); ++op) {
        const std::vector<int> &reads = problem.ops[*op].readsWhen(true), &writes = problem.ops[*op].writesWhen(true);
        if (std::none_of(writes.begin(), writes.end(), [&](int b) { return wanted[b]; }))
          continue;
        kept.push_back(*op);
        for (int b : writes)
          wanted[b] = std::find(reads.begin(), reads.end(), b) != reads.end();
        for (int b : reads)
          wanted[b] = true;
      }
      plan.recomputes[segment - 1].ops.assign(kept.rbegin(), kept.rend());
    }
  }
  for (const Recompute &r : plan.recomputes)
    for (int op : r.ops)
      for (int b : problem.ops[op].writesWhen(true))
        if (accesses[b].firstLater >= 0)
          plan.decisions[b].action = Action::Recompute;
}

bool improve(Attempt &best, Attempt attempt) {
  const bool better = attempt.feasible != best.feasible ? attempt.feasible
                      : attempt.feasible                ? attempt.makespan < best.makespan
                                                        : best.plan.decisions.empty() || attempt.peak < best.peak;
  if (better)
    best = std::move(attempt);
  return better;
}

Attempt measured(const Problem &problem, Bytes memory, Plan plan) {
  Attempt attempt;
  attempt.plan = std::move(plan);
  attempt.peak = peakBytes(problem, expand(problem, attempt.plan));
  attempt.feasible = attempt.peak <= memory;
  if (attempt.feasible)
    attempt.makespan = simulate(problem, attempt.plan).makespan;
  return attempt;
}

Answer answerOf(Attempt best, const std::string &strategy, Bytes memory) {
  if (!best.feasible)
    return Infeasible{best.peak, "the best choice leaves " + std::to_string(best.peak) + " bytes live, memory is " +
                                     std::to_string(memory)};
  best.plan.strategy = strategy;
  return best.plan;
}

} // namespace sluice::planner
