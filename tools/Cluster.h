// SPDX-License-Identifier: Apache-2.0
// Plans for machines that nobody has here: sluicec --ranks=N --interconnect=NAME.
#pragma once

#include "tools/Driver.h"

namespace sluice {

/// Prints what a step takes on 1 to 1,024 ranks, and on N, by the simulator: seconds, the share of them that compute
/// waits for messages, samples per second, memory a rank, and what limits. Writes no program. Returns the exit status.
int predictCluster(const DriverOptions &options);

} // namespace sluice
