// SPDX-License-Identifier: Apache-2.0
// What our own kernels need around a launch: the native stream, the step's state in device memory, the shape of a grid.
// Included by generated programs through runtime/Fused.h.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/kernels/UpdateRules.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <string>

namespace sluice {

/// StepState as kernels read it, with what follows from it for optimizers; checkGradients() changes `update`.
struct DeviceState {
  uint64_t seed, draw;
  float labelSmoothing, mixShare;
  int64_t mixBatch;
  int64_t batch, unit, units; ///< of the rank, of all ranks, and how many these have
  float unitWeight, meanFactor;
  UpdateFactors update;

  explicit DeviceState(const StepState &state)
      : seed(state.seed), draw(static_cast<uint64_t>(state.draw())), labelSmoothing(state.labelSmoothing),
        mixShare(state.mixShare), mixBatch(state.mixBatch), batch(state.batch), unit(state.unit()),
        units(state.units()), unitWeight(state.unitWeight), meanFactor(state.meanFactor), update(state) {}
};

inline cudaStream_t native(const Stream &stream) { return static_cast<cudaStream_t>(stream.native()); }

/// The device's copy of session.state, for kernels on the compute stream. Brought up to date on that stream first,
/// unless a graph is being captured, which is launched after such an update.
const DeviceState *deviceState(Stream &stream);

/// Writes the copy; the value travels as a kernel argument, so that no staging memory is needed.
void storeDeviceState(cudaStream_t stream, const DeviceState &state);
DeviceState *deviceStateAddress();

/// What gradients are to be multiplied by, as the check of a scaled loss's gradients found it in this step. Reads the
/// device: no step may be running.
float gradientFactor();

/// Whether this device can run the kernels that were compiled, and the architectures they were compiled for.
bool deviceCodeRuns();
std::string deviceCodeArchitectures();

/// Blocks for `count` tasks of which a block does `perBlock`; kernels stride over the grid when there are more.
inline unsigned blocksFor(int64_t count, int64_t perBlock) {
  const int64_t blocks = (count + perBlock - 1) / std::max<int64_t>(1, perBlock);
  return static_cast<unsigned>(std::min<int64_t>(std::max<int64_t>(1, blocks), int64_t(1) << 20));
}

/// Threads for pixels of NHWC images: x walks channels, y pixels.
struct PixelGrid {
  dim3 block, grid;
  PixelGrid(int64_t pixels, int64_t channels) {
    unsigned across = 1;
    while (across < 128 && across < channels)
      across *= 2;
    block = dim3(across, 256 / across);
    grid = dim3(blocksFor(pixels, block.y));
  }
};

#if defined(__CUDACC__)

constexpr int blockThreads = 256;

/// for (i : gridStride(count)): all i of this thread.
#define SLUICE_GRID_LOOP(i, count)                                                                                     \
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < (count);                           \
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)

/// All pixels of this thread's row of a PixelGrid.
#define SLUICE_PIXEL_LOOP(pixel, count)                                                                                \
  for (int64_t pixel = blockIdx.x * static_cast<int64_t>(blockDim.y) + threadIdx.y; pixel < (count);                   \
       pixel += static_cast<int64_t>(gridDim.x) * blockDim.y)

/// The sum over a warp, in a fixed order, in every lane.
template <typename T> __device__ inline T warpSum(T value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}
__device__ inline float warpMaximum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

/// The sum over a block of blockThreads threads, in a fixed order, in thread 0. `shared` holds one value a warp.
template <typename T> __device__ inline T blockSum(T value, T *shared) {
  value = warpSum(value);
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  __syncthreads();
  if (thread % 32 == 0)
    shared[thread / 32] = value;
  __syncthreads();
  T total = 0;
  if (thread == 0)
    for (int warp = 0; warp < blockThreads / 32; ++warp)
      total += shared[warp];
  return total;
}

#endif

} // namespace sluice
