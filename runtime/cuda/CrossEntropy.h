// SPDX-License-Identifier: Apache-2.0
// One sample of a cross-entropy, by the threads that share it: its loss and the gradients by its logits.
#pragma once

#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/SampleThreads.h"

namespace sluice {

__device__ inline double notANumber() { return nan(""); }

/// A sample as its loss sees it: what it is compared with, and the logits of these classes, read at once.
template <typename X> struct Compared {
  MixedClasses mixed;
  float own[2];

  __device__ Compared(const Samples &samples, const MixedClasses &mixed, const X *line) : mixed(mixed) {
    for (int i = 0; i < 2; ++i)
      own[i] = exists(i, samples) ? widened(line[mixed.classes[i] * samples.inner]) : 0;
  }
  __device__ bool exists(int i, const Samples &samples) const {
    return mixed.classes[i] >= 0 && mixed.classes[i] < samples.classes;
  }
  /// `all`: the logarithm of the sum of its exponentials, `total`: the sum of its logits where there is smoothing.
  __device__ double loss(const Samples &samples, const SmoothedTarget &smoothed, double all, double total) const {
    double sum = 0;
    for (int i = 0; i < 2; ++i)
      if (mixed.weights[i] != 0)
        sum += exists(i, samples) ? mixed.weights[i] * crossEntropy(all, own[i], total, samples.classes, smoothed)
                                  : notANumber();
    return sum;
  }
};

__device__ inline void noteClass(IdNote note, int64_t own, int64_t place, const Samples &samples, int64_t ignoreIndex) {
  if ((own < 0 || own >= samples.classes) && own != ignoreIndex)
    note(own, place, samples.classes);
}

/// The gradients of what a thread has asked for; 0 for what is no class. Nearly all are of classes that no target
/// names.
template <typename Threads, typename X>
__device__ inline void slopesOf(float (&values)[Threads::together], const typename Threads::template Asked<X> &asked,
                                const Probabilities<X> &probabilities, const MixedSlope &slope, int64_t begin) {
#pragma unroll
  for (int j = 0; j < Threads::together; ++j)
    values[j] = j < asked.count ? slope.elsewhere(probabilities.of(asked.at(j))) : 0;
  for (const int64_t named : slope.classes)
    if (named >= begin && named <= Threads::classOf(begin, Threads::together - 1))
#pragma unroll
      for (int j = 0; j < Threads::together; ++j)
        if (Threads::classOf(begin, j) == named && j < asked.count)
          values[j] = slope.of(probabilities.of(asked.at(j)), named);
}

/// The gradient of one sample. dx may be x: a thread writes where it has read.
template <typename Threads, typename X, typename T>
__device__ inline void differentiate(const X *x, T *dx, const Samples &samples, const LogSum &sum,
                                     const MixedSlope &slope) {
  const Probabilities<X> probabilities(sum);
  for (int64_t begin = Threads::begin(); begin < samples.extent; begin += Threads::template ahead<X> * Threads::step) {
    typename Threads::template Asked<X> asked[Threads::template ahead<X>];
#pragma unroll
    for (int u = 0; u < Threads::template ahead<X>; ++u)
      asked[u].load(x, samples, begin + u * Threads::step);
#pragma unroll
    for (int u = 0; u < Threads::template ahead<X>; ++u) {
      const int64_t from = begin + u * Threads::step;
      float values[Threads::together];
      slopesOf<Threads, X>(values, asked[u], probabilities, slope, from);
      if (from < samples.extent)
        Threads::store(dx, samples, from, values);
    }
  }
}

} // namespace sluice
