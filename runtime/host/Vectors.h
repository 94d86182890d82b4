// SPDX-License-Identifier: Apache-2.0
// Activations in memory, a vector of floats in registers.
#pragma once

#include "runtime/host/ElementTypes.h"
#include "runtime/host/Tile.h"

namespace sluice {

/// As many whole numbers, or what comparing two vectors gives: all bits where it is so.
using Words = int32_t __attribute__((vector_size(tile::lanes * sizeof(int32_t)), aligned(4), may_alias));

inline tile::Vector loaded(const float *x) { return *reinterpret_cast<const tile::Vector *>(x); }
inline tile::Vector loaded(const BFloat16 *x) {
  using Halves = uint16_t __attribute__((vector_size(tile::lanes * sizeof(uint16_t)), aligned(2), may_alias));
  using Unsigned = uint32_t __attribute__((vector_size(tile::lanes * sizeof(uint32_t))));
  return reinterpret_cast<tile::Vector>(__builtin_convertvector(*reinterpret_cast<const Halves *>(x), Unsigned) << 16);
}
inline void keep(const tile::Vector &value, float *to) { *reinterpret_cast<tile::Vector *>(to) = value; }
inline void keep(const tile::Vector &value, BFloat16 *to) {
  float values[tile::lanes];
  keep(value, values);
  for (int i = 0; i < tile::lanes; ++i)
    store(to + i, values[i]);
}

inline Words loaded(const int32_t *x) { return *reinterpret_cast<const Words *>(x); }
/// By a loop: compilers widen vectors of bytes one by one.
inline Words loaded(const uint8_t *x) {
  int32_t words[tile::lanes];
  for (int i = 0; i < tile::lanes; ++i)
    words[i] = x[i];
  return loaded(words);
}
inline void keep(const Words &value, int32_t *to) { *reinterpret_cast<Words *>(to) = value; }
/// Numbers below 256.
inline void keep(const Words &value, uint8_t *to) {
  using Bytes = uint8_t __attribute__((vector_size(tile::lanes), aligned(1), may_alias));
  *reinterpret_cast<Bytes *>(to) = __builtin_convertvector(value, Bytes);
}

} // namespace sluice
