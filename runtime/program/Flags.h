// SPDX-License-Identifier: Apache-2.0
// The table of a generated program's flags, in the groups and the order of --help.
#pragma once

#include "runtime/program/Arguments.h"

#include <cmath>
#include <variant>

namespace sluice {

/// The member of Arguments that a flag sets, by which its kind is known: a switch, words, whole numbers, a real number,
/// or words of a flag that may be given several times.
using FlagField = std::variant<bool Arguments::*, std::optional<std::string> Arguments::*,
                               std::optional<int64_t> Arguments::*, std::optional<uint64_t> Arguments::*,
                               std::optional<double> Arguments::*, std::vector<std::string> Arguments::*>;

struct Flag {
  /// value: what --help calls it, FILE... or DIR... where it is a path; null for a switch
  const char *name, *value, *help;
  FlagField field;
  double least = 0, below = HUGE_VAL;   ///< range of a number: [least, below)
  bool percent = false;                 ///< of a hundred, or without a % and below 1 of one; words: or a number
  std::vector<const char *> words = {}; ///< that it may have; empty: any

  bool holdsPath() const;
  bool holdsWeights() const; ///< the words of a WeightFile
};

struct FlagGroup {
  const char *heading;
  const char *example; ///< flags of a command line that makes sense for any program
  std::vector<Flag> flags;
};

const std::vector<FlagGroup> &flagGroups();

/// Null when there is none of this name.
const Flag *findFlag(const std::string &name);
/// What ends the message about a name that no flag has: the nearest that one has, or nothing.
std::string likelyFlag(const std::string &name);

bool isGiven(const Arguments &arguments, const Flag &flag);

/// The texts by which setFlag() would set what the flag has been set to; none when it is not given.
std::vector<std::string> valuesOf(const Arguments &arguments, const Flag &flag);

/// Sets what `flag` says from the text of its value; a switch takes "true" and "false". Throws UsageError when it is of
/// another kind or out of range, and for options of weights that there are not.
void setFlag(Arguments &arguments, const Flag &flag, const std::string &value);

} // namespace sluice
