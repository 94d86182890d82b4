// SPDX-License-Identifier: Apache-2.0
// What the machine and this process's control group have left. Systems that do not say are believed to have enough.
#include "runtime/FreeMemory.h"

#include "runtime/Stream.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <thread>

namespace sluice {

/// The memory limit of this process's control group, which is how containers set one; the largest number without any.
static size_t groupLimit() {
  size_t limit;
  for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (std::ifstream(path) >> limit)
      return limit;
  return SIZE_MAX;
}

MachineMemory machineMemory() {
  MachineMemory memory{SIZE_MAX, SIZE_MAX};
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  size_t kibibytes;
  while (info >> key >> kibibytes) {
    std::getline(info, unit);
    if (key == "MemTotal:")
      memory.total = kibibytes * 1024;
    if (key == "MemAvailable:")
      memory.available = kibibytes * 1024;
  }
  return memory;
}

void requireFreeMemory(size_t bytes, const std::string &what, const std::function<MachineMemory()> &read) {
  if (const size_t limit = groupLimit(); limit < bytes)
    throw MemoryNotAvailable(what + " " + std::to_string(bytes) +
                             " bytes of memory, but this process's control group allows " + std::to_string(limit));
  constexpr size_t least = size_t(16) << 20; // what is less comes and goes on any machine
  constexpr int looks = 50;
  size_t before = 0;
  for (int i = 0; i <= looks; ++i) {
    const MachineMemory memory = read();
    if (memory.available >= bytes)
      return;
    if (memory.total < bytes || (i > 0 && memory.available < before + least))
      throw MemoryNotAvailable(what + " " + std::to_string(bytes) + " bytes of memory, but this machine has only " +
                               std::to_string(memory.available) + " available");
    before = memory.available;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::fprintf(stderr, "note: %s %zu bytes of memory; this machine has %zu available, still growing\n", what.c_str(),
               bytes, before);
}

} // namespace sluice
