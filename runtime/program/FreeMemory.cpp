// SPDX-License-Identifier: Apache-2.0
// What the machine and this process's control group have left. Systems that do not say are believed to have enough.
#include "runtime/program/FreeMemory.h"

#include "runtime/Stream.h"

#include <fstream>

namespace sluice {

/// The memory limit of this process's control group, which is how containers set one; the largest number without any.
static size_t groupLimit() {
  size_t limit;
  for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (std::ifstream(path) >> limit)
      return limit;
  return SIZE_MAX;
}

void requireFreeMemory(size_t bytes, const std::string &what) {
  if (const size_t limit = groupLimit(); limit < bytes)
    throw MemoryNotAvailable(what + " " + std::to_string(bytes) +
                             " bytes of memory, but this process's control group allows " + std::to_string(limit));
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  size_t kibibytes;
  while (info >> key >> kibibytes) {
    std::getline(info, unit);
    if (key == "MemAvailable:" && kibibytes * 1024 < bytes)
      throw MemoryNotAvailable(what + " " + std::to_string(bytes) + " bytes of memory, but this machine has only " +
                               std::to_string(kibibytes * 1024) + " available");
  }
}

} // namespace sluice
