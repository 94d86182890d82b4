// SPDX-License-Identifier: Apache-2.0
// A sweep as one HTML file that needs no network.
#pragma once

#include "tools/Sweep.h"

namespace sluice {

/// Curves of time over memory; for one plan: memory over time, timeline by stream, tensors.
std::string htmlOf(const Sweep &sweep);

} // namespace sluice
