// SPDX-License-Identifier: Apache-2.0
// What a Status says, for tests that look for parts of it.
#pragma once

#include "runtime/Result.h"

#include <string>

namespace sluice {

/// Empty on success.
inline std::string messageOf(const Status &status) { return status ? "" : status.error(); }

} // namespace sluice
