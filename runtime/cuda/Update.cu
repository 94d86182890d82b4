// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, and the step's hyperparameters in device memory, from which they and dropout read: a captured
// graph sees what a step changed.
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

namespace {

// No constructor runs for device variables; storeState() writes it before anything reads it.
__device__ alignas(DeviceState) unsigned char stateBytes[sizeof(DeviceState)];

__global__ void storeState(DeviceState state) { *reinterpret_cast<DeviceState *>(stateBytes) = state; }

__global__ void sgdKernel(float *w, const float *dw, float *m, int64_t count, const DeviceState *state) {
  const SgdFactors factors = state->sgd;
  const bool plain = !m || factors.momentum == 0;
  SLUICE_GRID_LOOP(i, count) {
    if (plain)
      sgdElement(w[i], dw[i], factors);
    else
      sgdElement(w[i], dw[i], m[i], factors);
  }
}

__global__ void adamKernel(float *w, const float *dw, float *m, float *v, int64_t count, bool decoupled,
                           const DeviceState *state) {
  const AdamFactors factors = decoupled ? state->adamw : state->adam;
  SLUICE_GRID_LOOP(i, count)
  adamElement(w[i], dw[i], m[i], v[i], factors);
}

} // namespace

void storeDeviceState(cudaStream_t stream, const DeviceState &state) {
  storeState<<<1, 1, 0, stream>>>(state);
  checkCuda(cudaPeekAtLastError(), "cannot store the step's state");
}

const DeviceState *deviceStateAddress() {
  static void *const address = [] {
    void *found = nullptr;
    checkCuda(cudaGetSymbolAddress(&found, stateBytes), "cannot find the step's state");
    return found;
  }();
  return static_cast<const DeviceState *>(address);
}

bool deviceCodeRuns() {
  cudaFuncAttributes attributes;
  const bool runs = cudaFuncGetAttributes(&attributes, storeState) == cudaSuccess;
  cudaGetLastError();
  return runs;
}

std::string deviceCodeArchitectures() { return SLUICE_CUDA_ARCHITECTURES; }

void updateSgd(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &momentum, const char *node) {
  checkUpdate(node, w, dw);
  checkUpdate(node, w, momentum);
  float *pw = stream.data<float>(w), *pm = stream.data<float>(momentum);
  const float *pdw = stream.data<float>(dw);
  const int64_t count = w.shape.elements();
  const DeviceState *state = deviceState(stream);
  stream.launch(node, "update_sgd", [&] {
    sgdKernel<<<blocksFor(count, blockThreads), blockThreads, 0, native(stream)>>>(pw, pdw, pm, count, state);
  });
}

void updateAdam(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &expAvg, const Tensor &expAvgSq,
                WeightDecay decay, const char *node) {
  const bool decoupled = decay == WeightDecay::Decoupled;
  for (const Tensor *other : {&dw, &expAvg, &expAvgSq})
    checkUpdate(node, w, *other);
  float *pw = stream.data<float>(w), *pm = stream.data<float>(expAvg), *pv = stream.data<float>(expAvgSq);
  const float *pdw = stream.data<float>(dw);
  const int64_t count = w.shape.elements();
  const DeviceState *state = deviceState(stream);
  stream.launch(node, decoupled ? "update_adamw" : "update_adam", [&] {
    adamKernel<<<blocksFor(count, blockThreads), blockThreads, 0, native(stream)>>>(pw, pdw, pm, pv, count, decoupled,
                                                                                    state);
  });
}

} // namespace sluice
