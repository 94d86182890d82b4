// SPDX-License-Identifier: Apache-2.0
// Whether the machine has the memory that a program is about to take: pages are only taken when they are touched, which
// is too late to say so.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace sluice {

/// In bytes; SIZE_MAX where the system does not say.
struct MachineMemory {
  size_t available, total;
};
MachineMemory machineMemory();

/// Throws MemoryNotAvailable when this machine has less than `bytes` of free memory, or the process's control group
/// allows less, naming both numbers; `what` begins the message. Virtual machines get their memory gradually: as long as
/// free memory keeps growing this waits, for at most five seconds; if it is still too little but the machine has as
/// much in all, a line on standard error warns.
void requireFreeMemory(size_t bytes, const std::string &what = "the arenas need",
                       const std::function<MachineMemory()> &read = machineMemory);

} // namespace sluice
