// SPDX-License-Identifier: Apache-2.0
// The one GPU that a program runs on: its context, the libraries' handles, and how CUDA's errors become exceptions.
#pragma once

#include "runtime/Kernels.h"

#include <cuda_runtime.h>
#include <stdexcept>

struct cudnnContext;
struct cublasLtContext;

namespace sluice {

/// Throws DeviceError: "CUDA <what>: <the runtime's name and text of the error>".
void checkCuda(cudaError_t error, const char *what);

/// Created by the first call, which throws MemoryNotAvailable where there is no driver, no device, a device that the
/// program was not built for, or a cuDNN older than the one it was built with.
class Device {
public:
  static Device &get();

  cudaDeviceProp properties;
  cudnnContext *cudnn = nullptr;
  cublasLtContext *blas = nullptr;
  /// Bytes in use on the device before and after the libraries' handles were created; other processes' included.
  size_t usedByContext = 0, usedByLibraries = 0;

private:
  Device();
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
  virtual void build() = 0;
};
/// Puts the object onto the list of buildPrimitives(), which drops it when nobody else owns it.
void buildLater(const std::shared_ptr<Buildable> &object);

} // namespace sluice
