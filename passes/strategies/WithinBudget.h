// SPDX-License-Identifier: Apache-2.0
// One strategy within a budget: its plans are packed and checked, and planned again with less until the packed arena
// fits.
#pragma once

#include "passes/strategies/Registry.h"

namespace sluice::planner {

/// The strategy's own answer for `memory`; a plan whose errors exceed the problem's budget is refused, as one that the
/// strategy has no means to repair.
Answer strategyAnswer(const Strategy &strategy, const Problem &problem, Bytes memory, const Options &options);

/// runStrategy() of a strategy that need not be in the table; of a problem and knobs that are valid.
Answer runStrategy(const Problem &problem, Bytes budget, const Strategy &strategy, const Options &options);

/// Sets peak and arena of a plan. `budget`: packing ends when it is met.
void measure(const Problem &problem, const Options &options, Bytes budget, Plan &plan);

/// A limit on live bytes for the next try, after a plan within `inner` whose arena exceeds the budget: most plans pack
/// at their load, and the excess is the best guess of what the next one must leave.
Bytes tightened(const Problem &problem, const Plan &plan, Bytes inner, Bytes budget);

/// The plan, which the checker accepts; else std::logic_error.
const Plan &checked(const Problem &problem, const Plan &plan, Bytes budget);

/// Why a strategy refuses a budget.
std::string tooSmall(const std::string &strategy, Bytes needed, Bytes budget);

/// Plans with an inner limit on live bytes until the packed arena is within the budget. `known`: bytes that another
/// strategy is known to manage with; a plan with at least as many live bytes is not worth packing just to report what
/// this strategy needs. Keeps references; options.known must not be null.
class Planner {
public:
  Planner(const Problem &problem, const Strategy &strategy, const Options &options,
          Bytes known = std::numeric_limits<Bytes>::max())
      : problem(problem), strategy(strategy), options(options), known(known) {}

  /// A plan that the checker accepts, with peak and arena set; what the strategy needs at least; or why it refuses.
  Answer run(Bytes budget);
  /// The same from three tries at most. Infeasible names the floor.
  Answer sketch(Bytes budget);

private:
  Plan lessTight(Plan best, Bytes fits, Bytes fails, Bytes budget);
  Answer smallest(Bytes budget);
  Bytes least(Bytes budget);
  void lookLower(const Plan &plan);
  void takeLower(Plan plan, Bytes &arena);

  const Problem &problem;
  const Strategy &strategy;
  const Options &options;
  const Bytes known;
};

} // namespace sluice::planner
