// SPDX-License-Identifier: Apache-2.0
// The strategies' entry points, one file each; see that file for source, rule and limits. Call them through Registry.h.
#pragma once

#include "passes/strategies/Registry.h"

namespace sluice::planner {

Answer planKeep(const Problem &problem, Bytes memory, const Options &options);
Answer planGreedy(const Problem &problem, Bytes memory, const Options &options);

} // namespace sluice::planner
