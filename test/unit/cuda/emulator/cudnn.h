// SPDX-License-Identifier: Apache-2.0
// The part of cuDNN that runtime/cuda uses beside its frontend.
#pragma once

#include "cuda_runtime.h"

#define CUDNN_VERSION 91300
enum cudnnStatus_t { CUDNN_STATUS_SUCCESS };
using cudnnHandle_t = struct cudnnContext *;

namespace emulator {
inline cudaStream_t cudnnStream = nullptr;
}
inline size_t cudnnGetVersion() { return static_cast<size_t>(emulated("EMULATED_CUDNN", CUDNN_VERSION)); }
inline const char *cudnnGetErrorString(cudnnStatus_t) { return ""; }
inline cudnnStatus_t cudnnCreate(cudnnHandle_t *) { return CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  return emulator::cudnnStream = stream, CUDNN_STATUS_SUCCESS;
}
