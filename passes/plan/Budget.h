// SPDX-License-Identifier: Apache-2.0
// Sizes and budgets as the command line gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice {

/// "8GiB", "600MiB", "4KiB", "1500000" (bytes). Nothing when malformed, negative, zero or too large for int64.
std::optional<int64_t> parseSize(const std::string &text);

/// The bytes that a budget means, rounded down to 256: a size, `P%` of keep's arena, or `P%act` = base + P/100 *
/// (keep's arena - base). Nothing when malformed. P may have a fraction and lies in (0, 1000].
std::optional<int64_t> parseBudget(const std::string &text, int64_t keepArena, int64_t base);

} // namespace sluice
