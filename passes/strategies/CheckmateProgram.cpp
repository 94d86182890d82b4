// SPDX-License-Identifier: Apache-2.0
// See CheckmateProgram.h. Memory is not the paper's recurrence with a product for every free (eq. 5 to 7), but liveness
// that flows backward through a stage: a buffer is live before a step if it is live after it and not made by it, which
// needs no product and is as tight.
#include "passes/strategies/CheckmateProgram.h"

#include "passes/planner/Simulate.h"
#include "passes/strategies/Combine.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sluice::planner {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool holds(const std::vector<int> &list, int b) { return std::find(list.begin(), list.end(), b) != list.end(); }

} // namespace

CheckmateProgram::CheckmateProgram(const Problem &problem)
    : problem(problem), recomputation(problem), accesses(accessesOf(problem)) {
  const auto later =
      std::find_if(problem.ops.begin(), problem.ops.end(), [](const Op &op) { return op.phase != Phase::Forward; });
  turn = static_cast<int>(later - problem.ops.begin());
  findUnits();
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    scale = std::max(scale, static_cast<double>(bytes(static_cast<int>(b))));
}

/// Ops that write a common buffer run together.
void CheckmateProgram::findUnits() {
  std::vector<int> parent(turn);
  std::iota(parent.begin(), parent.end(), 0);
  auto root = [&](int k) {
    while (parent[k] != k)
      k = parent[k];
    return k;
  };
  std::map<int, int> firstWriter;
  for (int k = 0; k < turn; ++k)
    for (int b : problem.ops[k].writesWhen(true))
      parent[root(k)] = root(firstWriter.emplace(b, k).first->second);
  std::map<int, int> number;
  for (int k = 0; k < turn; ++k) {
    const int u = number.emplace(root(k), static_cast<int>(units.size())).first->second;
    unitOf.push_back(u);
    if (u == static_cast<int>(units.size()))
      units.emplace_back();
    units[u].ops.push_back(k);
    units[u].seconds += problem.ops[k].rerun ? problem.ops[k].rerun->seconds : problem.ops[k].seconds;
  }
  for (Unit &unit : units)
    unit.until = lastRerun(unit);
}

/// Content that the backward half overwrites is not there any more, and has no place to come back to.
int CheckmateProgram::lastRerun(const Unit &unit) const {
  int until = static_cast<int>(problem.ops.size());
  for (int k : unit.ops) {
    const Op &op = problem.ops[k];
    if (!op.recomputable || op.writesWhen(true).empty() || !recomputation.findsSame(k, unit.ops))
      return -1;
    for (int b : op.writesWhen(true)) {
      const std::vector<int> &writers = recomputation.writersOf(b);
      const bool needsBefore = k == writers.front() && holds(op.readsWhen(true), b);
      const bool others =
          std::any_of(writers.begin(), writers.end(), [&](int writer) { return !holds(unit.ops, writer); });
      if (needsBefore || others)
        return -1;
      until = std::min(until, recomputation.overwriteOf(b));
    }
    for (int b : op.readsWhen(true))
      until = std::min(until, recomputation.overwriteOf(b));
  }
  return until;
}

/// Whether at this op of the backward half, the buffer may hold what the forward half wrote.
bool CheckmateProgram::carried(int b, int op) const {
  return accesses[b].lastForward >= 0 && op <= recomputation.overwriteOf(b);
}

/// Bytes that no decision touches. `before`: during re-runs ahead of the op.
bool CheckmateProgram::fixedAt(int b, int op, bool before) const {
  const Accesses &a = accesses[b];
  if (a.last < 0)
    return false;
  if (a.lastForward >= 0) { // what the backward half makes of it, from where it takes nothing over
    const int overwrite = recomputation.overwriteOf(b);
    const bool taken = overwrite < static_cast<int>(problem.ops.size()) && holds(problem.ops[overwrite].reads, b);
    return (before || taken ? overwrite < op : overwrite <= op) && op <= a.last;
  }
  // Read before it is written: it is there from the start.
  const int first = holds(problem.ops[a.first].reads, b) ? 0 : a.first;
  return (before ? first < op : first <= op) && op <= a.last;
}

Bytes CheckmateProgram::fixedBytes(int op, bool before) const {
  Bytes all = problem.base;
  for (int b = 0; b < static_cast<int>(accesses.size()); ++b)
    all += fixedAt(b, op, before) ? bytes(b) : 0;
  return all;
}

void CheckmateProgram::limit(IntegerProgram::Sum sum, Bytes constant) {
  sum.push_back({ceiling, -1});
  program.row(sum, -infinity, -static_cast<double>(constant) / scale);
}

/// Every backward op ends a stage, or, where decisions are rounded anyway, those that read what may run again: the
/// others would only add moments to run it earlier. The program is dense in stages times buffers.
void CheckmateProgram::build(std::optional<Bytes> memory, bool relaxed) {
  program = {};
  stages.clear();
  runs.clear();
  keeps.clear();
  const int n = problem.ops.size();
  for (int t = turn; t < n; ++t)
    if (const std::vector<int> &reads = problem.ops[t].reads;
        !relaxed || std::any_of(reads.begin(), reads.end(), [&](int b) { return carried(b, t); }))
      stages.push_back(t);
  if (stages.empty())
    return;
  Seconds all = 0;
  for (const Unit &unit : units)
    all += unit.seconds;
  ceiling = program.variable(memory ? 0 : 1, false, memory ? *memory / scale : infinity);
  for (size_t s = 0; s < stages.size(); ++s) {
    runs.emplace_back();
    for (const Unit &unit : units) // the least peak is found first, with as few re-runs as it needs by a hair
      runs.back().push_back(
          stages[s] <= unit.until
              ? program.variable((memory ? 1000 : 1e-6) * unit.seconds / std::max(all, 1e-30) + 1e-7, !relaxed)
              : -1);
    keeps.emplace_back();
    for (int b = 0; b < static_cast<int>(accesses.size()); ++b)
      keeps.back().push_back(carried(b, stages[s]) ? program.variable(0, !relaxed) : -1);
  }
  addForward();
  for (size_t s = 0; s < stages.size(); ++s) {
    addStage(s);
    const int end = s + 1 < stages.size() ? stages[s + 1] : n;
    for (int t = stages[s] + 1; t < end; ++t)
      addBetween(t, static_cast<int>(s) + 1);
  }
}

/// The forward half runs once; kept content weighs on every op after its last forward access.
void CheckmateProgram::addForward() {
  for (int k = 0; k < turn; ++k) {
    Bytes constant = problem.base + aligned(problem, problem.ops[k].workspace);
    IntegerProgram::Sum kept;
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
      const Accesses &a = accesses[b];
      const bool outside = a.first >= 0 && holds(problem.ops[a.first].reads, b);
      if (a.lastForward < 0 ? fixedAt(b, k, false) : (outside || a.first <= k) && k <= a.lastForward)
        constant += bytes(b);
      else if (keeps.front()[b] >= 0 && k > a.lastForward)
        kept.push_back({keeps.front()[b], bytes(b) / scale});
    }
    limit(kept, constant);
  }
  for (int t = turn; t < stages.front(); ++t)
    addBetween(t, 0);
}

/// An op that ends no stage: what is kept into the next one weighs on it.
void CheckmateProgram::addBetween(int op, int next) {
  IntegerProgram::Sum kept;
  if (next < static_cast<int>(stages.size()))
    for (int b = 0; b < static_cast<int>(accesses.size()); ++b)
      if (keeps[next][b] >= 0)
        kept.push_back({keeps[next][b], bytes(b) / scale});
  limit(kept, fixedBytes(op, false) + aligned(problem, workspaceOf(problem, {}, {op, op, false})));
}

/// Liveness of one buffer through a stage, from its end to its start: what is live before a step is live after it or
/// used by it, unless the step makes it. At the start it must have been kept.
void CheckmateProgram::flow(size_t stage, int b) {
  const double size = bytes(b) / scale;
  const auto &writers = recomputation.writersOf(b);
  int live = program.variable(0, false); // during the stage's own op
  if (holds(problem.ops[stages[stage]].reads, b))
    program.row({{live, 1}}, 1, 1);
  if (stage + 1 < stages.size() && keeps[stage + 1][b] >= 0)
    program.row({{live, 1}, {keeps[stage + 1][b], -1}}, 0, infinity);
  own.push_back({live, size});
  const auto change = [&](IntegerProgram::Sum &sum, int to) {
    sum.insert(sum.end(), {{to, size}, {live, -size}});
    live = to;
  };
  for (int k = turn - 1; k >= 0; --k) {
    const Op &o = problem.ops[k];
    const bool reads = holds(o.readsWhen(true), b), writes = holds(o.writesWhen(true), b);
    if (!runsAgain(k, stage) || !(reads || writes))
      continue;
    const int during = program.variable(0, false), run = runs[stage][unitOf[k]];
    program.row({{during, 1}, {live, -1}}, 0, infinity);
    program.row({{during, 1}, {run, -1}}, 0, infinity);
    change(moments[k].during, during);
    if (writes && k == writers.front()) {
      const int before = program.variable(0, false);
      program.row({{before, 1}, {live, -1}, {run, 1}}, 0, infinity);
      change(moments[k].before, before);
    }
  }
  program.row({{keeps[stage][b], 1}, {live, -1}}, 0, infinity);
}

/// A variable for `total` and `change`; `total` itself where nothing changes.
int CheckmateProgram::changed(int total, IntegerProgram::Sum change) {
  if (change.empty())
    return total;
  const int result = program.variable(0, false, infinity);
  change.insert(change.end(), {{total, 1}, {result, -1}});
  program.row(change, 0, 0);
  return result;
}

/// Rows of one stage: the flow of each buffer, then live bytes from its end to its start, as each op that may run again
/// changes them. Every moment at which something is made is below the ceiling.
void CheckmateProgram::addStage(size_t stage) {
  const int t = stages[stage];
  moments.assign(turn, {});
  own.clear();
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (keeps[stage][b] >= 0)
      flow(stage, b);
  int total = program.variable(0, false, infinity);
  own.push_back({total, -1});
  program.row(own, 0, 0);
  limit({{total, 1}}, fixedBytes(t, false) + aligned(problem, workspaceOf(problem, {}, {t, t, false})));
  const Bytes constant = fixedBytes(t, true);
  for (int k = turn - 1; k >= 0; --k) {
    if (!runsAgain(k, stage))
      continue;
    total = changed(total, moments[k].during);
    const double workspace = aligned(problem, workspaceOf(problem, {}, {k, t, true})) / scale;
    limit({{total, 1}, {runs[stage][unitOf[k]], workspace}}, constant);
    total = changed(total, moments[k].before);
  }
}

/// Rounding may run again what nobody reads in the end.
Plan CheckmateProgram::planOf(const std::vector<std::vector<int>> &rerun) const {
  Plan plan = keepPlan(problem);
  for (size_t s = 0; s < stages.size(); ++s)
    if (!rerun[s].empty())
      plan.recomputes.push_back({stages[s], rerun[s]});
  pruneRecomputes(problem, plan);
  return plan;
}

// What is run again follows from `runs` alone; what nobody reads of it goes (pruneRecomputes).
std::optional<Plan> CheckmateProgram::solve(std::optional<Bytes> memory, long nodes) {
  if (turn == static_cast<int>(problem.ops.size()))
    return std::nullopt; // no backward half to run anything again for
  build(memory, false);
  const auto values = program.solve(nodes, &proved);
  if (!values)
    return std::nullopt;
  std::vector<std::vector<int>> rerun(stages.size());
  for (size_t s = 0; s < stages.size(); ++s)
    for (int k = 0; k < turn; ++k)
      if (runsAgain(k, s) && (*values)[runs[s][unitOf[k]]] > 0.5)
        rerun[s].push_back(k);
  return planOf(rerun);
}

/// Marks the units that have to run in a stage for a buffer's content to be there.
void CheckmateProgram::need(size_t stage, int buffer, std::vector<bool> &live, std::vector<bool> &ran) const {
  if (live[buffer])
    return;
  live[buffer] = true;
  for (int writer : recomputation.writersOf(buffer)) {
    const int u = unitOf[writer];
    if (!runsAgain(writer, stage) || ran[u])
      continue;
    ran[u] = true;
    for (int op : units[u].ops)
      for (int b : problem.ops[op].readsWhen(true))
        need(stage, b, live, ran);
  }
}

/// What runs in a stage so that its op finds what it reads, and the next stage what it keeps.
std::vector<int> CheckmateProgram::roundedStage(size_t stage, const std::vector<double> &values,
                                                double threshold) const {
  std::vector<bool> live(accesses.size(), true), ran(units.size(), false);
  for (size_t b = 0; b < live.size(); ++b)
    if (keeps[stage][b] >= 0)
      live[b] = values[keeps[stage][b]] > threshold;
  for (int b : problem.ops[stages[stage]].reads)
    need(stage, b, live, ran);
  for (size_t b = 0; b < live.size() && stage + 1 < stages.size(); ++b)
    if (keeps[stage + 1][b] >= 0 && values[keeps[stage + 1][b]] > threshold)
      need(stage, static_cast<int>(b), live, ran);
  std::vector<int> ops;
  for (int k = 0; k < turn; ++k)
    if (ran[unitOf[k]])
      ops.push_back(k);
  return ops;
}

/// Checkmate's approximation (Jain et al., MLSys 2020, Section 5): the relaxed program's values are rounded at several
/// thresholds, and each stage is completed so that it can be executed. Which of them fits is for the caller to see.
std::vector<Plan> CheckmateProgram::solveRounded(std::optional<Bytes> memory) {
  if (turn == static_cast<int>(problem.ops.size()))
    return {};
  build(memory, true);
  const auto values = stages.empty() ? std::nullopt : program.solve(0, &proved);
  if (!values)
    return {};
  std::vector<Plan> plans;
  for (double threshold : {0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.99}) {
    std::vector<std::vector<int>> rerun(stages.size());
    for (size_t s = 0; s < stages.size(); ++s)
      rerun[s] = roundedStage(s, *values, threshold);
    plans.push_back(planOf(rerun));
  }
  return plans;
}

} // namespace sluice::planner
