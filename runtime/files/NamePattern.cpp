// SPDX-License-Identifier: Apache-2.0
// What is refused here would take exponential time or room in the standard library.

#include "runtime/files/NamePattern.h"

#include "runtime/Errors.h"

namespace sluice {

static constexpr size_t longestPattern = 1000; // the standard library descends into brackets on its stack

std::regex namePattern(const std::string &pattern, const std::string &who) {
  if (pattern.size() > longestPattern)
    throw UsageError(
        text(who, " takes a regular expression of at most ", longestPattern, " characters, not of ", pattern.size()));
  if (pattern.find('{') != std::string::npos)
    throw UsageError(text(who, ": its regular expression may have no counts in braces"));
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error &) {
    throw UsageError(text(who, ": '", pattern, "' is no regular expression without back-references"));
  }
}

} // namespace sluice
