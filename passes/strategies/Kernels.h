// SPDX-License-Identifier: Apache-2.0
// Choosing an op's kernel among its alternatives: vDNN's (p) and (m) modes, and what mixed does with them.
#pragma once

#include "passes/strategies/Registry.h"

#include <vector>

namespace sluice::planner {

bool hasAlternatives(const Problem &problem);

/// Indices for Plan::alternatives: for every op the fastest kernel, or the one of least workspace.
std::vector<int> fastestKernels(const Problem &problem);
std::vector<int> smallestKernels(const Problem &problem);

/// The knob `kernels` of vDNN's modes: 1 for those of least workspace, 2 for the fastest. Refused in the name of
/// a strategy where there are none to choose from.
Status checkKernels(const Problem &problem, const Options &options, const std::string &strategy);
/// Keeps everything, with the kernels that the knob asks for.
Plan withWantedKernels(const Problem &problem, const Options &options);

/// The problem in which these kernels are the only ones.
Problem withKernels(Problem problem, const std::vector<int> &chosen);

/// Gives every op of a plan within `memory` live bytes the fastest kernel whose workspace has room beside what is live
/// whenever the op runs. A workspace lives while its op runs only, so that no choice takes another one's room.
void takeFasterKernels(const Problem &problem, Bytes memory, Plan &plan);

/// The strategy's plan, or, where kernels may be chosen, its plan with those of least workspace, which then takes
/// faster ones where there is room: the faster of the two.
Answer planWithKernels(const Problem &problem, Bytes memory, const Options &options, PlanFunction strategy);

} // namespace sluice::planner
