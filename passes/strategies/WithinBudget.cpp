// SPDX-License-Identifier: Apache-2.0
// See WithinBudget.h.
#include "passes/strategies/WithinBudget.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Errors.h"
#include "passes/planner/Pack.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <stdexcept>

namespace sluice::planner {

/// Strategies other than mixed know no error budget, so that their plans are judged afterwards.
Answer strategyAnswer(const Strategy &strategy, const Problem &problem, Bytes memory, const Options &options) {
  Answer answer = strategy.plan(problem, memory, options);
  const Plan *plan = std::get_if<Plan>(&answer);
  if (!plan || withinErrorBudget(problem, *plan))
    return answer;
  return Refused{"the plan of strategy '" + strategy.name + "' is expected to change the gradients by " +
                 shortNumber(totalError(problem, *plan)) + " of themselves, the error budget is " +
                 shortNumber(*problem.errorBudget) + "; mixed chooses codecs within it"};
}

/// The arena is the peak where nothing is packed, else what packing reaches; the search ends once that fits the budget.
void measure(const Problem &problem, const Options &options, Bytes budget, Plan &plan) {
  const Program program = expand(problem, plan);
  plan.peakBytes = peakBytes(problem, program);
  plan.arenaBytes = plan.peakBytes;
  if (!options.pack)
    return;
  PackOptions limits;
  limits.goodEnough = budget - problem.base;
  const std::vector<PackItem> items = packItems(problem, program);
  // A node costs time in proportion to the items that it touches.
  const int64_t nodes = options.sketch ? sketchNodes : options.packNodes;
  limits.nodeLimit = std::min<int64_t>(nodes, 20'000'000 / std::max<size_t>(items.size(), 1));
  plan.arenaBytes = problem.base + pack(items, limits).height;
}

std::string tooSmall(const std::string &strategy, Bytes needed, Bytes budget) {
  return "strategy '" + strategy + "' needs " + std::to_string(needed) + " bytes at least, budget is " +
         std::to_string(budget);
}

Bytes tightened(const Problem &problem, const Plan &plan, Bytes inner, Bytes budget) {
  return std::min(plan.peakBytes, inner) - std::max<Bytes>(plan.arenaBytes - budget, problem.alignment);
}

const Plan &checked(const Problem &problem, const Plan &plan, Bytes budget) {
  if (Status status = checkPlan(problem, plan, budget); !status)
    throw std::logic_error("plan of strategy '" + plan.strategy + "' fails the checker: " + status.error());
  return plan;
}

/// Tries at most eight limits on live bytes, each below the last by what packing took too much, then the plan of fewest
/// live bytes.
Answer Planner::run(Bytes budget) {
  const Bytes floor = memoryFloor(problem);
  // No need to look for a plan, nor near the floor, where many would not pack, below what the strategy names.
  if (budget < floor || (budget - problem.base < (floor - problem.base) / 2 * 3 && least(budget) > budget))
    return smallest(budget);
  Bytes inner = budget, fails = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    Answer answer = strategyAnswer(strategy, problem, inner, options);
    Plan *plan = std::get_if<Plan>(&answer);
    if (!plan) {
      if (std::holds_alternative<Refused>(answer))
        return answer;
      break;
    }
    // Without a budget the arena is what the device needs, as for the reference, and no place to stop at.
    measure(problem, options, strategy.reference || budget >= noBudget ? problem.base : budget, *plan);
    if (plan->arenaBytes <= budget)
      return checked(problem, fails > inner ? lessTight(std::move(*plan), inner, fails, budget) : *plan, budget);
    fails = inner;
    // Where that is not enough again and again, by a little, at least so much.
    const Bytes more = attempt < 2 ? 0 : (budget - problem.base) >> (12 - attempt);
    inner = std::min(tightened(problem, *plan, inner, budget), inner - more);
  }
  return smallest(budget);
}

Answer Planner::sketch(Bytes budget) {
  const Bytes floor = memoryFloor(problem);
  Bytes inner = budget;
  for (int attempt = 0; attempt < 3 && inner >= floor; ++attempt) {
    Answer answer = strategyAnswer(strategy, problem, inner, options);
    if (std::holds_alternative<Refused>(answer))
      return answer;
    Plan *plan = std::get_if<Plan>(&answer);
    if (!plan)
      break;
    measure(problem, options, strategy.reference ? problem.base : budget, *plan);
    if (plan->arenaBytes <= budget)
      return checked(problem, *plan, budget);
    inner = tightened(problem, *plan, inner, budget);
  }
  return Infeasible{floor, tooSmall(strategy.name, floor, budget)};
}

/// The fastest of a plan for `fits` live bytes and of three more for limits up to `fails`, whose plan does not pack:
/// the first that packs may have left much more than it had to.
Plan Planner::lessTight(Plan best, Bytes fits, Bytes fails, Bytes budget) {
  Seconds span = simulate(problem, best).makespan;
  for (int halving = 0; halving < 3; ++halving) {
    const Bytes inner = fits + (fails - fits) / 2;
    Answer answer = strategyAnswer(strategy, problem, inner, options);
    Plan *plan = std::get_if<Plan>(&answer);
    const Seconds other = plan ? simulate(problem, *plan).makespan : 0;
    if (plan && other < span)
      measure(problem, options, budget, *plan);
    const bool packs = plan && plan->arenaBytes <= budget; // one that is no faster is not packed
    (packs ? fits : fails) = inner;
    if (packs && other < span) {
      span = other;
      best = std::move(*plan);
    }
  }
  return best;
}

/// The plan with the least live bytes: the last resort, and what the smallest feasible budget is read off.
Answer Planner::smallest(Bytes budget) {
  const Bytes needed = least(budget);
  Answer &answer = options.known->least.at(strategy.name);
  const Plan *plan = std::get_if<Plan>(&answer);
  if (!plan)
    return answer;
  if (needed > budget)
    return Infeasible{needed, tooSmall(strategy.name, needed, budget)};
  // The other takes longer: only where nothing else fits.
  return checked(problem, plan->arenaBytes <= budget ? *plan : options.known->lower.at(strategy.name), budget);
}

/// What that plan needs; 0 where there is none. Only its live bytes where they are too many already and another
/// strategy gets along with as much.
Bytes Planner::least(Bytes budget) {
  const auto [found, isNew] = options.known->least.try_emplace(strategy.name);
  if (isNew) {
    const Answer none = strategyAnswer(strategy, problem, 0, options);
    const Infeasible *infeasible = std::get_if<Infeasible>(&none);
    found->second = strategyAnswer(strategy, problem, infeasible ? infeasible->smallestMemory : 0, options);
  }
  Plan *plan = std::get_if<Plan>(&found->second);
  if (!plan)
    return 0;
  if (plan->arenaBytes == 0) {
    if (const Bytes peak = peakBytes(problem, expand(problem, *plan)); peak > budget && peak >= known)
      return peak;
    // Packed for its own load, whatever the budget, so that the figure does not depend on who asks.
    measure(problem, options, problem.base, *plan);
    if (!strategy.weaker.empty() && options.knobs.empty() && options.executable.has(Action::Offload) &&
        plan->arenaBytes > plan->peakBytes)
      lookLower(*plan);
  }
  const auto lower = options.known->lower.find(strategy.name);
  return lower == options.known->lower.end() ? plan->arenaBytes : lower->second.arenaBytes;
}

/// Of plans with equally many live bytes those that move more leave holes that others fit into; and a weaker strategy's
/// plan may pack lower.
void Planner::lookLower(const Plan &plan) {
  Bytes arena = plan.arenaBytes;
  if (std::optional<Plan> all = movingAll(problem, smallestCopy(problem), plan)) {
    measure(problem, options, problem.base, *all);
    takeLower(std::move(*all), arena);
  }
  for (const Strategy &other : strategies()) {
    if (std::find(strategy.weaker.begin(), strategy.weaker.end(), other.name) == strategy.weaker.end())
      continue;
    Planner(problem, other, options).least(noBudget);
    if (const Plan *own = std::get_if<Plan>(&options.known->least.at(other.name)))
      takeLower(*own, arena);
    if (const auto lower = options.known->lower.find(other.name); lower != options.known->lower.end())
      takeLower(lower->second, arena);
  }
}

/// Keeps the plan as the one that packs lower, where its arena is below `arena`.
void Planner::takeLower(Plan plan, Bytes &arena) {
  if (plan.arenaBytes >= arena)
    return;
  arena = plan.arenaBytes;
  plan.strategy = strategy.name;
  options.known->lower[strategy.name] = std::move(plan);
}

} // namespace sluice::planner
