// SPDX-License-Identifier: Apache-2.0
// See Words.h.
#include "passes/planner/Words.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace sluice {

std::optional<double> leadingNumber(const std::string &text, std::string &unit) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string digits = text.substr(0, end);
  unit = end == std::string::npos ? "" : text.substr(end);
  if (digits.empty() || digits == "." || digits.find('.') != digits.rfind('.') || digits.size() > 20)
    return std::nullopt;
  return std::strtod(digits.c_str(), nullptr);
}

/// Binary units alone: MB would be read as either.
std::optional<double> parseBytes(const std::string &text) {
  constexpr std::pair<const char *, double> units[] = {
      {"", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  std::string unit;
  const std::optional<double> number = leadingNumber(text, unit);
  for (const auto &[name, factor] : units)
    if (number && unit == name)
      return *number * factor;
  return std::nullopt;
}

std::string shortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string listed(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

namespace planner {

const char *actionName(Action action) { return factsOf(action).name; }

std::optional<Action> findAction(std::string_view name) {
  for (const ActionFacts &facts : actionTable)
    if (name == facts.name)
      return facts.action;
  return std::nullopt;
}

static constexpr const char *algorithmsName = "algorithms";

std::vector<std::string> abilityNames(Abilities abilities) {
  std::vector<std::string> names;
  for (const CodecFacts &codec : codecTable)
    if (abilities.has(codec.kind))
      names.push_back(codec.name);
  for (const ActionFacts &facts : actionTable)
    if (abilities.has(facts.action))
      names.push_back(facts.name);
  if (abilities.has(Ability::algorithms()))
    names.push_back(algorithmsName);
  return names;
}

std::string abilityName(Ability ability) { return abilityNames({ability}).front(); }

/// Of what is off unless it is named.
static std::optional<Ability> findLossy(const std::string &name) {
  for (const CodecFacts &codec : codecTable)
    if (!codec.exact && name == codec.name)
      return codec.kind;
  if (const std::optional<Action> action = findAction(name); action && factsOf(*action).rounds)
    return *action;
  return name == algorithmsName ? std::optional(Ability::algorithms()) : std::nullopt;
}

Result<Abilities> parseLossy(const std::string &words) {
  Abilities lossy;
  std::stringstream list(words);
  for (std::string name; std::getline(list, name, ',');) {
    const std::optional<Ability> ability = findLossy(name);
    if (!ability)
      return Error{"--allow-lossy knows no '" + name + "'; there are " + listed(abilityNames(lossyActions())) +
                   " and " + algorithmsName};
    lossy.add(*ability);
  }
  return lossy;
}

std::string decisionName(const Decision &decision) {
  return actionName(decision.action) + (decision.codec ? " " + codecName(decision.codec) : "");
}

} // namespace planner

} // namespace sluice
