// SPDX-License-Identifier: Apache-2.0
// Translation between chains and op-level problems.
#include "passes/strategies/ChainProblem.h"
#include "passes/planner/Words.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sluice::planner {

/// 1 where all sizes are integers (`whole`) with a sum of at most 2^50, else the power of two that brings the sum
/// there.
static double scaleOf(const Chain &chain, bool &whole) {
  double total = 1;
  whole = true;
  for (const auto *list : {&chain.x, &chain.y, &chain.exF, &chain.exB, &chain.saved})
    for (double v : *list) {
      whole = whole && v == std::floor(v);
      total += v;
    }
  if (whole && total <= std::ldexp(1.0, 50))
    return 1;
  return std::ldexp(1.0, 50 - static_cast<int>(std::ceil(std::log2(total))));
}

// Ops F_0..F_L, then B_L..B_0. Buffers are integers of bytes, so that sizes of files are scaled up and rounded up;
// `slack` gives back what rounding may have added in all.
ChainProblem::ChainProblem(const Chain &chain, bool merged) : chain(chain) {
  bool whole;
  scale = scaleOf(chain, whole);
  const int n = chain.uF.size();
  auto up = [&](double v) { return static_cast<Bytes>(std::ceil(v * scale)); };
  auto buffer = [&](const std::string &name, double size, int stage) {
    Buffer b;
    b.name = name;
    b.bytes = up(size);
    b.stage = stage;
    problem.buffers.push_back(b);
    return static_cast<int>(problem.buffers.size()) - 1;
  };
  problem.alignment = 1;
  problem.link = {chain.bandwidth * scale, chain.bandwidth * scale, 0, 0};
  // x_0..x_(n) come first, so that buffer i is x_i.
  for (int i = 0; i <= n; ++i) {
    buffer("x_" + std::to_string(i), merged ? chain.moved(i) : chain.x[i], std::max(0, i - 1));
    problem.buffers[i].activation = i < n;
    problem.buffers[i].offloadable = i < n && merged && chain.bandwidth > 0;
  }
  std::vector<int> saved(n, -1), y(n + 1);
  for (int i = 0; i < n; ++i)
    if (!merged && chain.saved[i] > 0) {
      saved[i] = buffer("saved_" + std::to_string(i), chain.saved[i], i);
      problem.buffers[saved[i]].activation = true;
    }
  for (int i = 0; i <= n; ++i)
    y[i] = buffer("y_" + std::to_string(i), chain.y[i], std::max(0, i - 1));
  auto op = [&](int i, bool forward) {
    Op o;
    o.name = (forward ? "F_" : "B_") + std::to_string(i);
    o.kind = chain.kinds.empty() ? OpKind::Other : chain.kinds[i];
    o.phase = forward ? Phase::Forward : Phase::Backward;
    o.stage = i;
    o.seconds = forward ? chain.uF[i] : chain.uB[i];
    o.workspace = up(forward ? chain.exF[i] : chain.exB[i]);
    o.reads = forward ? std::vector<int>{i} : std::vector<int>{i, i + 1, y[i + 1]};
    o.writes = {forward ? i + 1 : y[i]};
    if (saved[i] >= 0)
      (forward ? o.writes : o.reads).push_back(saved[i]);
    if (!forward && i == n - 1) // nobody makes the first gradient: it appears with its reader
      o.writes.push_back(y[n]), o.reads.erase(o.reads.begin() + 2);
    if (forward)
      for (int b : o.writes)
        problem.buffers[b].producers = {static_cast<int>(problem.ops.size())};
    problem.ops.push_back(o);
  };
  // An op touches five buffers and a workspace, and everything kept besides; only sums of rounded numbers need slack.
  slack = whole && scale == 1 ? 0 : static_cast<Bytes>(problem.buffers.size());
  for (int i = 0; i < n; ++i)
    op(i, true);
  for (int i = n - 1; i >= 0; --i)
    op(i, false);
}

Bytes ChainProblem::bytes(double memory) const {
  return static_cast<Bytes>(std::min(std::floor(memory * scale * (1 + 1e-15)), std::ldexp(1.0, 60))) + slack;
}

// Neighbouring stages that run again in one segment become one pair of the answer.
ChainPlan ChainProblem::planOf(const Plan &plan) const {
  const int n = chain.uF.size();
  ChainPlan out;
  for (int i = 0; i < n; ++i)
    out.actions.push_back(plan.decisions[i].action);
  for (const Recompute &r : plan.recomputes)
    for (int stage : r.ops)
      if (!out.recompute.empty() && stage == out.recompute.back().second + 1 && stage != r.ops.front())
        out.recompute.back().second = stage;
      else
        out.recompute.push_back({stage, stage});
  out.rawCopiesOnly =
      plan.recomputes.empty() && std::all_of(plan.decisions.begin(), plan.decisions.end(), [](const Decision &d) {
        return d.action == Action::Keep || (d.action == Action::Offload && !d.codec);
      });
  // The timeline that is told is checked: chain answers are what other planners are compared with.
  const Timeline timeline = simulate(problem, plan);
  if (Status status = checkTimeline(problem, plan, timeline); !status)
    throw std::logic_error("timeline of strategy '" + plan.strategy + "' fails the checker: " + status.error());
  for (const Event &e : timeline.events) {
    using What = ChainEvent::What;
    if (e.what == Event::What::Encode || e.what == Event::What::Decode || e.what == Event::What::Invert)
      out.timeline.events.push_back({e.what == Event::What::Encode   ? What::Compress
                                     : e.what == Event::What::Decode ? What::Decompress
                                                                     : What::Invert,
                                     e.buffer, e.start, e.end});
    else if (e.stream == Stream::Compute)
      out.timeline.events.push_back(
          {e.op < n ? What::Forward : What::Backward, e.op < n ? e.op : 2 * n - 1 - e.op, e.start, e.end});
    else if (e.what != Event::What::Exchange && e.what != Event::What::Use) // chains have none
      out.timeline.events.push_back({e.what == Event::What::CopyOut ? What::Out : What::In, e.buffer, e.start, e.end});
  }
  out.timeline.makespan = timeline.makespan;
  out.timeline.peakBytes = std::max(0.0, size(timeline.peakBytes));
  return out;
}

/// The strategy's plan of the fewest live bytes, whatever memory was asked for; no Plan where it has none at all. One
/// that aims at the memory may get along with less than it names when it has none: from there on down in ever smaller
/// steps, to where it finds nothing for a unit less. Fewer steps for long chains.
static Answer leastPlan(const Problem &problem, PlanFunction strategy, const Options &options) {
  Answer least = strategy(problem, 0, options);
  if (const auto *none = std::get_if<Infeasible>(&least))
    least = strategy(problem, none->smallestMemory, options);
  if (!std::holds_alternative<Plan>(least))
    return least;
  Bytes peak = peakBytes(problem, expand(problem, std::get<Plan>(least)));
  const Bytes floor = memoryFloor(problem);
  Bytes step = (peak - floor) / 2;
  for (int64_t left = std::clamp<int64_t>(4'000 / problem.ops.size(), 4, 64); left > 0 && peak > floor; --left) {
    step = std::clamp<Bytes>(step, 1, peak - floor);
    if (Answer less = strategy(problem, peak - step, options); std::holds_alternative<Plan>(less)) {
      least = std::move(less);
      peak = peakBytes(problem, expand(problem, std::get<Plan>(least)));
    } else if (step > 1) {
      step /= 8;
    } else {
      break;
    }
  }
  return least;
}

// A strategy that has no plan is asked for the one of fewest live bytes, which says what it needs, or turns out to fit:
// rules that aim at the memory may miss it.
ChainAnswer ChainProblem::run(double memory, PlanFunction strategy, const Options &options) const {
  Answer answer = strategy(problem, bytes(memory), options);
  if (const auto *none = std::get_if<Infeasible>(&answer)) {
    const std::string reason = none->reason;
    answer = leastPlan(problem, strategy, options);
    if (const auto *plan = std::get_if<Plan>(&answer))
      if (const Bytes peak = peakBytes(problem, expand(problem, *plan)); peak > bytes(memory))
        return ChainInfeasible{size(peak), reason};
  }
  if (auto *refused = std::get_if<Refused>(&answer))
    return *refused;
  if (auto *none = std::get_if<Infeasible>(&answer))
    return ChainInfeasible{size(none->smallestMemory), none->reason};
  const Plan &plan = std::get<Plan>(answer);
  if (Status status = checkPlan(problem, plan, bytes(memory)); !status)
    throw std::logic_error("plan of strategy '" + plan.strategy + "' fails the checker: " + status.error());
  return planOf(plan);
}

/// Chain files name no codecs: those of published strategies get ratios and speeds, the latter as multiples of the
/// link.
ChainProblem publishedProblem(const Chain &chain) {
  constexpr double reserved = 5, codecOverLink = 3, convertOverLink = 24;
  ChainProblem lifted(chain, true);
  Problem &p = lifted.problem;
  p.codecRates = {{Codec::Fp16, convertOverLink * p.link.d2h}};
  for (int i = 0; i < static_cast<int>(chain.uF.size()); ++i) {
    Buffer &x = p.buffers[i];
    const Seconds seconds = x.bytes / (codecOverLink * p.link.d2h);
    x.encodings = {{Codec::Zfp, static_cast<Bytes>(std::ceil(x.bytes / reserved)), seconds, seconds}};
    const bool kind = !chain.kinds.empty() && (chain.kinds[i] == OpKind::Norm || chain.kinds[i] == OpKind::Activation);
    if (kind && i > 0 && chain.saved[i - 1] == 0) // what was saved along cannot be rebuilt
      x.inversion = Inversion{{i + 1}, chain.uF[i]};
  }
  return lifted;
}

Options everythingAllowed(Options options) {
  options.executable = allActions();
  options.allowLossy = options.allowLossy | lossyActions();
  return options;
}

} // namespace sluice::planner
