// SPDX-License-Identifier: Apache-2.0
// Failures that kernels note in device memory, so that captured steps end with them as others do.
#pragma once

#include "runtime/cuda/Device.h"

#include <cstddef>
#include <cuda_runtime.h>

namespace sluice {

/// Copies a __device__ array whose first word is the node of the first failure, as an address of this process (0:
/// none), and clears it. False when there is none. Blocks; throws what checkCuda throws.
template <size_t words> bool takeNote(const unsigned long long (&symbol)[words], unsigned long long (&note)[words]) {
  void *address = nullptr;
  checkCuda(cudaGetSymbolAddress(&address, symbol), "cannot find what kernels noted");
  checkCuda(cudaMemcpy(note, address, sizeof note, cudaMemcpyDeviceToHost), "cannot read what kernels noted");
  if (note[0] == 0)
    return false;
  checkCuda(cudaMemset(address, 0, sizeof note), "cannot clear what kernels noted");
  return true;
}

} // namespace sluice
