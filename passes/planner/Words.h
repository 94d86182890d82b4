// SPDX-License-Identifier: Apache-2.0
// Words that command lines, plans and reports share: sizes and actions.
#pragma once

#include "passes/planner/Plan.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// A plain decimal number at the start of `text`; the rest goes to `unit`. Nothing for signs, exponents, hex and the
/// like.
std::optional<double> leadingNumber(const std::string &text, std::string &unit);

/// Bytes of "8GiB", "600MiB", "4KiB", "1500000", not rounded. Nothing when malformed or negative.
std::optional<double> parseBytes(const std::string &text);

/// Three significant digits, as 0.0123 or 1.2e-05.
std::string shortNumber(double value);

/// "a, b, c", of names that a message offers.
std::string listed(const std::vector<std::string> &names);

namespace planner {

const char *actionName(Action action);
/// Nothing for an unknown name.
std::optional<Action> findAction(std::string_view name);

/// Names of actions and codecs, as in Options::executable: codecs that are lossy, all that is, those that keep every
/// bit, and all.
std::vector<std::string> lossyCodecs();
std::vector<std::string> lossyActions();
std::set<std::string> exactActions();
std::set<std::string> allActions();

} // namespace planner

} // namespace sluice
