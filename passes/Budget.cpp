// SPDX-License-Identifier: Apache-2.0
// Parsing of sizes and budgets, see Budget.h.
#include "passes/Budget.h"

#include <cmath>
#include <cstdlib>

using namespace sluice;

/// A plain decimal number at the start of `text`; the rest goes to `unit`. Nothing for signs, exponents, hex and the
/// like.
static std::optional<double> number(const std::string &text, std::string &unit) {
  size_t end = text.find_first_not_of("0123456789.");
  std::string digits = text.substr(0, end);
  unit = end == std::string::npos ? "" : text.substr(end);
  if (digits.empty() || digits == "." || digits.find('.') != digits.rfind('.') || digits.size() > 20)
    return std::nullopt;
  return std::strtod(digits.c_str(), nullptr);
}

std::optional<int64_t> sluice::parseSize(const std::string &text) {
  std::string unit;
  auto value = number(text, unit);
  if (!value)
    return std::nullopt;
  double factor = unit == ""      ? 1
                  : unit == "KiB" ? 0x1p10
                  : unit == "MiB" ? 0x1p20
                  : unit == "GiB" ? 0x1p30
                  : unit == "TiB" ? 0x1p40
                                  : 0;
  double bytes = std::floor(*value * factor);
  if (bytes < 1 || bytes >= 0x1p62)
    return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::optional<int64_t> sluice::parseBudget(const std::string &text, int64_t keepArena, int64_t base) {
  if (text.find('%') == std::string::npos)
    return parseSize(text);
  std::string unit;
  auto percent = number(text, unit);
  if (!percent || *percent <= 0 || *percent > 1000 || (unit != "%" && unit != "%act"))
    return std::nullopt;
  double share = *percent / 100;
  double bytes = unit == "%" ? share * keepArena : base + share * (keepArena - base);
  return static_cast<int64_t>(bytes) / 256 * 256;
}
