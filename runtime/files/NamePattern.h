// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tensors' names, which users and files that others wrote bring along: ECMAScript's without
// back-references and counts, so that they are matched in polynomial time by automata no larger than they are.
#pragma once

#include <regex>
#include <string>

namespace sluice {

/// Throws UsageError, which begins with `who`, for what is none, or longer than 1000 characters.
std::regex namePattern(const std::string &pattern, const std::string &who);

} // namespace sluice
