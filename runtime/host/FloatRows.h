// SPDX-License-Identifier: Apache-2.0
// Blocks of rows of activations as the floats that products take and sum up: where they lie or, of bf16, in scratch.
#pragma once

#include "runtime/host/ElementTypes.h"

namespace sluice {

/// Floats of scratch that a block of T needs.
template <typename T> constexpr int64_t roomOf(int64_t rows, int64_t columns) {
  return std::is_same_v<T, float> ? 0 : rows * columns;
}

/// Where a block lies; `step` elements from one row to the next.
template <typename Float> struct FloatRows {
  Float *data;
  int64_t step;
};

inline FloatRows<const float> floatRows(const float *from, int64_t step, int64_t, int64_t, float *) {
  return {from, step};
}
inline FloatRows<const float> floatRows(const BFloat16 *from, int64_t step, int64_t rows, int64_t columns,
                                        float *room) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; ++i)
      room[row * columns + i] = widened(from[row * step + i]);
  return {room, columns};
}

/// Where a block of results is summed up, and what brings it to its place afterwards.
inline FloatRows<float> summedRows(float *to, int64_t step, int64_t, float *) { return {to, step}; }
inline FloatRows<float> summedRows(BFloat16 *, int64_t, int64_t columns, float *room) { return {room, columns}; }
inline void storeRows(const FloatRows<float> &, int64_t, int64_t, float *, int64_t) {}
inline void storeRows(const FloatRows<float> &from, int64_t rows, int64_t columns, BFloat16 *to, int64_t step) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; ++i)
      store(to + row * step + i, from.data[row * from.step + i]);
}

} // namespace sluice
