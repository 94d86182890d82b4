// SPDX-License-Identifier: Apache-2.0
// Says where a step is that does not end, instead of waiting for it in silence.
#pragma once

#include "runtime/Stream.h"

#include <functional>

namespace sluice {

/// Called with a task that has run for `seconds` so far.
using OnStuck = std::function<void(const char *stream, const Node &node, const char *op, double seconds)>;

/// While the program waits for the session's streams, calls `report`, on the waiting thread, for a task that runs
/// longer than `patience` seconds, and again whenever that time has doubled. `patience` of 0: for none. Set while
/// nothing runs. Cuda: does nothing, kernels are the driver's there.
void watchStreams(Session &session, double patience, OnStuck report);

} // namespace sluice
