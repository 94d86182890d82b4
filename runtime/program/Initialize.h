// SPDX-License-Identifier: Apache-2.0
// First values of all variables: from the weights file beside the program, constants, or draws keyed by (seed, name).
#pragma once

#include "runtime/Program.h"

#include <functional>
#include <string>

namespace sluice {

/// Which variables get their values from elsewhere afterwards, as from a checkpoint.
using GivenLater = std::function<bool(const Variable &)>;

/// The weights file is read only for what is not given later. Throws DataError when it is missing or does not hold what
/// the program expects.
void initializeVariables(Session &session, const Program &program, uint64_t seed, const GivenLater &later = nullptr);

/// Path of the export template. Throws DataError where it is missing.
std::string templateBeside(const Program &program);

/// Gives values to what begins by others, which have theirs: lengths of weights beside adapters, but those that are
/// `given`, and running averages of parameters.
void startDerived(Session &session, const Program &program, const GivenLater &given = nullptr);

} // namespace sluice
