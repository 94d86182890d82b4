// SPDX-License-Identifier: Apache-2.0
// What both passes of attention do to blocks of scores, which are floats whatever is stored.
#pragma once

#include "runtime/Attention.h"
#include "runtime/host/Tile.h"

#include <algorithm>

namespace sluice {

constexpr int64_t rowsAtOnce = 96, keysAtOnce = 256;
/// From one row of scores to the next: lines of a column fall into different sets of the cache.
constexpr int64_t scoreStep = keysAtOnce + 16;
constexpr float infinity = __builtin_huge_valf(), zero = 0;

inline int64_t packedSize(int64_t depths, int64_t columns) {
  return depths * tile::panels(columns) * tile::panelColumns(columns);
}

/// The right factor of a product, packed: op(b) [depths, columns], `transposed`: b is [columns, depths].
struct Packed {
  float *panels;
  int64_t depths = 0, columns = 0;

  template <typename T>
  void take(const T *b, int64_t step, int64_t newDepths, int64_t newColumns, bool transposed = false) {
    depths = newDepths, columns = newColumns;
    tile::pack(b, transposed ? 1 : step, transposed ? step : 1, depths, columns, tile::panelColumns(columns), panels);
  }
  /// c = (c +) a b for `rows` rows of a.
  void multiply(const float *a, int64_t rowStep, int64_t depthStep, int64_t rows, float *c, int64_t cStep,
                bool add) const {
    tile::multiplyPacked({a, rowStep, depthStep, panels, tile::panelColumns(columns), depths}, rows, c, cStep, columns,
                         add);
  }
};

/// What all tasks of a call share, and the pieces of both passes that its type does not matter to.
struct Scores {
  AttentionGeometry g;
  float scale, ratio;
  bool causal;
  uint64_t draws; ///< key of this step's draws
  const float *mask, *kept;

  /// Keys that any of the rows before `end` sees.
  int64_t keysOf(int64_t end) const { return causal ? g.visibleKeys(end - 1) : g.keys; }

  /// A mask's number for this key.
  const float *at(const AttentionMask &where, const float *of, int64_t member, int64_t row, int64_t key) const {
    return of + g.start(where, member) + row * where.row + key * where.key;
  }

  /// scale * score + mask of keys [key, key + count) in place; what a causal mask hides is -infinity.
  void maskScores(float *scores, int64_t member, int64_t row, int64_t key, int64_t count) const {
    const float *m = g.mask.present ? at(g.mask, mask, member, row, key) : nullptr;
    if (!m || g.mask.key == 0) {
      const float shift = m ? *m : 0;
      for (int64_t i = 0; i < count; ++i)
        scores[i] = scores[i] * scale + shift;
    } else {
      for (int64_t i = 0; i < count; ++i)
        scores[i] = scores[i] * scale + m[i];
    }
    replace(scores, m, g.mask.key, member, row, key, count);
    for (int64_t i = causal ? std::max<int64_t>(0, g.visibleKeys(row) - key) : count; i < count; ++i)
      scores[i] = -infinity;
  }
  /// x = by, whose elements are so far apart, where the score of a key of [key, key + count) is not kept.
  void replace(float *x, const float *by, int64_t step, int64_t member, int64_t row, int64_t key, int64_t count) const {
    const float *seen = g.kept.present ? at(g.kept, kept, member, row, key) : nullptr;
    for (int64_t i = 0; seen && i < count; ++i)
      x[i] = seen[i * g.kept.key] > 0 ? x[i] : by[i * step];
  }
  /// to = from where the draw keeps it, scaled, else 0.
  void drop(const float *from, float *to, int64_t member, int64_t row, int64_t key, int64_t count) const {
    const float factor = 1 / (1 - ratio);
    const auto first = static_cast<uint64_t>((member * g.rows + row) * g.keys + key);
    for (int64_t i = 0; i < count; ++i)
      to[i] = uniform(draws, first + static_cast<uint64_t>(i)) < ratio ? 0 : from[i] * factor;
  }
};

inline float largestOf(const float *x, int64_t count) {
  constexpr int64_t lanes = 16;
  float most[lanes];
  std::fill_n(most, lanes, -infinity);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      most[lane] = x[i + lane] > most[lane] ? x[i + lane] : most[lane];
  for (; i < count; ++i)
    most[0] = std::max(most[0], x[i]);
  return *std::max_element(most, most + lanes);
}

inline float sumOf(const float *x, int64_t count) {
  constexpr int64_t lanes = 16;
  float sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] += x[i + lane];
  for (; i < count; ++i)
    sums[0] += x[i];
  float total = 0;
  for (float sum : sums)
    total += sum;
  return total;
}

/// x = exp(x - shift - rest)
inline void exponentials(float *x, int64_t count, float shift, float rest = 0) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i)
    x[i] = exponential(x[i] - shift - rest);
}

} // namespace sluice
