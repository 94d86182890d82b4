// SPDX-License-Identifier: Apache-2.0
// See Words.h.
#include "passes/planner/Words.h"

#include "runtime/CodecTable.h"

#include <cstdio>
#include <cstdlib>
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

static constexpr std::pair<Action, const char *> actionNames[] = {
    {Action::Keep, "keep"},     {Action::Offload, "offload"}, {Action::Compress, "compress"},
    {Action::Encode, "encode"}, {Action::Invert, "invert"},   {Action::Recompute, "recompute"}};

const char *actionName(Action action) {
  for (const auto &[value, name] : actionNames)
    if (value == action)
      return name;
  return "?";
}

std::optional<Action> findAction(std::string_view name) {
  for (const auto &[value, known] : actionNames)
    if (name == known)
      return value;
  return std::nullopt;
}

std::vector<std::string> lossyCodecs() {
  std::vector<std::string> lossy;
  for (const CodecFacts &codec : codecTable)
    if (!codec.exact)
      lossy.push_back(codec.name);
  return lossy;
}

std::vector<std::string> lossyActions() {
  std::vector<std::string> lossy = lossyCodecs();
  lossy.push_back("invert");
  return lossy;
}

std::set<std::string> exactActions() {
  std::set<std::string> exact = {"keep", "offload", "recompute"};
  for (const CodecFacts &codec : codecTable)
    if (codec.exact)
      exact.insert(codec.name);
  return exact;
}

std::set<std::string> allActions() {
  std::set<std::string> all = exactActions();
  for (const std::string &lossy : lossyActions())
    all.insert(lossy);
  return all;
}

} // namespace planner

} // namespace sluice
