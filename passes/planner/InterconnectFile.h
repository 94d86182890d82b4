// SPDX-License-Identifier: Apache-2.0
// Interconnects in files of their own and in device profiles.
#pragma once

#include "passes/planner/Interconnect.h"
#include "passes/planner/Json.h"

namespace sluice::planner {

/// The numbers of an interconnect; throws std::runtime_error, which names key and value.
Interconnect readInterconnect(const nlohmann::json &root);

} // namespace sluice::planner
