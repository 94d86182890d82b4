// SPDX-License-Identifier: Apache-2.0
// checkmate: P. Jain, A. Jain, A. Nrusimha, A. Gholami, P. Abbeel, K. Keutzer, I. Stoica, J. Gonzalez, Checkmate:
// Breaking the Memory Wall with Optimal Tensor Rematerialization, MLSys 2020, Section 4.
//
// Rule: stage t ends with op t's first run; before it any earlier op may run again. Binaries say what runs again in a
// stage and which content is kept from one stage to the next; every input is kept or made in the stage; memory at every
// step is within the budget; the cheapest such schedule is the answer of an integer program.
//
// Larger graphs are solved as Section 5 says: the relaxed program, then two-phase rounding: what is kept by more than a
// threshold is kept, and the fewest re-runs follow. The paper's thresholds are a half, or drawn; here several are
// tried. Rounded plans may need more memory than asked for, so the program is solved for less, by a share that grows
// until one fits (the paper's epsilon).
//
// Changed: only the backward half has stages, because plans run nothing again before it. What runs again is not an op
// but the ops that write the same buffers, together, since programs here write in place. See CheckmateProgram.cpp for
// how memory is counted.
//
// Complexity: exponential, rounded polynomial; O(backward ops * forward buffers) decisions, O(backward ops * forward
// accesses) variables.
//
// Knobs: ops=60 of the graph at most for whole decisions, nodes=20000 of branch and bound; after those the best plan so
// far is taken, which is then not proved to be the cheapest. relaxed=0 of the graph at most for rounded
// ones: seconds for a hundred ops, minutes for five hundred.
//
// Refuses larger graphs. Fails below the least peak that recomputation of what no gradient overwrites reaches, rounded
// somewhat above it; never moves anything to the host.
#include "passes/planner/Bounds.h"
#include "passes/strategies/CheckmateProgram.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

namespace sluice::planner {

/// Improves `best` by whole decisions; leaves it where there is no plan.
static void decideWhole(const Combiner &combiner, long nodes, Attempt &best) {
  CheckmateProgram program(combiner.problem);
  const bool possible = combiner.memory >= memoryFloor(combiner.problem);
  if (std::optional<Plan> plan = possible ? program.solve(combiner.memory, nodes) : std::nullopt)
    improve(best, combiner.complete(std::move(*plan), {}));
  // Without a plan the one of the least peak says what is needed. That integer program takes longest, and who is told
  // that there is none asks again with nothing: from the floor on it is solved only where the other one ran out of
  // nodes.
  if (!best.feasible && !(possible && program.proved))
    if (std::optional<Plan> plan = program.solve(std::nullopt, nodes))
      improve(best, combiner.complete(std::move(*plan), {}));
}

/// The same by rounded ones.
static void decideRounded(const Combiner &combiner, Attempt &best) {
  CheckmateProgram program(combiner.problem);
  const auto tryAll = [&](std::optional<Bytes> memory) {
    std::vector<Plan> plans = program.solveRounded(memory);
    for (Plan &plan : plans)
      improve(best, combiner.complete(std::move(plan), {}));
    return !plans.empty();
  };
  const Bytes base = combiner.problem.base;
  if (combiner.memory >= memoryFloor(combiner.problem))
    for (double less : {0.0, 0.02, 0.05, 0.1, 0.2, 0.3}) {
      const Bytes memory = base + static_cast<Bytes>(static_cast<double>(combiner.memory - base) * (1 - less));
      if (!tryAll(memory)) // nor is there one for less
        break;
      if (best.feasible)
        return;
    }
  tryAll(std::nullopt);
}

/// Whole decisions up to the first limit, rounded ones up to the second, none beyond: the program of a larger graph
/// takes too long.
static Answer planCheckmate(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "checkmate", memory);
  if (!combiner.can(Action::Recompute))
    return Refused{"strategy 'checkmate' needs action 'recompute', which the target does not execute"};
  const double ops = static_cast<double>(problem.ops.size()), whole = numberKnob(options, "ops", 60),
               most = numberKnob(options, "relaxed", 0);
  if (ops > std::max(whole, most))
    return Refused{"strategy 'checkmate' is an integer program for small graphs: the graph has " +
                   std::to_string(problem.ops.size()) + " ops, its limit is " +
                   std::to_string(static_cast<int64_t>(std::max(whole, most))) + "; checkmate,relaxed=" +
                   std::to_string(problem.ops.size()) + " solves it relaxed and rounded, which takes longer"};
  if (ops <= whole)
    decideWhole(combiner, static_cast<long>(numberKnob(options, "nodes", 20000)), best);
  else
    decideRounded(combiner, best);
  return answerOf(best, "checkmate", memory);
}

Strategy checkmateStrategy() {
  Strategy s{"checkmate", "optimal recomputation by integer programming, rounded for larger graphs (Jain et al. 2020)",
             planCheckmate};
  s.knobs = {{"ops", 1e3}, {"nodes", 1e9}, {"relaxed", 1e4}};
  s.actions = {Action::Recompute};
  s.takenOver = {12, 6}; // an integer program
  return s;
}

} // namespace sluice::planner
