// SPDX-License-Identifier: Apache-2.0
// Measures what the host runtime's kernels reach on this machine, as a device profile.
#pragma once

#include <functional>
#include <string>

namespace sluice {

/// A profile (JSON, see passes/planner/Profile.h) with samples of convolutions, products, attention, recurrent layers,
/// regions and their scalar functions, and of kernels that wait for memory, of floats and, if asked for, of bf16 as
/// well; of copies beside compute, and of the disk that has the folder; what it does not measure (codecs) is taken from
/// the profile `host`. Takes ten seconds, 20 with bf16, with the threads that were set before. Starts threads of
/// OpenMP: a process that forks afterwards, as HostTrial.h does, cannot use them in its child. Throws
/// std::runtime_error where other work takes the cores before or meanwhile, unless `insist`: then it warns on standard
/// error, once. Calls `begin` when it has looked and starts to measure.
std::string calibrate(const std::string &folder, bool halves, bool insist, const std::function<void()> &begin);

} // namespace sluice
