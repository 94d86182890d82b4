// SPDX-License-Identifier: Apache-2.0
// The profile of the machine that the compiler runs on: measured once, then kept under the user's cache folder by
// processor, instructions in effect and threads.
#pragma once

#include "tools/Driver.h"

namespace sluice {

/// Decides what times are predicted from where --device names nothing. Of a cuda program: chooseGpu(). Of a host
/// program: for another family of processors the one of its row in runtime/CpuTable.h, else $SLUICE_DEVICE, else this
/// machine's profile, whose file is then named in `options`. Measures the machine where nothing is known of it, or
/// --calibrate asks for it, and says so on standard error. Where no profile can be measured or kept: the shipped one,
/// and a line that says why. May start the process again (ensureOpenMP()), so call it before anything was written.
void chooseDevice(DriverOptions &options);

} // namespace sluice
