// SPDX-License-Identifier: Apache-2.0
// How the threads of a cross-entropy share the logits of a sample, and the logarithm of the sum of their exponentials.
#pragma once

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/LossRules.h"

namespace sluice {

/// The threads of one sample: one where its logits are apart, a warp where they are not, longThreads where there are
/// many: then few samples are at work at once, and what is read twice is in the second-level cache the second time.
constexpr int longThreads = 512;
constexpr int64_t manyClasses = 4096;

/// Whole: a thread reads eight neighbours at once, which rows in multiples of them allow; else eight that are Width
/// apart.
template <int Width, bool Whole = false> struct SampleThreads {
  static constexpr int width = Width, together = 8;
  static constexpr int64_t step = together * Width; ///< between what a thread reads one after the other
  static constexpr int perBlock = Width > blockThreads ? 1 : blockThreads / Width;
  static constexpr int block = Width > blockThreads ? Width : blockThreads;

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % Width; }
  static __device__ int64_t begin() { return Whole ? together * lane() : lane(); }
  /// Of the j-th of those that begin there.
  static __device__ int64_t classOf(int64_t begin, int j) { return begin + (Whole ? j : j * Width); }
  /// Negative infinity for what is no class.
  template <typename X>
  static __device__ void load(float (&values)[together], const X *x, const Samples &samples, int64_t begin) {
    if constexpr (Whole)
      loadVector(values, x + begin);
#pragma unroll
    for (int j = 0; j < together; ++j) {
      const int64_t k = classOf(begin, j);
      if (!Whole || k >= samples.classes)
        values[j] = k < samples.classes ? widened(x[k * samples.inner]) : -INFINITY;
    }
  }
  /// The same places; 0 for what is no class.
  template <typename T>
  static __device__ void store(T *to, const Samples &samples, int64_t begin, const float (&values)[together]) {
    if constexpr (Whole)
      storeVector(to + begin, values);
    else
#pragma unroll
      for (int j = 0; j < together; ++j)
        if (const int64_t k = classOf(begin, j); k < samples.extent)
          sluice::store(to + k * samples.inner, values[j]);
  }
  static __device__ int64_t first() { return blockIdx.x * static_cast<int64_t>(perBlock) + threadIdx.x / Width; }

  /// Over all threads of the sample, in a fixed order, in each of them. `shared`: one value a warp.
  template <typename T, typename Over> static __device__ T all(T value, T *shared, const Over &over) {
    if constexpr (Width > 1)
      for (int distance = 16; distance > 0; distance /= 2)
        value = over(value, __shfl_xor_sync(0xffffffffu, value, distance));
    if constexpr (Width > 32) {
      __syncthreads();
      if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
      __syncthreads();
      value = shared[0];
      for (int warp = 1; warp < Width / 32; ++warp)
        value = over(value, shared[warp]);
    }
    return value;
  }
  static __device__ double sum(double value, double *shared) {
    return all(value, shared, [](double a, double b) { return a + b; });
  }
};

/// log(sum(exp(x))) as largest + log(sum), so that floats lose nothing in a difference to the largest.
struct LogSum {
  float largest, logarithm;
  __device__ double whole() const { return static_cast<double>(largest) + static_cast<double>(logarithm); }
  __device__ float probability(float x) const { return exponential(x - largest - logarithm); }
};

/// In one pass over the logits. What is -infinity adds nothing.
template <typename Threads, typename X> __device__ LogSum logSum(const X *x, const Samples &samples, double *shared) {
  float largest = -INFINITY;
  double sum = 0;
  for (int64_t begin = Threads::begin(); begin < samples.classes; begin += Threads::step) {
    float values[Threads::together], before = largest, part = 0;
    Threads::load(values, x, samples, begin);
    for (float value : values)
      largest = value > largest ? value : largest;
    if (largest > before)
      sum *= static_cast<double>(exponential(before - largest));
    for (float value : values)
      part += value == -INFINITY ? 0 : exponential(value - largest);
    sum += static_cast<double>(part);
  }
  auto *floats = reinterpret_cast<float *>(shared);
  const float most = Threads::all(largest, floats, [](float a, float b) { return b > a ? b : a; });
  if (largest < most)
    sum *= static_cast<double>(exponential(largest - most));
  return {most, static_cast<float>(log(Threads::sum(sum, shared)))};
}

template <typename Threads, typename X>
__device__ double sumOfLogits(const X *x, const Samples &samples, double *shared) {
  double sum = 0;
  for (int64_t k = Threads::lane(); k < samples.classes; k += Threads::width)
    sum += static_cast<double>(widened(x[k * samples.inner]));
  return Threads::sum(sum, shared);
}

} // namespace sluice
