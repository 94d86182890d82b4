// SPDX-License-Identifier: Apache-2.0
// What a thread has asked memory for and not yet computed with. Halves stay as they are stored: a conversion would wait
// for them, and with it every load behind it, while the memory's latency asks for many bytes on their way at once.
#pragma once

#include "runtime/cuda/Storage.h"

#include <type_traits>

namespace sluice::detail {

/// Columns of a thread: 16 bytes.
template <typename T> constexpr int columnsOf = 16 / sizeof(T);

/// Eight halves as they are stored; `count` of them exist, the others are 0.
template <typename Half> struct HeldHalves {
  uint32_t pairs[4];

  template <int Group> __device__ void load(const Half *from, int count) {
    if constexpr (Group == 8) {
      const uint4 eight = *reinterpret_cast<const uint4 *>(from);
      pairs[0] = eight.x, pairs[1] = eight.y, pairs[2] = eight.z, pairs[3] = eight.w;
    } else {
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const uint2 four = 4 * g < count ? *reinterpret_cast<const uint2 *>(from + 4 * g) : make_uint2(0, 0);
        pairs[2 * g] = four.x, pairs[2 * g + 1] = four.y;
      }
    }
  }
  template <int Group> __device__ void store(Half *to, int count) const {
    if constexpr (Group == 8) {
      *reinterpret_cast<uint4 *>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    } else {
#pragma unroll
      for (int g = 0; g < 2; ++g)
        if (4 * g < count)
          *reinterpret_cast<uint2 *>(to + 4 * g) = make_uint2(pairs[2 * g], pairs[2 * g + 1]);
    }
  }
  __device__ float at(int i) const {
    return i % 2 ? Pair<Half>::second(pairs[i / 2]) : Pair<Half>::first(pairs[i / 2]);
  }
  __device__ void put(int part, const float (&four)[4]) {
    pairs[2 * part] = Pair<Half>::of(four[0], four[1]), pairs[2 * part + 1] = Pair<Half>::of(four[2], four[3]);
  }
};

/// The same of another type, as floats.
template <typename T, int Vector> struct HeldFloats {
  float values[Vector];

  template <int Group> __device__ void load(const T *from, int count) { loadColumns<Group>(values, from, count); }
  template <int Group> __device__ void store(T *to, int count) const { storeColumns<Group>(to, values, count); }
  __device__ float at(int i) const { return values[i]; }
  __device__ void put(int part, const float (&four)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      values[4 * part + j] = four[j];
  }
};

template <typename T, int Vector>
using HeldColumns = std::conditional_t<sizeof(T) == 2 && Vector == 8, HeldHalves<T>, HeldFloats<T, Vector>>;

} // namespace sluice::detail
