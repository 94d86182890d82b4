// SPDX-License-Identifier: Apache-2.0
// A GPU on the CPU, for tests: enough of CUDA's runtime to compile runtime/cuda with the host's compiler and to run its
// kernels, one block at a time, every thread of a block a coroutine that yields at barriers and shuffles. Streams do at
// once what they are told; memory is the host's. Launches are written as calls by Translate.cmake. It finds wrong index
// arithmetic, missing barriers that lead to stale reads in this order of threads, and reads beyond an arena under the
// address sanitizer; it says nothing of speed, and nothing of races between blocks.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define CUDART_VERSION 13000
#define __global__ static
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned x, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
/// Moves eight halves at a time, whatever they are.
struct __attribute__((may_alias, aligned(16))) uint4 {
  unsigned x, y, z, w;
};
struct __attribute__((may_alias, aligned(8))) uint2 {
  unsigned x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace emulator {
/// Of the running thread; set before it runs.
extern dim3 threadIndex, blockIndex, blockSize, gridSize;
/// Blocks run in the order of their numbers, or in that one backwards: what they compute may not depend on it.
extern bool lastBlockFirst;
/// Runs `body` for every thread of every block.
void launch(dim3 grid, dim3 block, const std::function<void()> &body);
/// Ends when all threads of the block have come here.
void barrier();
/// The value that the lane at `lane ^ distance` of this warp brought; ends when all of its threads have come here.
uint64_t exchange(uint64_t value, int distance);
/// What all lanes of this warp brought, a bit each.
uint64_t ballot(bool value);
} // namespace emulator

#define threadIdx emulator::threadIndex
#define blockIdx emulator::blockIndex
#define blockDim emulator::blockSize
#define gridDim emulator::gridSize

inline void __syncthreads() { emulator::barrier(); }
template <typename T> T __shfl_xor_sync(unsigned, T value, int distance) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = emulator::exchange(bits, distance);
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __ballot_sync(unsigned, bool value) { return static_cast<unsigned>(emulator::ballot(value)); }
inline void __syncwarp() { emulator::ballot(true); }
template <typename T> T __shfl_sync(unsigned mask, T value, int lane) {
  const unsigned own = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return __shfl_xor_sync(mask, value, static_cast<int>(own % 32) ^ lane);
}
inline void __threadfence() {}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
template <typename T> T __ldcg(const T *address) { return *address; }
template <typename T> T atomicAdd(T *address, T value) {
  const T before = *address;
  *address += value;
  return before;
}
inline unsigned long long atomicCAS(unsigned long long *address, unsigned long long expected,
                                    unsigned long long value) {
  const unsigned long long before = *address;
  *address = before == expected ? value : before;
  return before;
}
template <typename T> T min(T a, T b) { return b < a ? b : a; }
template <typename T> T max(T a, T b) { return a < b ? b : a; }

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
#define CUDART_CB
using cudaHostFn_t = void (*)(void *);
using cudaStream_t = struct EmulatedStream *;
using cudaEvent_t = struct EmulatedEvent *;
using cudaGraph_t = struct EmulatedGraph *;
using cudaGraphExec_t = struct EmulatedGraph *;
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[16];
  int major, minor, multiProcessorCount;
  cudaUUID_t uuid;
};
struct cudaFuncAttributes {};
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2,
                   cudaHostAllocDefault = 0, cudaHostAllocMapped = 2, cudaEventRecordExternal = 1;
constexpr int cudaStreamCaptureModeRelaxed = 2;

cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaFree(void *address);
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned);
inline cudaError_t cudaFreeHost(void *address) { return cudaFree(address); }
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
inline cudaError_t cudaMemset(void *to, int value, size_t bytes) { return memset(to, value, bytes), cudaSuccess; }
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *data);
inline cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  return *address = const_cast<void *>(symbol), cudaSuccess;
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError();
const char *cudaGetErrorName(cudaError_t error);
inline const char *cudaGetErrorString(cudaError_t) { return "an error of the emulator"; }
/// What the machine has, for tests of what it lacks.
inline int emulated(const char *name, int usual) {
  const char *value = getenv(name);
  return value ? atoi(value) : usual;
}
template <typename F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, F) {
  return emulated("EMULATED_CODE", 1) ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}
inline cudaError_t cudaDriverGetVersion(int *version) {
  return *version = emulated("EMULATED_DRIVER", CUDART_VERSION), cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int *count) { return *count = emulated("EMULATED_DEVICES", 1), cudaSuccess; }
/// Of this thread, as in CUDA.
inline thread_local int emulatedDevice = 0;
inline cudaError_t cudaSetDevice(int device) { return emulatedDevice = device, cudaSuccess; }
inline cudaError_t cudaGetDevice(int *device) { return *device = emulatedDevice, cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *to, int device) {
  const int capability = emulated("EMULATED_CAPABILITY", 90);
  return *to = {"emulator", capability / 10, capability % 10, 2, {{static_cast<char>(device)}}}, cudaSuccess;
}
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

// A captured call is kept and made again by every launch of its graph; the graph's order is the order of the calls.
inline cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int priority);
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
constexpr unsigned long long cudaGraphInstantiateFlagUseNodePriority = 8;
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
inline cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
/// The device is lost in the middle of the launch of this number (EMULATED_LOST); all that is asked of it later fails.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
/// With cudaEventRecordExternal, inside a capture: every launch of the graph records it, for streams outside.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

namespace emulator {
/// How often graphs had recorded the event that `stream` waited for last, outside of captures.
int replaysAwaited(cudaStream_t stream);

/// Whether a graph of streams with several priorities was instantiated without them: all of its kernels would have that
/// of the stream that launches it.
bool graphsLostPriorities();

/// Lets the clock that events read go on by so much.
void spend(int seconds);

/// Puts `work` off until somebody waits for it (EMULATED_EAGER=1: does it now), as late as CUDA may be; keeps it where
/// `stream` belongs to a capture.
void enqueue(cudaStream_t stream, std::function<void()> work);
/// HostCalls.cpp
void callHost(cudaHostFn_t call, void *data);

/// What `kernel<<<grid, block, shared, stream>>>(arguments...)` becomes; `body` calls the kernel.
template <typename Body> void start(dim3 grid, dim3 block, size_t, cudaStream_t stream, Body body) {
  enqueue(stream, [=] { launch(grid, block, body); });
}
} // namespace emulator
