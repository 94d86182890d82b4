// SPDX-License-Identifier: Apache-2.0
// The one GPU that a program runs on: its context, the libraries' handles, and how CUDA's errors become exceptions.
#pragma once

#include "runtime/Kernels.h"

#include <cuda_runtime.h>
#include <stdexcept>
#include <thread>

struct cudnnContext;
struct cublasLtContext;

namespace sluice {

/// Before the device is used: which one of those that this process sees it takes, the first one otherwise; where they
/// are fewer than that, it begins again with the first.
void chooseDevice(int number);

/// Throws DeviceError: "CUDA <what>: <the runtime's name and text of the error>".
void checkCuda(cudaError_t error, const char *what);

/// Created by the first call, which throws MemoryNotAvailable where there is no driver, no device, a device that the
/// program was not built for, or a cuDNN of another major version or older than 9.8.
class Device {
public:
  static Device &get();

  cudaDeviceProp properties;
  cudnnContext *cudnn = nullptr; ///< that kernels run with
  cublasLtContext *blas = nullptr;
  /// Bytes in use on the device before and after the libraries' handles were created; other processes' included.
  size_t usedByContext = 0, usedByLibraries = 0;

  /// That this thread builds plans with: threads must not share one. `cudnn` for the thread that made the device; the
  /// others' last as long as the process, as plans may refer to them. Throws MemoryNotAvailable.
  cudnnContext *builder();

private:
  Device();
  const std::thread::id maker = std::this_thread::get_id();
};

/// What setKernelPolicy() said.
size_t workspaceLimit();
/// Bytes that a kernel's algorithm may have.
inline int64_t grantedWorkspace(const Algorithm &algorithm) {
  return algorithm.workspace > 0 ? algorithm.workspace : static_cast<int64_t>(workspaceLimit());
}
Precision precision();

/// Says that kernels of ours, which are slower, stand in for a vendor's on this node, in words after its name; part of
/// memoryNotes().
void noteFallback(const std::string &node, const std::string &what);

/// Compiles what a kernel object only described; called by buildPrimitives(), or by the first call of a kernel that
/// buildPrimitives() never saw.
struct Buildable {
  virtual ~Buildable() = default;
  /// In any thread, beside the other objects' build(); again without effect.
  virtual void build() = 0;
  /// What is to be said of what was built, by noteFallback(); once, in the order of buildLater().
  virtual void report() {}
};
/// Puts the object onto the list of buildPrimitives(), which drops it when nobody else owns it. From any thread.
void buildLater(const std::shared_ptr<Buildable> &object);

} // namespace sluice
