// SPDX-License-Identifier: Apache-2.0
// First values of all variables: from the weights file beside the program, constants, or draws keyed by (seed, name).
#pragma once

#include "runtime/Program.h"

namespace sluice {

/// Throws DataError when the weights file is missing or does not hold what the program expects.
void initializeVariables(Session &session, const Program &program, uint64_t seed);

/// Running averages begin as what their parameters are, which have their first values.
void startAverages(Session &session, const Program &program);

} // namespace sluice
