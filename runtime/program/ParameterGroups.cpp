// SPDX-License-Identifier: Apache-2.0
// A word ends in its settings; a pattern may hold colons itself.

#include "runtime/program/ParameterGroups.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/files/NamePattern.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>

namespace sluice {

namespace {

struct Group {
  std::regex pattern;
  std::optional<float> rate, decay;
};

float numberOf(const std::string &word, const std::string &value) {
  double parsed = 0;
  if (!parseNumber(value, parsed) || !(parsed >= 0) || !std::isfinite(static_cast<float>(parsed)))
    throw UsageError(text("--group '", word, "': '", value, "' is no finite number of 0 or more"));
  return static_cast<float>(parsed);
}

Group groupOf(const std::string &word) {
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == word.size())
    throw UsageError(text("--group takes REGEX:lr=X,decay=Y, got '", word, "'"));
  Group group{namePattern(word.substr(0, colon), text("--group '", word, "'")), {}, {}};
  std::stringstream settings(word.substr(colon + 1));
  for (std::string setting; std::getline(settings, setting, ',');) {
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    std::optional<float> *const value = key == "lr" ? &group.rate : key == "decay" ? &group.decay : nullptr;
    if (!value || equals == std::string::npos)
      throw UsageError(text("--group '", word, "': '", setting, "' is neither lr=X nor decay=Y"));
    if (*value)
      throw UsageError(text("--group '", word, "': says ", key, " twice"));
    *value = numberOf(word, setting.substr(equals + 1));
  }
  return group;
}

/// By any of its names.
bool isMeant(const Group &group, const Variable &variable, const Program &program) {
  if (std::regex_match(variable.name, group.pattern))
    return true;
  for (int i = 0; i < program.tiedCount; ++i)
    if (std::strcmp(program.tied[i].variable, variable.name) == 0 &&
        std::regex_match(program.tied[i].name, group.pattern))
      return true;
  return false;
}

} // namespace

std::map<int, ParameterGroup> parameterGroups(const std::vector<std::string> &words, const Program &program) {
  std::map<int, ParameterGroup> groups;
  for (const std::string &word : words) {
    const Group group = groupOf(word);
    int matched = 0;
    for (int i = 0; i < program.variableCount; ++i) {
      const Variable &variable = program.variables[i];
      if (variable.role != Role::Parameter || !isMeant(group, variable, program))
        continue;
      ++matched;
      ParameterGroup &own = groups[i];
      own.rate = group.rate.value_or(own.rate);
      own.weightDecay = group.decay.value_or(own.weightDecay);
    }
    if (matched == 0)
      throw UsageError(text("--group '", word, "' matches the whole name of no trained parameter",
                            " (sluicec --list-parameters shows them)"));
  }
  return groups;
}

} // namespace sluice
