// SPDX-License-Identifier: Apache-2.0
// JSON that people hand in: no deeper than any file of ours, so that nothing that walks it needs a large stack, and
// quoted in messages no longer than anybody reads.
#pragma once

#include <nlohmann/json.hpp>

#include <limits>
#include <stdexcept>
#include <string>

namespace sluice::planner {

constexpr int deepestJson = 16;

/// Throws where the text is no JSON, or nested more deeply.
inline nlohmann::json parseJson(const std::string &text) {
  return nlohmann::json::parse(text, [](int depth, nlohmann::json::parse_event_t, nlohmann::json &) {
    if (depth > deepestJson)
      throw std::runtime_error("nested more than " + std::to_string(deepestJson) + " deep");
    return true;
  });
}

/// The value as it stands in the file, for a message.
inline std::string quoted(const nlohmann::json &value) {
  const std::string text = value.dump();
  return text.size() <= 80 ? text : text.substr(0, 80) + "...";
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
