// SPDX-License-Identifier: Apache-2.0
// How the threads of a cross-entropy share the logits of a sample, and the logarithm of the sum of their exponentials.
#pragma once

#include "runtime/cuda/Held.h"
#include "runtime/cuda/Launch.h"
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
  /// Of which it asks for so many at once: 64 bytes of logits, where samples have many.
  template <typename X> static constexpr int ahead = Width > blockThreads ? 8 / static_cast<int>(sizeof(X)) : 1;
  static constexpr int perBlock = Width > blockThreads ? 1 : blockThreads / Width;
  static constexpr int block = Width > blockThreads ? Width : blockThreads;
  static constexpr int blocks = Width > blockThreads ? 2 : 1; ///< of a multiprocessor at least

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % Width; }
  static __device__ int64_t begin() { return Whole ? together * lane() : lane(); }
  /// Of the j-th of those that begin there.
  static __device__ int64_t classOf(int64_t begin, int j) { return begin + (Whole ? j : j * Width); }
  /// What a thread has asked for from `begin` on, as it is stored where that is 16 bytes.
  template <typename X> struct Asked {
    std::conditional_t<Whole, detail::HeldColumns<X, together>, detail::HeldFloats<X, together>> held;
    int count; ///< of them that are classes

    __device__ void load(const X *x, const Samples &samples, int64_t begin) {
      constexpr int64_t apart = Whole ? 1 : Width, most = together;
      count = static_cast<int>(min(most, max(int64_t(0), samples.classes - begin + apart - 1) / apart));
      if constexpr (Whole) {
        if (count > 0)
          held.template load<together>(x + begin, together);
      } else {
#pragma unroll
        for (int j = 0; j < together; ++j)
          if (j < count)
            held.values[j] = widened(x[classOf(begin, j) * samples.inner]);
      }
    }
    /// Negative infinity for what is no class.
    __device__ float at(int j) const { return j < count ? held.at(j) : -INFINITY; }
  };
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

/// 2^x by the GPU's own instruction, which the emulator has not.
__device__ inline float powerOfTwo(float x) {
#if defined(__CUDA_ARCH__)
  return detail::powerOfTwo(x);
#else
  return exponential(x * 0.693147181f);
#endif
}

/// e^(x - origin) for logits x. Those of 16 bits take two instructions, which round x by 2^-24 of it where the 16 bits
/// did by 2^-9 or 2^-12.
template <typename X> struct Exponentials {
  static constexpr bool quick = sizeof(X) == 2;
  static constexpr float perUnit = 1.44269502f; // log2(e)
  float origin;
  /// Of negative infinity, which nothing can be subtracted from: 0.
  __device__ explicit Exponentials(float origin)
      : origin(origin == -INFINITY ? 0
               : quick             ? origin * perUnit
                                   : origin) {}
  __device__ float of(float x) const {
    if constexpr (quick)
      return powerOfTwo(multiplyAdd(x, perUnit, -origin));
    else
      return exponential(x - origin);
  }
};

/// log(sum(exp(x))) as largest + log(sum), so that floats lose nothing in a difference to the largest.
struct LogSum {
  float largest, logarithm;
  __device__ double whole() const { return static_cast<double>(largest) + static_cast<double>(logarithm); }
};
/// e^(x - log(sum)) for logits x.
template <typename X> struct Probabilities {
  static constexpr bool quick = Exponentials<X>::quick;
  LogSum sum;
  float origin;
  __device__ explicit Probabilities(const LogSum &sum)
      : sum(sum), origin((sum.largest + sum.logarithm) * Exponentials<X>::perUnit) {}
  __device__ float of(float x) const {
    return quick ? powerOfTwo(multiplyAdd(x, Exponentials<X>::perUnit, -origin))
                 : exponential(x - sum.largest - sum.logarithm);
  }
};

/// In one pass over the logits. What is -infinity adds nothing.
template <typename Threads, typename X> __device__ LogSum logSum(const X *x, const Samples &samples, double *shared) {
  float largest = -INFINITY;
  double sum = 0;
  for (int64_t begin = Threads::begin(); begin < samples.classes; begin += Threads::template ahead<X> * Threads::step) {
    typename Threads::template Asked<X> asked[Threads::template ahead<X>];
#pragma unroll
    for (int u = 0; u < Threads::template ahead<X>; ++u)
      asked[u].load(x, samples, begin + u * Threads::step);
#pragma unroll
    for (int u = 0; u < Threads::template ahead<X>; ++u) {
      float values[Threads::together], before = largest, part = 0;
#pragma unroll
      for (int j = 0; j < Threads::together; ++j) {
        values[j] = asked[u].at(j);
        largest = fmaxf(values[j], largest); // of NaN and a number the number; the sum is NaN then
      }
      const Exponentials<X> exponentials(largest);
      if (largest > before)
        sum *= static_cast<double>(exponentials.of(before));
#pragma unroll
      for (float value : values)
        part += exponentials.of(value);
      sum += static_cast<double>(part);
    }
  }
  auto *floats = reinterpret_cast<float *>(shared);
  const float most = Threads::all(largest, floats, [](float a, float b) { return b > a ? b : a; });
  if (largest < most)
    sum *= static_cast<double>(Exponentials<X>(most).of(largest));
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
