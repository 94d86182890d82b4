// SPDX-License-Identifier: Apache-2.0
// Words that command lines, plans and reports share: sizes, actions, and what plans may do. Those of codecs are in
// runtime/CodecTable.h, because programs write them, too.
#pragma once

#include "passes/planner/Abilities.h"
#include "runtime/Result.h"

#include <optional>
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

/// The action's, or the codec's without mask and rate.
std::string abilityName(Ability ability);
/// Codecs in the order of their table, then actions.
std::vector<std::string> abilityNames(Abilities abilities);

/// Reads --allow-lossy=NAME[,NAME...]; "" is nothing.
Result<Abilities> parseLossy(const std::string &words);

/// "offload", "offload fp16", "compress mask+zfp:12".
std::string decisionName(const Decision &decision);

} // namespace planner

} // namespace sluice
