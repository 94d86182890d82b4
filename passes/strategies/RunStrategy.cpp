// SPDX-License-Identifier: Apache-2.0
// What every plan goes through: a strategy within the budget, a faster plan of its own for less memory, and mixed's
// choice among all strategies.
#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/LossyForms.h"
#include "passes/strategies/Strategies.h"
#include "passes/strategies/VisitorRoom.h"
#include "passes/strategies/WithinBudget.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>

namespace sluice::planner {

/// The tenths of what keep adds to the base, as budgets below `budget`, that could have plans of less than `span`
/// seconds with these actions; the largest first.
static std::vector<Bytes> tenthsBelow(const Problem &problem, Bytes budget, Abilities actions, Seconds span) {
  const Bytes kept = peakBytes(problem, expand(problem, keepPlan(problem))) - problem.base;
  std::vector<Bytes> tenths;
  for (int tenth = 10; tenth > 0; --tenth) {
    const Bytes less = problem.base + kept / 10 * tenth / problem.alignment * problem.alignment;
    if (less >= budget)
      continue;
    if (less < memoryFloor(problem) || actionBound(problem, less, actions) >= span)
      break; // and so it is for less
    tenths.push_back(less);
  }
  return tenths;
}

/// The strategy's own fastest plan for a tenth that is less than the budget, where it takes less than `span` seconds.
static std::optional<Plan> fasterForLess(const Problem &problem, Bytes budget, const Strategy &strategy,
                                         const Options &options, Seconds span) {
  const Abilities actions = allowedActions(options) & strategy.actions;
  std::optional<Plan> found;
  for (const Bytes less : tenthsBelow(problem, budget, actions, span)) {
    const Answer unpacked = strategyAnswer(strategy, problem, less, options);
    const Plan *plan = std::get_if<Plan>(&unpacked);
    // One that is planned again until it packs may be faster by a little.
    if (!plan || simulate(problem, *plan).makespan >= 1.001 * span)
      continue;
    Answer answer = Planner(problem, strategy, options, less).run(less);
    if (Plan *faster = std::get_if<Plan>(&answer))
      if (const Seconds seconds = simulate(problem, *faster).makespan; seconds < span) {
        span = seconds;
        found = std::move(*faster);
      }
  }
  return found;
}

/// False when a knob forbids an action that another strategy might use.
static bool takesOver(const Strategy &strategy, const Options &options) {
  if (!strategy.takesOver)
    return false;
  for (const char *knob : {"recompute", "offload", "encode", "takeover"})
    if (numberKnob(options, knob, 1) <= 0)
      return false;
  return true;
}

namespace {

/// The best of mixed's own plan and every other strategy's, as they would run: packed, within the budget.
class BestOfAll {
public:
  BestOfAll(const Problem &problem, Bytes budget, const Options &options, Answer own)
      : problem(problem), budget(budget), options(options), best(std::move(own)) {
    this->options.knobs.clear();
    if (const Plan *plan = std::get_if<Plan>(&best))
      bestSpan = simulate(problem, *plan).makespan;
  }

  /// Others are asked only while they could still be faster than the best plan so far: at the bound nothing is.
  Answer run() {
    const Seconds bound = actionBound(problem, budget, allowedActions(options));
    for (const Strategy &strategy : strategies())
      if (problem.ops.size() <= strategy.takenOver.ops && (std::isinf(bestSpan) || bestSpan > bound * (1 + 1e-9)))
        consider(strategy);
    if (auto *none = std::get_if<Infeasible>(&best))
      none->reason = tooSmall("mixed", none->smallestMemory, budget);
    return std::move(best);
  }

private:
  /// Another strategy's plan: first its faster ones for less, then for the budget. Without any plan so far, what it
  /// needs competes.
  void consider(const Strategy &strategy) {
    if (std::isfinite(bestSpan))
      if (std::optional<Plan> less = fasterForLess(problem, budget, strategy, options, bestSpan))
        take(std::move(*less));
    // Packing costs more than planning: where that counts, only plans that are faster before it go through it.
    if (problem.ops.size() > 300 && std::isfinite(bestSpan)) {
      const Answer unpacked = strategyAnswer(strategy, problem, budget, options);
      const Plan *plan = std::get_if<Plan>(&unpacked);
      if (!plan || simulate(problem, *plan).makespan >= bestSpan)
        return;
    }
    const Infeasible *leastNone = std::get_if<Infeasible>(&best);
    Answer answer = Planner(problem, strategy, options, leastNone ? leastNone->smallestMemory : budget).run(budget);
    if (Plan *plan = std::get_if<Plan>(&answer)) {
      if (simulate(problem, *plan).makespan < bestSpan)
        take(std::move(*plan));
    } else if (auto *none = std::get_if<Infeasible>(&answer), *bestNone = std::get_if<Infeasible>(&best);
               none && bestNone && none->smallestMemory < bestNone->smallestMemory) {
      bestNone->smallestMemory = none->smallestMemory;
    }
  }

  void take(Plan plan) {
    bestSpan = moveLess(plan, simulate(problem, plan).makespan);
    plan.strategy = "mixed"; // the table of tensors says what it does
    best = std::move(plan);
  }

  /// Strategies that move all that the link has time for move less where the budget has room. The plan's makespan.
  Seconds moveLess(Plan &plan, Seconds span) const {
    Bytes inner = budget;
    for (int attempt = 0; attempt < 4; ++attempt) {
      Plan less = plan;
      if (!giveBack(problem, inner, less))
        break;
      measure(problem, options, budget, less);
      if (less.arenaBytes > budget) {
        inner = tightened(problem, less, inner, budget);
        continue;
      }
      const Seconds lessSpan = simulate(problem, less).makespan;
      if (lessSpan > span)
        break;
      plan = checked(problem, less, budget);
      return lessSpan;
    }
    return span;
  }

  const Problem &problem;
  const Bytes budget;
  Options options;
  Answer best;
  Seconds bestSpan = std::numeric_limits<Seconds>::infinity();
};

} // namespace

/// What the strategy answers, or its plan for a tenth that is less, where that is faster.
static Answer noSlower(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options) {
  Answer answer = Planner(problem, strategy, options).run(budget);
  if (const Plan *plan = std::get_if<Plan>(&answer))
    if (std::optional<Plan> less = fasterForLess(problem, budget, strategy, options, simulate(problem, *plan).makespan))
      return std::move(*less);
  return answer;
}

/// The fastest of what a strategy plans with all actions and with each set of fewer ones. Packed, because the fastest
/// plan of all actions may not pack, and the one that it becomes within less may be slower than a plan of fewer that
/// packs.
static Answer withFewer(const Problem &problem, const Strategy &strategy, const Options &options,
                        const std::function<Answer(const Options &)> &plan) {
  std::vector<Options> sets = strategy.fewer ? strategy.fewer(problem, options) : std::vector<Options>();
  options.known->fewer.resize(sets.size());
  std::optional<Answer> best;
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].known = &options.known->fewer[i];
    Answer answer = plan(sets[i]);
    best = best ? faster(problem, std::move(*best), std::move(answer)) : std::move(answer);
  }
  Answer all = plan(options);
  return best ? faster(problem, std::move(*best), std::move(all)) : all;
}

/// The best of all. Where planning takes no time to speak of, all of them plan for less, too; longer programs have so
/// many trials that more memory has not been seen to make the plan slower.
static Answer bestOfAll(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options) {
  constexpr size_t fewOps = 150;
  const auto best = [&](Bytes memory) {
    Answer own = withFewer(problem, strategy, options,
                           [&](const Options &set) { return Planner(problem, strategy, set).run(memory); });
    return BestOfAll(problem, memory, options, std::move(own)).run();
  };
  Answer answer = best(budget);
  const Plan *plan = std::get_if<Plan>(&answer);
  if (!plan || problem.ops.size() > fewOps)
    return answer;
  Seconds span = simulate(problem, *plan).makespan;
  for (const Bytes less : tenthsBelow(problem, budget, allowedActions(options), span)) {
    Answer other = best(less);
    if (const Plan *faster = std::get_if<Plan>(&other); faster && simulate(problem, *faster).makespan < span) {
      span = simulate(problem, *faster).makespan;
      answer = std::move(other);
    }
  }
  return answer;
}

/// A strategy's answer before visitors are placed. Lossy actions that nobody named are taken away here, once, so that a
/// strategy only asks what it can do.
static Answer planned(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options) {
  Options allowed = withoutUnnamed(options);
  KnownPlans known;
  if (!allowed.known)
    allowed.known = &known;
  if (options.sketch)
    return Planner(problem, strategy, allowed).sketch(budget);
  if (takesOver(strategy, options))
    return bestOfAll(problem, budget, strategy, allowed);
  return withFewer(problem, strategy, allowed,
                   [&](const Options &set) { return noSlower(problem, budget, strategy, set); });
}

Answer runStrategy(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options) {
  return withVisitors(problem, budget, strategy, withoutUnnamed(options), planned(problem, budget, strategy, options));
}

// Problem and knobs are checked here, for all strategies: what is called from here on takes them for granted.
Answer runStrategy(const Problem &problem, Bytes budget, const std::string &name, const Options &options) {
  if (Status status = checkProblem(problem); !status)
    return Refused{status.error()};
  const Result<const Strategy *> found = findStrategy(name, options);
  if (!found)
    return Refused{found.error()};
  return runStrategy(problem, budget, **found, options);
}

static std::vector<bool> offloadedOf(const ChainPlan &plan) {
  std::vector<bool> offloaded;
  for (Action action : plan.actions)
    offloaded.push_back(action == Action::Offload);
  return offloaded;
}

/// The strategy's own answer; one that is for chains has rules for them, others plan the op-level problem of the chain.
static ChainAnswer chainAnswerOf(const Chain &chain, double memory, Release release, const Strategy &strategy,
                                 const Options &options) {
  const bool moves = strategy.actions.has(Action::Offload);
  ChainAnswer answer = strategy.chain ? strategy.chain(chain, memory, release, options)
                                      : ChainProblem(chain, moves).run(memory, strategy.plan, options);
  auto *plan = std::get_if<ChainPlan>(&answer);
  if (plan && plan->rawCopiesOnly)
    if (Status status = checkChain(chain, memory, offloadedOf(*plan), release, plan->timeline); !status)
      throw std::logic_error("chain plan of strategy '" + strategy.name + "' fails the checker: " + status.error());
  // What is above by the rounding of its sums fits, as all that compares with memory has it.
  if (plan && plan->timeline.peakBytes <= memory + byteSlack(chain))
    plan->timeline.peakBytes = std::min(plan->timeline.peakBytes, memory);
  return answer;
}

ChainAnswer runStrategy(const Chain &chain, double memory, Release release, const std::string &name,
                        const Options &options) {
  if (Status status = checkChain(chain); !status)
    return Refused{status.error()};
  if (!(std::isfinite(memory) && memory >= 0))
    return Refused{"memory is " + std::to_string(memory) + ", it must be at least 0"};
  const Result<const Strategy *> found = findStrategy(name, options);
  if (!found)
    return Refused{found.error()};
  const Strategy *strategy = *found;
  ChainAnswer best = chainAnswerOf(chain, memory, release, *strategy, options);
  if (!takesOver(*strategy, options) || (std::holds_alternative<ChainPlan>(best) && chainPeak(chain) <= memory))
    return best;
  const ChainProblem apart(chain, false); // what is saved may be made again alone
  const double floor = apart.size(memoryFloor(apart.problem)) + byteSlack(chain);
  for (const Strategy &other : strategies()) {
    if (const auto *none = std::get_if<ChainInfeasible>(&best); none && none->smallestMemory <= floor)
      break; // nobody gets along with less
    if (chain.uF.size() <= other.takenOver.stages && !other.lossyAsPublished)
      takeBetter(best, chainAnswerOf(chain, memory, release, other, {}));
  }
  return best;
}

// Of what a strategy may do: a bound for offloading alone would be beaten by one that also runs again.
Seconds strategyBound(const Chain &chain, double memory, const std::string &name, const Options &options) {
  const Result<const Strategy *> found = findStrategy(name, options);
  if (!found)
    throw std::invalid_argument(found.error());
  const Strategy *strategy = *found;
  const bool takesAll = strategy->takesOver && !options.allowLossy.empty();
  if (takesAll || strategy->lossyAsPublished) {
    // The merged problem moves what a stage saves as a unit; one that takes over may drop it alone.
    const bool apart = std::any_of(chain.saved.begin(), chain.saved.end(), [](double v) { return v > 0; });
    if (chain.bandwidth == 0 || (takesAll && apart))
      return chainCompute(chain);
    const ChainProblem lifted = publishedProblem(chain);
    Options allowed = everythingAllowed({});
    allowed.executable = strategy->actions;
    if (takesAll)
      allowed.allowLossy = options.allowLossy;
    return actionBound(lifted.problem, lifted.bytes(memory), allowedActions(allowed));
  }
  const bool moves = strategy->actions.has(Action::Offload);
  return strategy->actions.has(Action::Recompute) ? chainRecomputeBound(chain, memory, moves)
                                                  : chainBound(chain, memory);
}

} // namespace sluice::planner
