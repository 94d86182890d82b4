// SPDX-License-Identifier: Apache-2.0
// The inner loop of our own products: a tile of results stays in registers while the depth runs by. The right factor
// lies in rows of whole vectors, padded with zeros; the left one has any strides. Every element is one sum in the order
// of the depth, whatever the tile's size, so that bits do not depend on how a product is cut.
#pragma once

#include "runtime/host/TileForm.h"
#include "runtime/kernels/BFloat16.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace sluice::tile {

#if defined(__AVX512F__)
constexpr Form compiled = formOf(4);
#elif defined(__AVX__)
constexpr Form compiled = formOf(3);
#elif defined(__aarch64__)
constexpr Form compiled = formOf(firstArmLevel);
#else
constexpr Form compiled = formOf(2);
#endif
constexpr int lanes = compiled.lanes, rows = compiled.rows;

using Vector = float __attribute__((vector_size(lanes * sizeof(float)), aligned(4), may_alias));

/// Factors of one product: elements between neighbours. `b` points at whole panels.
struct Factors {
  const float *a;
  int64_t rowStep, depthStep;
  const float *b;
  int64_t bStep; ///< from one depth to the next
  int64_t depth;
};

template <int Rows, int Vectors>
inline void block(const Factors &f, const float *a, float *c, int64_t cStep, int64_t columns, bool add) {
  Vector sums[Rows][Vectors] = {};
  const float *b = f.b;
  for (int64_t k = 0; k < f.depth; ++k, b += f.bStep, a += f.depthStep) {
    Vector right[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      right[v] = *reinterpret_cast<const Vector *>(b + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vector left = a[r * f.rowStep] - Vector{};
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += left * right[v];
    }
  }
  if (columns == Vectors * lanes) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        auto &to = *reinterpret_cast<Vector *>(c + r * cStep + v * lanes);
        to = add ? to + sums[r][v] : sums[r][v];
      }
    return;
  }
  for (int r = 0; r < Rows; ++r)
    for (int64_t i = 0; i < columns; ++i) {
      const float sum = sums[r][i / lanes][i % lanes];
      c[r * cStep + i] = add ? c[r * cStep + i] + sum : sum;
    }
}

template <int Vectors>
inline void panel(const Factors &f, int64_t count, float *c, int64_t cStep, int64_t columns, bool add) {
  const float *a = f.a;
  auto take = [&](auto size) {
    constexpr int n = decltype(size)::value;
    for (; count >= n; count -= n, a += n * f.rowStep, c += n * cStep)
      block<n, Vectors>(f, a, c, cStep, columns, add);
  };
  take(std::integral_constant<int, rows>());
  take(std::integral_constant<int, 4>());
  take(std::integral_constant<int, 2>());
  take(std::integral_constant<int, 1>());
}

/// Rows of adjacent elements, `step` apart, one after another. Where compilers know how many, a row is a few vectors
/// without the checks that a loop begins with, which took longer than so short a row.
template <int Columns, typename T>
inline void packRows(const T *__restrict from, int64_t step, int64_t rowCount, float *__restrict to) {
  for (int64_t k = 0; k < rowCount; ++k, from += step, to += Columns)
    for (int i = 0; i < Columns; ++i)
      to[i] = widened(from[i]);
}

/// The right factor's columns as panels [panel][depth][column] of `width` columns, the last one filled up with zeros.
template <typename T>
inline void pack(const T *b, int64_t depthStep, int64_t columnStep, int64_t depths, int64_t columns, int64_t width,
                 float *to) {
  for (int64_t first = 0; first < columns; first += width, to += depths * width) {
    const int64_t count = std::min(width, columns - first);
    const T *from = b + first * columnStep;
    if (count < width)
      std::fill_n(to, depths * width, 0.0f);
    if (columnStep == 1 && count == 2 * lanes)
      packRows<2 * lanes>(from, depthStep, depths, to);
    else if (columnStep == 1 && count == lanes && width == lanes)
      packRows<lanes>(from, depthStep, depths, to);
    else if (columnStep == 1)
      for (int64_t k = 0; k < depths; ++k)
        for (int64_t i = 0; i < count; ++i)
          to[k * width + i] = widened(from[k * depthStep + i]);
    else
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < depths; ++k)
          to[k * width + i] = widened(from[i * columnStep + k * depthStep]);
  }
}

/// c[count, columns] = (c +) a b for one panel of at most panelColumns() columns.
inline void multiply(const Factors &f, int64_t count, float *c, int64_t cStep, int64_t columns, bool wide, bool add) {
  if (wide)
    panel<2>(f, count, c, cStep, columns, add);
  else
    panel<1>(f, count, c, cStep, columns, add);
}

/// The same for all panels of a packed right factor.
inline void multiplyPacked(Factors f, int64_t count, float *c, int64_t cStep, int64_t columns, bool add) {
  for (int64_t column = 0; column < columns; column += f.bStep, f.b += f.depth * f.bStep)
    multiply(f, count, c + column, cStep, std::min(f.bStep, columns - column), f.bStep > lanes, add);
}

} // namespace sluice::tile
