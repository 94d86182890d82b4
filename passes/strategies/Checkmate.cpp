// SPDX-License-Identifier: Apache-2.0
// checkmate: P. Jain, A. Jain, A. Nrusimha, A. Gholami, P. Abbeel, K. Keutzer, I. Stoica, J. Gonzalez, Checkmate:
// Breaking the Memory Wall with Optimal Tensor Rematerialization, MLSys 2020, Section 4.
//
// Rule: stage t ends with op t's first run; before it any earlier op may run again. Binaries say what runs again in a
// stage and which content is kept from one stage to the next; every input is kept or made in the stage; memory at every
// step is within the budget; the cheapest such schedule is the answer of an integer program.
//
// Changed: only the backward half has stages, because plans run nothing again before it. What runs again is not an op
// but the ops that write the same buffers, together, since programs here write in place. Memory is not the paper's
// recurrence with a product for every free, but liveness that flows backward through a stage: a buffer is live before a
// step if it is live after it and not made by it, which needs no product and is as tight.
//
// Complexity: exponential; O(backward ops * forward buffers) binaries, O(backward ops * forward accesses) variables.
//
// Knobs: ops=80 of the graph at most, nodes=20000 of branch and bound; after those the best plan so far is taken, which
// is then not proved to be the cheapest.
//
// Refuses larger graphs. Fails below the least peak that recomputation of what no gradient overwrites reaches; never
// moves anything to the host.
#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/IntegerProgram.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace sluice::planner {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool holds(const std::vector<int> &list, int b) { return std::find(list.begin(), list.end(), b) != list.end(); }

class Checkmate {
public:
  explicit Checkmate(const Problem &problem)
      : problem(problem), recomputation(problem), accesses(accessesOf(problem)), unitOf(problem.ops.size(), -1),
        carried(problem.buffers.size(), false) {
    const auto later =
        std::find_if(problem.ops.begin(), problem.ops.end(), [](const Op &op) { return op.phase != Phase::Forward; });
    turn = static_cast<int>(later - problem.ops.begin());
    findCarried();
    findUnits();
    for (size_t b = 0; b < problem.buffers.size(); ++b)
      scale = std::max(scale, static_cast<double>(bytes(static_cast<int>(b))));
  }

  /// The cheapest plan with at most `memory` live bytes; without `memory` the one with the least peak. Nothing when the
  /// solver found none.
  std::optional<Plan> solve(std::optional<Bytes> memory, long nodes);

  bool proved = false; ///< that there is none, by the last solve() that found nothing

private:
  struct Unit {
    std::vector<int> ops; ///< in order
    Seconds seconds = 0;
    bool again = true; ///< may run again
  };

  Bytes bytes(int buffer) const { return aligned(problem, problem.buffers[buffer].bytes); }
  void findCarried();
  void findUnits();
  bool fixedAt(int buffer, int op, bool before) const;
  void addForward();
  void addStage(int t, bool last);
  void flow(int t, int buffer, bool last);
  void limit(IntegerProgram::Sum sum, Bytes constant);
  bool runsAgain(int op) const { return unitOf[op] >= 0 && units[unitOf[op]].again; }

  const Problem &problem;
  const Recomputation recomputation;
  const std::vector<Accesses> accesses;
  std::vector<Unit> units;
  std::vector<int> unitOf;   ///< per op; -1: no forward op
  std::vector<bool> carried; ///< buffers of the forward half that the backward half does not write
  int turn = 0;              ///< the first op that is not forward
  double scale = 1;

  IntegerProgram program;
  int ceiling = -1;                          ///< variable: live bytes, in units of `scale`
  std::vector<std::vector<int>> runs;        ///< [stage][unit], -1: cannot
  std::map<std::pair<int, int>, int> keeps;  ///< (op of the stage, buffer): kept into the stage
  std::vector<IntegerProgram::Sum> liveSums; ///< live bytes of the stage at hand, by step: forward ops, then its own op
};

void Checkmate::findCarried() {
  for (size_t b = 0; b < carried.size(); ++b)
    carried[b] = accesses[b].lastForward >= 0;
  for (size_t k = turn; k < problem.ops.size(); ++k)
    for (int b : problem.ops[k].writes)
      carried[b] = false;
}

/// Ops that write a common buffer run together.
void Checkmate::findUnits() {
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
    const int u = unitOf[k] = number.emplace(root(k), static_cast<int>(units.size())).first->second;
    if (u == static_cast<int>(units.size()))
      units.emplace_back();
    Unit &unit = units[u];
    const Op &op = problem.ops[k];
    unit.ops.push_back(k);
    unit.seconds += op.rerun ? op.rerun->seconds : op.seconds;
    unit.again = unit.again && op.recomputable && !op.writesWhen(true).empty();
    for (int b : op.writesWhen(true))
      unit.again = unit.again && carried[b] && recomputation.possible(b);
    for (int b : op.readsWhen(true)) // content that the backward half overwrites is not there any more
      unit.again = unit.again && carried[b];
  }
}

/// Buffers that no decision touches. `before`: during re-runs ahead of the op.
bool Checkmate::fixedAt(int b, int op, bool before) const {
  if (carried[b] || accesses[b].last < 0)
    return false;
  // Read before it is written: it is there from the start.
  const int first = holds(problem.ops[accesses[b].first].reads, b) ? 0 : accesses[b].first;
  return (before ? first < op : first <= op) && op <= accesses[b].last;
}

void Checkmate::limit(IntegerProgram::Sum sum, Bytes constant) {
  sum.push_back({ceiling, -1});
  program.row(sum, -infinity, -static_cast<double>(constant) / scale);
}

/// The forward half runs once; kept content weighs on every op after its last forward access.
void Checkmate::addForward() {
  for (int k = 0; k < turn; ++k) {
    Bytes constant = problem.base + aligned(problem, problem.ops[k].workspace);
    IntegerProgram::Sum kept;
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
      const Accesses &a = accesses[b];
      const bool outside = a.first >= 0 && holds(problem.ops[a.first].reads, b);
      if (fixedAt(b, k, false) || (carried[b] && (outside || a.first <= k) && k <= a.lastForward))
        constant += bytes(b);
      else if (carried[b] && k > a.lastForward)
        kept.push_back({keeps.at({turn, b}), bytes(b) / scale});
    }
    limit(kept, constant);
  }
}

/// Liveness of one buffer through stage t, from its end to its start: what is live before a step is live after it or
/// used by it, unless the step makes it. At the start it must have been kept.
void Checkmate::flow(int t, int b, bool last) {
  const double size = bytes(b) / scale;
  const auto &writers = recomputation.writersOf(b);
  int live = program.variable(0, false); // during op t
  if (holds(problem.ops[t].reads, b))
    program.row({{live, 1}}, 1, 1);
  if (!last)
    program.row({{live, 1}, {keeps.at({t + 1, b}), -1}}, 0, infinity);
  liveSums[turn].push_back({live, size});
  for (int k = turn - 1; k >= 0; --k) {
    const Op &o = problem.ops[k];
    const bool reads = holds(o.readsWhen(true), b), writes = holds(o.writesWhen(true), b);
    if (runsAgain(k) && (reads || writes)) {
      const int during = program.variable(0, false), run = runs[t - turn][unitOf[k]];
      program.row({{during, 1}, {live, -1}}, 0, infinity);
      program.row({{during, 1}, {run, -1}}, 0, infinity);
      live = during;
    }
    liveSums[k].push_back({live, size});
    if (runsAgain(k) && writes && k == writers.front()) {
      const int before = program.variable(0, false);
      program.row({{before, 1}, {live, -1}, {runs[t - turn][unitOf[k]], 1}}, 0, infinity);
      live = before;
    }
  }
  program.row({{keeps.at({t, b}), 1}, {live, -1}}, 0, infinity);
}

void Checkmate::addStage(int t, bool last) {
  liveSums.assign(turn + 1, {});
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (carried[b])
      flow(t, b, last);
  for (int k = 0; k <= turn; ++k) {
    const bool own = k == turn;
    if (!own && !runsAgain(k))
      continue;
    Bytes constant = problem.base;
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
      constant += fixedAt(b, t, !own) ? bytes(b) : 0;
    const Bytes workspace = aligned(problem, workspaceOf(problem, {}, {own ? t : k, t, !own}));
    if (own)
      constant += workspace;
    else
      liveSums[k].push_back({runs[t - turn][unitOf[k]], workspace / scale});
    limit(liveSums[k], constant);
  }
}

std::optional<Plan> Checkmate::solve(std::optional<Bytes> memory, long nodes) {
  if (turn == static_cast<int>(problem.ops.size()))
    return std::nullopt; // no backward half to run anything again for
  program = {};
  runs.clear();
  keeps.clear();
  const int n = problem.ops.size();
  Seconds all = 0;
  for (const Unit &unit : units)
    all += unit.seconds;
  ceiling = program.variable(memory ? 0 : 1, false, memory ? *memory / scale : infinity);
  for (int t = turn; t < n; ++t) {
    runs.emplace_back();
    for (const Unit &unit : units) // the least peak is found first, with as few re-runs as it needs by a hair
      runs.back().push_back(
          unit.again ? program.variable((memory ? 1000 : 1e-6) * unit.seconds / std::max(all, 1e-30) + 1e-7, true)
                     : -1);
    for (int b = 0; b < static_cast<int>(carried.size()); ++b)
      if (carried[b])
        keeps[{t, b}] = program.variable(0, true);
  }
  addForward();
  for (int t = turn; t < n; ++t)
    addStage(t, t == n - 1);
  const auto values = program.solve(nodes, &proved);
  if (!values)
    return std::nullopt;
  Plan plan = keepPlan(problem);
  for (int t = turn; t < n; ++t) {
    Recompute segment{t, {}};
    for (int k = 0; k < turn; ++k)
      if (runsAgain(k) && (*values)[runs[t - turn][unitOf[k]]] > 0.5)
        segment.ops.push_back(k);
    if (!segment.ops.empty())
      plan.recomputes.push_back(std::move(segment));
  }
  pruneRecomputes(problem, plan);
  return plan;
}

} // namespace

static Answer planCheckmate(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "checkmate", memory);
  if (!combiner.can("recompute"))
    return Refused{"strategy 'checkmate' needs action 'recompute', which the target does not execute"};
  const double most = numberKnob(options, "ops", 80);
  if (problem.ops.size() > most)
    return Refused{"strategy 'checkmate' is an integer program for small graphs: the graph has " +
                   std::to_string(problem.ops.size()) + " ops, its limit is " +
                   std::to_string(static_cast<int64_t>(most)) + " (knob 'ops')"};
  const long nodes = static_cast<long>(numberKnob(options, "nodes", 20000));
  Checkmate checkmate(problem);
  const bool possible = memory >= memoryFloor(problem);
  if (std::optional<Plan> plan = possible ? checkmate.solve(memory, nodes) : std::nullopt)
    improve(best, combiner.complete(std::move(*plan), {}));
  // Without a plan the one of the least peak says what is needed. That integer program takes longest, and who is told
  // that there is none asks again with nothing: from the floor on it is solved only where the other one ran out of
  // nodes.
  if (!best.feasible && !(possible && checkmate.proved))
    if (std::optional<Plan> plan = checkmate.solve(std::nullopt, nodes))
      improve(best, combiner.complete(std::move(*plan), {}));
  return answerOf(best, "checkmate", memory);
}

Strategy checkmateStrategy() {
  Strategy s{"checkmate", "optimal recomputation of small graphs by integer programming (Jain et al. 2020)",
             planCheckmate};
  s.knobs = {{"ops", 1e3}, {"nodes", 1e9}};
  s.actions = {"recompute"};
  s.takenOver = {12, 6}; // an integer program
  return s;
}

} // namespace sluice::planner
