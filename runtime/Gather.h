// SPDX-License-Identifier: Apache-2.0
// One launch for several kernels of one kind, each of which takes less time than a launch: programs for cuda, which
// alone have these calls, put them around runs that sluice-group-launches has brought together.
#pragma once

#include "runtime/Stream.h"

namespace sluice {

/// Most kernels that one launch takes: their tensors are its arguments, of which there are 4 KiB.
constexpr int mostGathered = 48;

/// Until launchGathered() updates of parameters, sums of gradients, averages, running statistics, casts of weights and
/// of their gradients on this stream are held back and then combined into few launches, whose work runs in any order:
/// none may read or write what another one writes. Anything else that is launched goes after what was held back so far.
void gather(Stream &stream);
void launchGathered(Stream &stream);

} // namespace sluice
