// SPDX-License-Identifier: Apache-2.0
// Parsing of sizes and budgets, see Budget.h.
#include "passes/plan/Budget.h"

#include "passes/planner/Words.h"

#include <cmath>

using namespace sluice;

std::optional<int64_t> sluice::parseSize(const std::string &text) {
  const double bytes = std::floor(parseBytes(text).value_or(0));
  if (bytes < 1 || bytes >= 0x1p62)
    return std::nullopt;
  return static_cast<int64_t>(bytes);
}

/// Percentages give multiples of 256 bytes, as slots have.
std::optional<int64_t> sluice::parseBudget(const std::string &text, int64_t keepArena, int64_t base) {
  if (text.find('%') == std::string::npos)
    return parseSize(text);
  std::string unit;
  auto percent = leadingNumber(text, unit);
  if (!percent || *percent <= 0 || *percent > 1000 || (unit != "%" && unit != "%act"))
    return std::nullopt;
  double share = *percent / 100;
  double bytes = unit == "%" ? share * keepArena : base + share * (keepArena - base);
  return static_cast<int64_t>(bytes) / 256 * 256;
}
