// SPDX-License-Identifier: Apache-2.0
// Whose names of classes are whose: those of the command line, of data and of weights, by targets, and which of them
// the outputs of the program have.
#pragma once

#include "runtime/Program.h"
#include "runtime/data/ClassNames.h"

namespace sluice {

/// The first output that tells classes, or labels, apart; else the first.
int namedOutput(const Program &program);
/// What outputs that tell classes or labels apart are compared with, as indices of inputs; first that of namedOutput(),
/// which is -1 where it is compared with nothing.
std::vector<int> namedTargets(const Program &program);

/// The names of this target's classes, by its own name, or by "" for the first of namedTargets(); empty: not known.
std::vector<std::string> namesOf(const Program &program, int target, const ClassNames &names);
/// The same of what the output of this label (labelOf()) is compared with.
std::vector<std::string> namesFor(const Program &program, const std::string &label, const ClassNames &names);
/// Those that targets of this program have, under their keys.
ClassNames ownNames(const Program &program, const ClassNames &names);

/// The words of --class: the next name of a class of the first of namedTargets(), where there are several TARGET=NAME
/// for any of them. Throws UsageError for two classes of one name.
ClassNames namesFrom(const std::vector<std::string> &words, const Program &program);
/// Words that namesFrom() makes the same of.
std::vector<std::string> wordsOf(const Program &program, const ClassNames &names);

/// Throws UsageError for two classes of one name.
void checkClassNames(const std::vector<std::string> &names);

} // namespace sluice
