// SPDX-License-Identifier: Apache-2.0
// Kernels of a plan, see Kernels.h.
#include "passes/strategies/Kernels.h"

#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <functional>

namespace sluice::planner {

bool hasAlternatives(const Problem &problem) {
  return std::any_of(problem.ops.begin(), problem.ops.end(), [](const Op &op) { return op.alternatives.size() > 1; });
}

/// Alternatives with the least of a figure for every op.
static std::vector<int> kernels(const Problem &problem, const std::function<double(const Alternative &)> &figure) {
  std::vector<int> chosen(problem.ops.size(), 0);
  for (size_t k = 0; k < chosen.size(); ++k)
    for (size_t a = 0; a < problem.ops[k].alternatives.size(); ++a)
      if (figure(problem.ops[k].alternatives[a]) < figure(problem.ops[k].alternatives[chosen[k]]))
        chosen[k] = static_cast<int>(a);
  return chosen;
}

std::vector<int> fastestKernels(const Problem &problem) {
  return kernels(problem, [](const Alternative &a) { return a.seconds; });
}

std::vector<int> smallestKernels(const Problem &problem) {
  return kernels(problem, [](const Alternative &a) { return static_cast<double>(a.workspace); });
}

Status checkKernels(const Problem &problem, const Options &options, const std::string &strategy) {
  const double wanted = numberKnob(options, "kernels", 0);
  if (wanted <= 0 || hasAlternatives(problem))
    return Success{};
  return Error{"strategy '" + strategy + "' with kernels=" + (wanted > 1 ? "2" : "1") +
               " chooses kernels, and there are no alternatives: allow them with --allow-lossy=algorithms"};
}

Plan withWantedKernels(const Problem &problem, const Options &options) {
  Plan plan = keepPlan(problem);
  if (const double wanted = numberKnob(options, "kernels", 0); wanted > 0)
    plan.alternatives = wanted > 1 ? fastestKernels(problem) : smallestKernels(problem);
  return plan;
}

Problem withKernels(Problem problem, const std::vector<int> &chosen) {
  for (size_t k = 0; k < problem.ops.size(); ++k) {
    Op &op = problem.ops[k];
    if (op.alternatives.empty())
      continue;
    const Alternative taken = op.alternatives[chosen[k]];
    op.seconds = taken.seconds, op.workspace = taken.workspace;
    op.alternatives.clear();
  }
  return problem;
}

// An op that runs again needs room at each of its runs. Later alternatives replace earlier ones only where they are
// faster.
void takeFasterKernels(const Problem &problem, Bytes memory, Plan &plan) {
  if (plan.alternatives.empty())
    plan.alternatives.assign(problem.ops.size(), 0);
  const Program program = expand(problem, plan);
  const std::vector<Bytes> live = liveBytes(problem, program);
  std::vector<Bytes> room(problem.ops.size(), memory); // for the op's workspace, wherever it runs
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step &step = program.steps[s];
    const Bytes others = live[s] - aligned(problem, workspaceOf(problem, plan, step));
    room[step.op] = std::min(room[step.op], memory - others);
  }
  for (size_t k = 0; k < problem.ops.size(); ++k) {
    const std::vector<Alternative> &all = problem.ops[k].alternatives;
    for (size_t a = 0; a < all.size(); ++a)
      if (all[a].seconds < all[plan.alternatives[k]].seconds && aligned(problem, all[a].workspace) <= room[k])
        plan.alternatives[k] = static_cast<int>(a);
  }
}

// The strategy plans twice, with the kernels in use and with those of least workspace, whose plans then take faster
// ones where there is room: so no strategy has to know of kernels.
Answer planWithKernels(const Problem &problem, Bytes memory, const Options &options, PlanFunction strategy) {
  Answer own = strategy(problem, memory, options);
  if (!hasAlternatives(problem))
    return own;
  const std::vector<int> small = smallestKernels(problem);
  Answer other = strategy(withKernels(problem, small), memory, options);
  if (Plan *plan = std::get_if<Plan>(&other)) {
    plan->alternatives = small;
    takeFasterKernels(problem, memory, *plan);
    const Plan *first = std::get_if<Plan>(&own);
    return first && simulate(problem, *first).makespan <= simulate(problem, *plan).makespan ? own : other;
  }
  const Infeasible *first = std::get_if<Infeasible>(&own), *second = std::get_if<Infeasible>(&other);
  return first && second && second->smallestMemory < first->smallestMemory ? other : own;
}

} // namespace sluice::planner
