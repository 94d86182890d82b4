// SPDX-License-Identifier: Apache-2.0
// The shipped profile of the GPU that is in the machine.
#pragma once

#include "tools/Driver.h"

namespace sluice {

/// Decides what a cuda program's times are predicted from where neither --device nor $SLUICE_DEVICE names anything: the
/// shipped profile of the first GPU that nvidia-smi lists, by its name and memory, and says so on standard error; the
/// default where there is no GPU; and the default with a line that says so where no profile is that card's.
void chooseGpu(DriverOptions &options);

} // namespace sluice
