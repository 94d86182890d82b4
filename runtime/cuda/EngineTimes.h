// SPDX-License-Identifier: Apache-2.0
// Engines that a profile recorded, and the tasks that engines were chosen for, to be timed.
#pragma once

#include "runtime/Engines.h"
#include "runtime/cuda/ConvEngine.h"

namespace sluice {

/// The engine that was recorded for this task, null where none was. Remembers the task for measureEngines().
const EngineChoice *useEngine(const ConvTask &task);

} // namespace sluice
