// SPDX-License-Identifier: Apache-2.0
// How flags are found and their values read, by the table in FlagTable.cpp.

#include "runtime/program/Flags.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/Spelling.h"
#include "runtime/program/WeightNames.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace sluice {

bool Flag::holdsPath() const {
  return value && (std::strncmp(value, "FILE", 4) == 0 || std::strncmp(value, "DIR", 3) == 0);
}

bool Flag::holdsWeights() const { return this == findFlag("--init") || this == findFlag("--export"); }

const Flag *findFlag(const std::string &name) {
  for (const FlagGroup &group : flagGroups())
    for (const Flag &flag : group.flags)
      if (name == flag.name)
        return &flag;
  return nullptr;
}

/// Flags of sluicec that people give to the program instead.
static constexpr const char *whenCompiling[] = {
    "--batch",   "--memory-budget", "--host-budget", "--optimizer", "--loss",         "--precision",     "--target",
    "--dropout", "--batch-norm",    "--freeze",      "--train",     "--ignore-index", "--class-weights", "--strategy"};

std::string likelyFlag(const std::string &name) {
  for (const char *flag : whenCompiling)
    if (withoutHabit(name) == flag)
      return text("; ", flag, " is a flag of sluicec, which decides it when it makes the program");
  std::vector<std::string> names;
  for (const FlagGroup &group : flagGroups())
    for (const Flag &flag : group.flags)
      names.emplace_back(flag.name);
  return didYouMean(name, names);
}

namespace {

/// Puts a value where the kind of the flag's member says.
struct Store {
  Arguments &arguments;
  const Flag &flag;
  const std::string &value;

  [[noreturn]] void refuse(const std::string &expected) const {
    throw UsageError(text(flag.name, " expects ", expected, ", got '", value, "'"));
  }
  std::string range(const char *kind) const {
    return text(kind, " of ", flag.least, " or more",
                flag.below <= 1e6 ? text(" and below ", static_cast<int64_t>(flag.below)) : "");
  }
  bool inRange(double parsed) const { return parsed >= flag.least && parsed < flag.below; }

  void operator()(bool Arguments::*field) const {
    if (value != "true" && value != "false")
      throw UsageError(text(flag.name, " takes no value, got '", value, "'; ", flag.name, "=false switches it off"));
    arguments.*field = value == "true";
  }
  void operator()(std::optional<std::string> Arguments::*field) const {
    const auto same = [this](const char *word) { return value == word; };
    if (value.empty() || (!flag.words.empty() && std::none_of(flag.words.begin(), flag.words.end(), same)))
      refuse(flag.value);
    arguments.*field = value;
  }
  void operator()(std::vector<std::string> Arguments::*field) const {
    if (value.empty())
      refuse(flag.value);
    (arguments.*field).push_back(value);
  }
  void operator()(std::optional<int64_t> Arguments::*field) const {
    int64_t parsed = 0;
    if (!parseNumber(value, parsed) || !inRange(static_cast<double>(parsed)))
      refuse(range("a whole number"));
    arguments.*field = parsed;
  }
  void operator()(std::optional<uint64_t> Arguments::*field) const {
    uint64_t parsed = 0;
    if (!parseNumber(value, parsed))
      refuse("a whole number from 0 to 2^64 - 1");
    arguments.*field = parsed;
  }
  void operator()(std::optional<double> Arguments::*field) const {
    double parsed = 0;
    const bool sign = flag.percent && value.size() > 1 && value.back() == '%';
    if (!parseNumber(value.substr(0, value.size() - (sign ? 1 : 0)), parsed) ||
        !std::isfinite(static_cast<float>(parsed)) || !inRange(parsed))
      refuse(range("a finite number"));
    if (flag.percent && !sign && parsed < 1) // a share of 1
      parsed *= 100;
    arguments.*field = parsed + 0.0; // no minus before a zero
  }
};

struct Given {
  const Arguments &arguments;

  bool operator()(bool Arguments::*field) const { return arguments.*field; }
  bool operator()(std::vector<std::string> Arguments::*field) const { return !(arguments.*field).empty(); }
  template <typename Value> bool operator()(std::optional<Value> Arguments::*field) const {
    return (arguments.*field).has_value();
  }
};

template <typename Number> std::string textOf(Number value) {
  char digits[64]; // the shortest that reads back as the same
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

struct Values {
  const Arguments &arguments;
  const Flag &flag;
  using Texts = std::vector<std::string>;

  Texts operator()(bool Arguments::*field) const { return arguments.*field ? Texts{"true"} : Texts{}; }
  Texts operator()(std::vector<std::string> Arguments::*field) const { return arguments.*field; }
  Texts operator()(std::optional<std::string> Arguments::*field) const {
    return arguments.*field ? Texts{*(arguments.*field)} : Texts{};
  }
  template <typename Value> Texts operator()(std::optional<Value> Arguments::*field) const {
    return arguments.*field ? Texts{textOf(*(arguments.*field)) + (flag.percent ? "%" : "")} : Texts{};
  }
};

} // namespace

std::vector<std::string> valuesOf(const Arguments &arguments, const Flag &flag) {
  return std::visit(Values{arguments, flag}, flag.field);
}

bool isGiven(const Arguments &arguments, const Flag &flag) { return std::visit(Given{arguments}, flag.field); }

void setFlag(Arguments &arguments, const Flag &flag, const std::string &value) {
  if (flag.holdsWeights())
    WeightFile{value}; // which refuses options that there are not
  std::visit(Store{arguments, flag, value}, flag.field);
}

} // namespace sluice
