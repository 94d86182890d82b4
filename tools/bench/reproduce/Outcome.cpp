// SPDX-License-Identifier: Apache-2.0
// Plans and formats for the pages, see Outcome.h.
#include "tools/bench/reproduce/Outcome.h"

#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"

#include <cstdio>
#include <stdexcept>

namespace sluice::bench {

using namespace planner;

static Outcome outcomeAt(const Problem &problem, Bytes memory, const std::string &strategy, const Options &options) {
  const Answer answer = runStrategy(problem, memory, strategy, options);
  const Plan *plan = std::get_if<Plan>(&answer);
  if (!plan)
    throw std::runtime_error("strategy '" + strategy + "' has no plan for " + std::to_string(memory) + " bytes");
  const Timeline timeline = simulate(problem, *plan);
  return {timeline.makespan, plan->arenaBytes, timeline.hostBytes};
}

Outcome outcome(const Problem &problem, const std::string &strategy, const std::map<std::string, std::string> &knobs) {
  Options options = everythingAllowed({});
  options.knobs = knobs;
  return outcomeAt(problem, Bytes(1) << 55, strategy, options);
}

Outcome within(const Problem &problem, Bytes memory, const std::string &strategy) {
  return outcomeAt(problem, memory, strategy, everythingAllowed({}));
}

Outcome leastOf(const Problem &problem, const std::string &strategy, const std::map<std::string, std::string> &knobs) {
  Options options = everythingAllowed({});
  options.knobs = knobs;
  const Answer none = runStrategy(problem, problem.base, strategy, options);
  const auto *least = std::get_if<Infeasible>(&none);
  return outcomeAt(problem, least ? least->smallestMemory : problem.base, strategy, options);
}

Profile profileOf(const std::string &name) {
  const Result<Profile> profile = loadProfile(name);
  if (!profile)
    throw std::runtime_error(profile.error());
  return *profile;
}

std::string digits(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string percent(double share) { return digits(100 * share, 1) + " %"; }

} // namespace sluice::bench
