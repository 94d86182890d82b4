// SPDX-License-Identifier: Apache-2.0
// Reads interconnects. Numbers are in a range in which sums of times stay finite.
#include "passes/planner/InterconnectFile.h"

#include "passes/planner/Files.h"

namespace sluice::planner {

Interconnect readInterconnect(const nlohmann::json &root) {
  constexpr double longest = 1e6, fastest = 1e18;
  if (!root.is_object() || !root.contains("rate"))
    throw std::runtime_error("an interconnect has no 'rate', bytes per second that a rank sends");
  const auto number = [&](const char *key, double most) {
    return root.contains(key) ? numberOf(root.at(key), key, 0, most) : 0;
  };
  Interconnect between;
  between.rate = numberOf(root.at("rate"), "rate", 1, fastest);
  between.latency = number("latency_seconds", longest);
  between.overhead = number("overhead_seconds", longest);
  between.contention = number("contention", 1);
  for (auto [key, text] : {std::pair("interconnect", &between.name), {"provenance", &between.provenance}})
    if (root.contains(key) && root.at(key).is_string())
      *text = root.at(key);
  return between;
}

static Result<Interconnect> parseInterconnect(const std::string &text) {
  try {
    const nlohmann::json root = parseJson(text);
    if (!root.is_object() || !root.contains("version") || root.at("version") != 1)
      return Error{"malformed interconnect: its version is not 1"};
    return readInterconnect(root);
  } catch (const std::exception &e) {
    return Error{std::string("malformed interconnect: ") + e.what()};
  }
}

Result<Interconnect> loadInterconnect(const std::string &nameOrFile) {
  std::string names;
  for (const auto &[name, text] : shippedInterconnects()) {
    if (name == nameOrFile)
      return parseInterconnect(text);
    names += (names.empty() ? "" : ", ") + name;
  }
  const Result<std::string> text = readInput(nameOrFile);
  if (!text)
    return Error{"no interconnect '" + nameOrFile + "': neither a readable file (" + text.error() + ") nor one of " +
                 names};
  Result<Interconnect> between = parseInterconnect(*text);
  if (!between)
    return Error{nameOrFile + ": " + between.error()};
  if (between->name.empty())
    between->name = nameOrFile;
  return between;
}

} // namespace sluice::planner
