// SPDX-License-Identifier: Apache-2.0
// JSON that people hand in: no deeper than any file of ours, so that nothing that walks it needs a large stack, and
// quoted in messages no longer than anybody reads.
#pragma once

#include <nlohmann/json.hpp>

#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::planner {

constexpr int deepestJson = 16;

/// The value as it stands in the file, for a message.
inline std::string quoted(const nlohmann::json &value) {
  const std::string text = value.dump();
  return text.size() <= 80 ? text : text.substr(0, 80) + "...";
}

/// Throws where the text is no JSON, nested more deeply, or gives an object two values for a key.
inline nlohmann::json parseJson(const std::string &text) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys(deepestJson + 2); // of the open objects, by the depth of what they hold
  return nlohmann::json::parse(text, [&](int depth, Event event, nlohmann::json &value) {
    if (depth > deepestJson)
      throw std::runtime_error("nested more than " + std::to_string(deepestJson) + " deep");
    if (event == Event::object_start)
      keys[depth + 1].clear();
    else if (event == Event::key && !keys[depth].insert(value.get<std::string>()).second)
      throw std::runtime_error("key " + quoted(value) + " is given twice");
    return true;
  });
}

/// A number from `least` to `most`; anything else throws, with the key and the value.
inline double numberOf(const nlohmann::json &value, const std::string &key, double least, double most) {
  if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most)
    return value.get<double>();
  throw std::runtime_error(
      "'" + key + "' is " + quoted(value) + ", it must be a number of at least " + nlohmann::json(least).dump() +
      (most < std::numeric_limits<double>::max() ? " and at most " + nlohmann::json(most).dump() : ""));
}

} // namespace sluice::planner
