// SPDX-License-Identifier: Apache-2.0
// Arenas of the cuda runtime. What is free is asked first, so that the error has both numbers.
#include "runtime/cuda/Memory.h"

#include "runtime/FreeMemory.h"
#include "runtime/cuda/Device.h"

#include <cstring>
#include <sys/resource.h>
#include <vector>

namespace sluice {

namespace {

constexpr unsigned char canary = 0xc5;

/// What the arena leaves free: CUDA loads a kernel when it is launched first, and cuDNN's engines are kernels of some
/// megabytes each. An estimate, until a GPU says more.
constexpr size_t loadedLater = size_t(128) << 20;

[[noreturn]] void deviceTooSmall(size_t bytes) {
  const Device &device = Device::get();
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  throw MemoryNotAvailable("CUDA device memory is too small: the device arena needs " + std::to_string(bytes) +
                           " bytes and the kernels loaded later up to " + std::to_string(loadedLater) + ", " +
                           device.properties.name + " has " + std::to_string(free) + " of " + std::to_string(total) +
                           " bytes free (contexts take " + std::to_string(device.usedByContext) +
                           "); compile with a smaller --memory-budget or end other programs on it");
}

char *allocateDevice(size_t bytes) {
  size_t free = 0, total = 0;
  checkCuda(cudaMemGetInfo(&free, &total), "cannot read the device's memory");
  void *address = nullptr;
  if (free < loadedLater || bytes > free - loadedLater || cudaMalloc(&address, bytes) != cudaSuccess) {
    cudaGetLastError(); // the failed allocation is reported here and nowhere else
    deviceTooSmall(bytes);
  }
  return static_cast<char *>(address);
}

/// What the system lets this process lock.
std::string lockable() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "any number of bytes";
  return std::to_string(limit.rlim_cur) + " bytes";
}

char *allocateHost(size_t bytes) {
  requireFreeMemory(bytes, "CUDA host memory is too small: the host arena needs");
  void *address = nullptr;
  // Mapped: kernels of copies that pack use the same address.
  if (const cudaError_t error = cudaHostAlloc(&address, bytes, cudaHostAllocMapped); error != cudaSuccess) {
    cudaGetLastError();
    throw MemoryNotAvailable("CUDA cannot lock host memory: the host arena needs " + std::to_string(bytes) +
                             " bytes, the driver refuses them (" + cudaGetErrorName(error) +
                             "), this process may lock " + lockable() +
                             "; compile with a smaller --host-budget or raise the limit (ulimit -l)");
  }
  return static_cast<char *>(address);
}

} // namespace

Arena::Arena(Space space, size_t bytes, bool poisoned) : space(space), bytes(bytes), guard(poisoned ? 4096 : 0) {
  const size_t whole = std::max<size_t>(1, bytes + 2 * guard);
  allocation = space == Space::Device ? allocateDevice(whole) : allocateHost(whole);
  data = allocation + guard;
  if (!poisoned) {
    checkCuda(space == Space::Device ? cudaMemset(allocation, 0, whole) : cudaSuccess, "cannot clear the arena");
    return;
  }
  const cudaError_t filled = space == Space::Device ? cudaMemset(allocation, canary, whole) : cudaSuccess;
  checkCuda(filled == cudaSuccess && space == Space::Device ? cudaMemset(data, 0xff, bytes) : filled,
            "cannot fill the arena");
  if (space == Space::Host) {
    memset(allocation, canary, whole);
    memset(data, 0xff, bytes);
  }
}

Arena::~Arena() { space == Space::Device ? cudaFree(allocation) : cudaFreeHost(allocation); }

void Arena::checkGuards() const {
  std::vector<unsigned char> zone(guard);
  for (const char *begin : {allocation, data + bytes}) {
    checkCuda(cudaMemcpy(zone.data(), begin, guard, cudaMemcpyDefault), "cannot read a guard zone");
    for (unsigned char byte : zone)
      if (byte != canary)
        throw std::runtime_error(
            std::string("something wrote ") + (begin == allocation ? "before" : "past the end of") + " the " +
            (space == Space::Device ? "device" : "host") + " arena of " + std::to_string(bytes) + " bytes");
  }
}

} // namespace sluice
