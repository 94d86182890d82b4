// SPDX-License-Identifier: Apache-2.0
// The table of strategies, their knobs, and what options let them do.
#include "passes/strategies/Registry.h"
#include "passes/planner/Words.h"

#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace sluice::planner {

// One line a strategy, in the order of the reports: the function that describes it, in its own file.
#define SLUICE_STRATEGIES(X)                                                                                           \
  X(keepStrategy)                                                                                                      \
  X(greedyStrategy)                                                                                                    \
  X(dynprogStrategy)                                                                                                   \
  X(vdnnStrategy)                                                                                                      \
  X(vdnnAllStrategy)                                                                                                   \
  X(vdnnConvStrategy)                                                                                                  \
  X(vdnnAconvStrategy)                                                                                                 \
  X(vdnnDynStrategy)                                                                                                   \
  X(vdnnppStrategy)                                                                                                    \
  X(autoswapStrategy)                                                                                                  \
  X(tflmsStrategy)                                                                                                     \
  X(superneuronsStrategy)                                                                                              \
  X(hascoetStrategy)                                                                                                   \
  X(freelunchStrategy)                                                                                                 \
  X(gistStrategy)                                                                                                      \
  X(capuchinStrategy)                                                                                                  \
  X(dtrStrategy)                                                                                                       \
  X(chenStrategy)                                                                                                      \
  X(rotorStrategy)                                                                                                     \
  X(pofoStrategy)                                                                                                      \
  X(checkmateStrategy)                                                                                                 \
  X(mixedStrategy)                                                                                                     \
  X(autoStrategy)

#define SLUICE_DECLARE(describe) Strategy describe();
SLUICE_STRATEGIES(SLUICE_DECLARE)

const std::vector<Strategy> &strategies() {
#define SLUICE_DESCRIBE(describe) describe(),
  static const std::vector<Strategy> all = {SLUICE_STRATEGIES(SLUICE_DESCRIBE)};
  return all;
}

std::vector<std::string> strategyNames() {
  std::vector<std::string> names;
  for (const Strategy &s : strategies())
    names.push_back(s.name);
  return names;
}

/// Syntax alone; whether the strategy has the knobs, findStrategy() says.
Result<StrategyWords> parseStrategy(const std::string &words) {
  size_t comma = words.find(',');
  StrategyWords parsed{words.substr(0, comma), {}};
  while (comma != std::string::npos) {
    const size_t begin = comma + 1;
    comma = words.find(',', begin);
    const std::string part = words.substr(begin, comma == std::string::npos ? comma : comma - begin);
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos || equals == part.size() - 1)
      return Error{"'" + part + "' in --strategy is no k=v"};
    parsed.knobs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return parsed;
}

double numberKnob(const Options &options, const std::string &knob, double fallback) {
  const auto found = options.knobs.find(knob);
  return found == options.knobs.end() ? fallback : std::strtod(found->second.c_str(), nullptr);
}

static bool isNumber(const std::string &text, double most) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 && std::isfinite(value) && value >= 0 && value <= most;
}

/// Unknown knobs are refused by name, with those that there are: a mistyped one would go unnoticed.
static Status checkKnobs(const Strategy &strategy, const Options &options) {
  for (const auto &[name, value] : options.knobs) {
    std::vector<std::string> names;
    const Knob *knob = nullptr;
    for (const Knob &own : strategy.knobs) {
      names.push_back(own.name);
      knob = own.name == name ? &own : knob;
    }
    if (!knob)
      return Error{"strategy '" + strategy.name + "' has no knob '" + name + "'" +
                   (names.empty() ? "" : ", it has " + listed(names))};
    if (!isNumber(value, knob->most))
      return Error{"knob '" + name + "' of strategy '" + strategy.name + "' is '" + value +
                   "', it must be a number from 0 to " + std::to_string(static_cast<int64_t>(knob->most))};
  }
  return Success{};
}

Result<const Strategy *> findStrategy(const std::string &name, const Options &options) {
  for (const Strategy &strategy : strategies())
    if (strategy.name == name) {
      Status knobs = checkKnobs(strategy, options);
      return knobs ? Result<const Strategy *>(&strategy) : knobs.takeError();
    }
  return Error{"no strategy '" + name + "', there are " + listed(strategyNames())};
}

Abilities allowedActions(const Options &options) { return options.executable - (lossyActions() - options.allowLossy); }

Options withoutUnnamed(Options options) {
  options.executable = allowedActions(options);
  return options;
}

Status checkAbility(const Options &options, const std::string &strategy, Ability ability) {
  if (options.executable.has(ability))
    return Success{};
  const std::string name = abilityName(ability), needs = "strategy '" + strategy + "' needs '" + name + "', which ";
  if (lossyActions().has(ability) && !options.allowLossy.has(ability))
    return Error{needs + "is lossy and must be named: --allow-lossy=" + name};
  return Error{needs + "the target does not execute"};
}

} // namespace sluice::planner
