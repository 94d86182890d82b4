// SPDX-License-Identifier: Apache-2.0
// A cudaEvent_t and its owner.
#pragma once

#include "runtime/cuda/Device.h"

namespace sluice {

class CudaEvent {
public:
  explicit CudaEvent(unsigned flags) { checkCuda(cudaEventCreateWithFlags(&event, flags), "cannot create an event"); }
  ~CudaEvent() {
    if (event)
      cudaEventDestroy(event);
  }
  CudaEvent(CudaEvent &&other) noexcept : event(other.event) { other.event = nullptr; }
  CudaEvent &operator=(CudaEvent &&) = delete;
  cudaEvent_t event = nullptr;
};

} // namespace sluice
