// SPDX-License-Identifier: Apache-2.0
// How kernels load and store activations: float, bfloat16 or half in memory, float in registers. Vectors are 16 bytes
// of what is stored.
#pragma once

#include "runtime/Tensor.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#endif
#include <cuda_runtime.h>

namespace sluice {

namespace detail {

/// As loadVector() and storeVector() want what they take at once.
inline bool aligned(const void *address) { return reinterpret_cast<size_t>(address) % 16 == 0; }

} // namespace detail

#if defined(__CUDACC__)

__device__ inline void store(float *to, float x) { *to = x; }
__device__ inline void store(BFloat16 *to, float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
  *to = bfloat16Of(x);
#endif
}

__device__ inline void store(Float16 *to, float x) { *to = float16Of(x); }

/// Two neighbours, the first in the lower half.
template <typename Half> struct Pair;
template <> struct Pair<BFloat16> {
  __device__ static uint32_t of(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
#else
    return bfloat16Of(first).bits | uint32_t(bfloat16Of(second).bits) << 16;
#endif
  }
  __device__ static float first(uint32_t pair) { return floatOfBits(pair << 16); }
  __device__ static float second(uint32_t pair) { return floatOfBits(pair & 0xffff0000u); }
};
template <> struct Pair<Float16> {
  __device__ static uint32_t of(float first, float second) {
    return float16Of(first).bits | uint32_t(float16Of(second).bits) << 16;
  }
  __device__ static float first(uint32_t pair) { return widened(Float16{static_cast<uint16_t>(pair)}); }
  __device__ static float second(uint32_t pair) { return widened(Float16{static_cast<uint16_t>(pair >> 16)}); }
};

/// Count neighbours, of which memory holds at least that many, at a multiple of their size (of 16 bytes when they are
/// more).
template <int Count> __device__ inline void loadVector(float (&to)[Count], const float *from) {
  if constexpr (Count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const float4 four = *reinterpret_cast<const float4 *>(from + i);
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  } else {
    for (int i = 0; i < Count; ++i)
      to[i] = from[i];
  }
}
template <int Count, typename Half> __device__ inline void loadVector(float (&to)[Count], const Half *from) {
  if constexpr (Count == 8) {
    const uint4 eight = *reinterpret_cast<const uint4 *>(from);
    const uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[2 * i] = Pair<Half>::first(pairs[i]), to[2 * i + 1] = Pair<Half>::second(pairs[i]);
  } else if constexpr (Count == 4) {
    const uint2 four = *reinterpret_cast<const uint2 *>(from);
    to[0] = Pair<Half>::first(four.x), to[1] = Pair<Half>::second(four.x);
    to[2] = Pair<Half>::first(four.y), to[3] = Pair<Half>::second(four.y);
  } else {
    for (int i = 0; i < Count; ++i)
      to[i] = widened(from[i]);
  }
}
template <int Count> __device__ inline void storeVector(float *to, const float (&from)[Count]) {
  if constexpr (Count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += 4)
      *reinterpret_cast<float4 *>(to + i) = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  } else {
    for (int i = 0; i < Count; ++i)
      to[i] = from[i];
  }
}
template <int Count, typename Half> __device__ inline void storeVector(Half *to, const float (&from)[Count]) {
  if constexpr (Count == 8) {
    *reinterpret_cast<uint4 *>(to) = make_uint4(Pair<Half>::of(from[0], from[1]), Pair<Half>::of(from[2], from[3]),
                                                Pair<Half>::of(from[4], from[5]), Pair<Half>::of(from[6], from[7]));
  } else if constexpr (Count == 4) {
    *reinterpret_cast<uint2 *>(to) = make_uint2(Pair<Half>::of(from[0], from[1]), Pair<Half>::of(from[2], from[3]));
  } else {
    for (int i = 0; i < Count; ++i)
      store(to + i, from[i]);
  }
}

/// Neighbouring columns of one operand in one row, of which `count` exist, the others are 0. They come in groups that
/// exist or do not, and that lie as loadVector() wants them; where one group is all of them, it exists.
template <int Group, int Count, typename T>
__device__ inline void loadColumns(float (&to)[Count], const T *from, int count) {
#pragma unroll
  for (int g = 0; g < Count; g += Group) {
    auto &group = reinterpret_cast<float (&)[Group]>(to[g]);
    if (Group == Count || g < count)
      loadVector(group, from + g);
    else
      for (float &value : group)
        value = 0;
  }
}
/// The same of a mask, whose element `first` is the first of them.
template <int Group, int Count>
__device__ inline void loadMask(float (&to)[Count], const uint32_t *words, int64_t first, int count) {
#pragma unroll
  for (int g = 0; g < Count; g += Group) {
    const int64_t at = first + g;
    const uint32_t bits = Group == Count || g < count ? words[at / 32] >> (at % 32) : 0;
    for (int i = 0; i < Group; ++i)
      to[g + i] = static_cast<float>(bits >> i & 1);
  }
}
template <int Group, int Count, typename T>
__device__ inline void storeColumns(T *to, const float (&from)[Count], int count) {
#pragma unroll
  for (int g = 0; g < Count; g += Group)
    if (Group == Count || g < count)
      storeVector(to + g, reinterpret_cast<const float (&)[Group]>(from[g]));
}

#endif

/// Calls work(pointer of the stored type, null) for the type of an activation.
template <typename Work> void forStored(DataType type, Work &&work) {
  if (type == DataType::BF16)
    work(static_cast<BFloat16 *>(nullptr));
  else if (type == DataType::F16)
    work(static_cast<Float16 *>(nullptr));
  else
    work(static_cast<float *>(nullptr));
}

} // namespace sluice
