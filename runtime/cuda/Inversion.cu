// SPDX-License-Identifier: Apache-2.0
// Rebuilds what a BatchNorm read from what the leaky ReLU after it wrote. A block moves one guarded channel away or
// back and finds its slot by counting the guarded ones before it; few channels are. Everything else is one pass over
// NHWC pixels, the channel's numbers in registers. What is rebuilt by subtraction is compared with what it was
// subtracted from: one pair of maxima a block, then one thread over the pairs.
#include "runtime/Codec.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Note.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/CodecRules.h"
#include "runtime/kernels/InversionRules.h"

namespace sluice {

namespace {

/// Of the first failure: its kernel's node as an address of this process (0: none); guarded and all channels and slots,
/// or the bits of both maxima, those of the sum with its type above them, and no slots.
__device__ unsigned long long failed[noteWords];

__device__ inline void fail(unsigned long long node, unsigned long long a, unsigned long long b,
                            unsigned long long slots) {
  if (atomicCAS(&failed[0], 0ull, node) == 0) {
    failed[1] = a;
    failed[2] = b;
    failed[3] = slots;
  }
}

/// Guarded channels among the first `count`, in thread 0.
__device__ inline int countGuarded(const float *scale, const float *bias, int64_t count,
                                   const InversionLimits &limits) {
  __shared__ int shared[blockThreads / 32];
  int mine = 0;
  for (int64_t c = threadIdx.x; c < count; c += blockThreads)
    mine += isGuarded(scale[c], bias[c], limits);
  return blockSum(mine, shared);
}

/// A BatchNormInversion of these vectors.
struct Inversion {
  const float *scale, *bias;
  int64_t channels, pixels, slots;
  float alpha;
  DataType from;
};

/// Block c moves channel c if it is guarded.
template <typename T> __global__ void moveGuarded(Inversion v, T *x, T *saved, bool back, unsigned long long node) {
  __shared__ int64_t slot;
  const int64_t channel = blockIdx.x, channels = v.channels, pixels = v.pixels, slots = v.slots;
  const InversionLimits limits(v.from);
  if (!isGuarded(v.scale[channel], v.bias[channel], limits))
    return;
  const int before = countGuarded(v.scale, v.bias, channel, limits);
  if (threadIdx.x == 0)
    slot = before;
  __syncthreads();
  if (slot >= slots) {
    const int all = slot == slots ? countGuarded(v.scale, v.bias, channels, limits) : 0; // one block says it
    if (slot == slots && threadIdx.x == 0)
      fail(node, static_cast<unsigned long long>(all), static_cast<unsigned long long>(channels),
           static_cast<unsigned long long>(slots));
    return;
  }
  for (int64_t p = threadIdx.x; p < pixels; p += blockThreads)
    if (back)
      x[p * channels + channel] = saved[slot * pixels + p];
    else
      saved[slot * pixels + p] = x[p * channels + channel];
}

template <typename T>
__global__ void invertKernel(Inversion v, const T *z, const float *mean, const float *rstd, T *x) {
  const int64_t channels = v.channels;
  for (int64_t c = threadIdx.x; c < channels; c += blockDim.x) {
    const float m = mean[c], r = rstd[c], g = v.scale[c], b = v.bias[c];
    SLUICE_PIXEL_LOOP(p, v.pixels) {
      const float value = widened(z[p * channels + c]), u = value > 0 ? value : value / v.alpha;
      store(x + p * channels + c, (u - b) / g / r + m);
    }
  }
}

template <typename T> __global__ void maximaKernel(const T *x, const T *y, int64_t elements, float *maxima) {
  __shared__ float shared[2][blockThreads / 32];
  float largest[2] = {0, 0};
  SLUICE_GRID_LOOP(i, elements) {
    largest[0] = fmaxf(largest[0], fabsf(widened(x[i]))); // leaves NaN out
    largest[1] = fmaxf(largest[1], fabsf(widened(y[i])));
  }
  for (int k = 0; k < 2; ++k) {
    largest[k] = warpMaximum(largest[k]);
    if (threadIdx.x % 32 == 0)
      shared[k][threadIdx.x / 32] = largest[k];
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    float most = 0;
    for (int warp = 0; warp < blockThreads / 32; ++warp)
      most = fmaxf(most, shared[threadIdx.x][warp]);
    maxima[2 * blockIdx.x + threadIdx.x] = most;
  }
}

__global__ void cancellationKernel(const float *maxima, int64_t parts, DataType sum, unsigned long long node) {
  float x = 0, y = 0;
  for (int64_t part = threadIdx.x; part < parts; part += 32) {
    x = fmaxf(x, maxima[2 * part]);
    y = fmaxf(y, maxima[2 * part + 1]);
  }
  x = warpMaximum(x), y = warpMaximum(y);
  if (threadIdx.x == 0 && cancelled(x, y, sum))
    fail(node, bitsOfFloat(x), static_cast<unsigned long long>(sum) << 32 | bitsOfFloat(y), 0);
}

unsigned long long addressOf(const char *node) { return reinterpret_cast<uintptr_t>(node); }

} // namespace

/// More channels were guarded than the plan has slots for, or a difference lost its digits.
[[noreturn]] static void raiseFailed(const unsigned long long *note) {
  if (note[3] > 0)
    throw MemoryNotAvailable(tooManyGuarded(notedNode(note), static_cast<int64_t>(note[1]),
                                            static_cast<int64_t>(note[2]), static_cast<int64_t>(note[3])));
  throw ValueNotStorable(digitsLost(notedNode(note), floatOfBits(static_cast<uint32_t>(note[1])),
                                    floatOfBits(static_cast<uint32_t>(note[2])), static_cast<DataType>(note[2] >> 32)));
}

BatchNormInversion::BatchNormInversion(Node node, Shape x, int64_t slots, float alpha, DataType from)
    : Kernel(node), channels(x[1]), pixels(x.elements() / std::max<int64_t>(1, x[1])), slots(slots), alpha(alpha),
      from(from) {
  if (x.rank < 2)
    throw std::invalid_argument(std::string("inversion of '") + node + "' over rank " + std::to_string(x.rank) +
                                ", expected at least 2");
  watchNotes(failed, raiseFailed);
}

void BatchNormInversion::save(Stream &stream, const Tensor &x, const Tensor &scale, const Tensor &bias,
                              const Tensor &saved) const {
  void *px = stream.address(x), *pSaved = stream.address(saved);
  const Inversion inversion{
      stream.data<const float>(scale), stream.data<const float>(bias), channels, pixels, slots, alpha, from};
  stream.launch(node.as(OpRole::Rebuild), "save_guarded_channels", [&] {
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = moveGuarded<T>;
      kernel<<<static_cast<unsigned>(channels), blockThreads, 0, native(stream)>>>(
          inversion, static_cast<T *>(px), static_cast<T *>(pSaved), false, addressOf(node));
    });
  });
}

void BatchNormInversion::invert(Stream &stream, const Tensor &z, const Tensor &mean, const Tensor &rstd,
                                const Tensor &scale, const Tensor &bias, const Tensor &saved, const Tensor &x) const {
  const void *pz = stream.address(z);
  void *px = stream.address(x), *pSaved = stream.address(saved);
  const auto *pMean = stream.data<const float>(mean), *pRstd = stream.data<const float>(rstd);
  const Inversion inversion{
      stream.data<const float>(scale), stream.data<const float>(bias), channels, pixels, slots, alpha, from};
  stream.launch(node.as(OpRole::Rebuild), "invert_batch_norm_leaky_relu", [&] {
    const PixelGrid shape(pixels, channels);
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      T *to = static_cast<T *>(px);
      const auto invert = invertKernel<T>;
      invert<<<shape.grid, shape.block, 0, native(stream)>>>(inversion, static_cast<const T *>(pz), pMean, pRstd, to);
      const auto move = moveGuarded<T>;
      move<<<static_cast<unsigned>(channels), blockThreads, 0, native(stream)>>>(
          inversion, to, static_cast<T *>(pSaved), true, addressOf(node));
    });
  });
}

CancellationCheck::CancellationCheck(Node node, int64_t elements, int64_t parts)
    : Kernel(node), elements(elements), parts(parts) {
  watchNotes(failed, raiseFailed);
}

void CancellationCheck::run(Stream &stream, const Tensor &x, const Tensor &y, const Tensor &maxima) const {
  const void *px = stream.address(x), *py = stream.address(y);
  auto *pMaxima = stream.data<float>(maxima);
  stream.launch(node.as(OpRole::Rebuild), "check_cancellation", [&] {
    forStored(y.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = maximaKernel<T>;
      kernel<<<static_cast<unsigned>(parts), blockThreads, 0, native(stream)>>>(
          static_cast<const T *>(px), static_cast<const T *>(py), elements, pMaxima);
    });
    cancellationKernel<<<1, 32, 0, native(stream)>>>(pMaxima, parts, y.type, addressOf(node));
  });
}

} // namespace sluice
