// SPDX-License-Identifier: Apache-2.0
// Tries host kernels before programs depend on them: an implementation of oneDNN 2.6.3 is known that never ends for
// some geometries, and nothing in its interface says so.
#pragma once

#include "passes/kernels/HostKernels.h"

#include <functional>

namespace sluice {

/// Runs every algorithm that may be used (the chosen ones, with `alternatives` AlgorithmChoice::unbeaten) and was not
/// tried by this process before, on small random data in a process of its own with limited time. Those that crash, do
/// not end or give wrong results are removed from what their ops offer; true when there were none. `run` is one trial,
/// in the child.
bool everythingWorks(std::vector<AlgorithmChoice> &choices, bool alternatives,
                     const std::function<bool(const HostTrialCase &)> &run = works);

/// Call in a child that may crash: it forgets the parent's crash handlers and leaves no core dump.
void crashQuietly();

} // namespace sluice
