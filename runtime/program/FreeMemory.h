// SPDX-License-Identifier: Apache-2.0
// Whether the machine has the memory that a program is about to take: pages are only taken when they are touched, which
// is too late to say so.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

/// Throws MemoryNotAvailable when this machine has less than `bytes` of free memory, naming both numbers; `what` begins
/// the message.
void requireFreeMemory(size_t bytes, const std::string &what = "the arenas need");

} // namespace sluice
