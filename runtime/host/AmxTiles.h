// SPDX-License-Identifier: Apache-2.0
// Products of bf16 by the tiles of AMX: 16 rows of 32 elements of the left factor by 32 of 16 of the right one, summed
// in floats (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18). Factors are packed
// into tiles, filled up with zeros, so that every tile is whole: those of the left factor row by row, those of the
// right one by pairs of rows, [pair][column][2]. As pairs of elements a tile of one is the transpose of a tile of the
// other's transpose. Denormal factors and sums count as 0, as the instructions have it.
#pragma once

#include "runtime/kernels/BFloat16.h"

#include <cstddef>
#include <cstdint>

namespace sluice::amx {

constexpr int64_t side = 16; ///< rows of a left tile, columns of a right one
constexpr int64_t deep = 32;

/// Whether this runtime, this processor and what oneDNN is limited to have them, and the system lets this process use
/// them.
bool isOffered();

constexpr int64_t whole(int64_t extent, int64_t of) { return (extent + of - 1) / of * of; }
/// Elements of a packed factor.
constexpr int64_t leftSize(int64_t rows, int64_t depths) { return whole(rows, side) * whole(depths, deep); }
constexpr int64_t rightSize(int64_t depths, int64_t columns) { return leftSize(columns, depths); }

/// A matrix whose rows lie `step` apart.
template <typename T> struct Rows {
  const T *data;
  int64_t step, rows, columns;
};

/// As left factor, and its transpose as one.
void packLeft(const Rows<BFloat16> &a, BFloat16 *to);
void packLeft(const Rows<float> &a, BFloat16 *to);
void packLeftTransposed(const Rows<BFloat16> &a, BFloat16 *to);
/// As right factor, and its transpose as one.
void packRight(const Rows<BFloat16> &b, BFloat16 *to);
void packRight(const Rows<float> &b, BFloat16 *to);
void packRightTransposed(const Rows<BFloat16> &b, BFloat16 *to);

/// The transpose of a matrix of floats, whose room ends with whole tiles, as bf16 in rows that lie toStep apart.
void storeTransposed(const Rows<float> &from, BFloat16 *to, int64_t toStep);

/// While it lives, its thread may multiply.
class Tiles {
public:
  Tiles();
  ~Tiles();
  Tiles(const Tiles &) = delete;
  Tiles &operator=(const Tiles &) = delete;
};

struct Extents {
  int64_t rows, depths, columns;
};
/// c = (c +) left right. c's rows lie `step` floats apart; it has whole tiles, and `step` is no less than they need.
/// `rightDepths`: the right factor was packed with more depths than are multiplied.
void multiply(const BFloat16 *left, const BFloat16 *right, const Extents &extents, float *c, int64_t step, bool add,
              int64_t rightDepths);
inline void multiply(const BFloat16 *left, const BFloat16 *right, const Extents &extents, float *c, int64_t step,
                     bool add) {
  multiply(left, right, extents, c, step, add, extents.depths);
}

} // namespace sluice::amx
