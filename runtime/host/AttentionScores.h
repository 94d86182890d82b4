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

  /// How many of the keys [key, key + count) a row may look at: the first of them.
  int64_t seen(int64_t row, int64_t key, int64_t count) const {
    return causal ? std::clamp<int64_t>(g.visibleKeys(row) - key, 0, count) : count;
  }

  /// A mask's number for this key.
  const float *at(const AttentionMask &where, const float *of, int64_t member, int64_t row, int64_t key) const {
    return of + g.start(where, member) + row * where.row + key * where.key;
  }

  /// scale * score + mask of keys [key, key + count), which a causal mask shows, in place.
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

/// Where a block of scores stands.
struct ScoreBlock {
  int64_t member, row, rows, key, keys;
};

/// With the tensors that it reads.
template <typename T> struct AttentionStep : Scores {
  const T *q, *k, *v;

  /// Each row's sum of dy * y, of one member.
  void sumProducts(const T *dy, const T *y, float *sums) const {
    constexpr int64_t lanes = 16;
    for (int64_t row = 0; row < g.rows; ++row, dy += g.y.row, y += g.y.row) {
      float partial[lanes] = {}, sum = 0;
      int64_t c = 0;
      for (; c + lanes <= g.columns; c += lanes)
        for (int64_t lane = 0; lane < lanes; ++lane)
          partial[lane] += widened(dy[c + lane]) * widened(y[c + lane]);
      for (; c < g.columns; ++c)
        sum += widened(dy[c]) * widened(y[c]);
      for (float lane : partial)
        sum += lane;
      sums[row] = sum;
    }
  }
  /// The gradients of keys that no row sees.
  void clearKeys(const ScoreBlock &b, T *dk, T *dv) const {
    for (int64_t i = b.key; i < b.key + b.keys; ++i) {
      std::fill_n(dk + i * g.k.row, g.depth, T{});
      std::fill_n(dv + i * g.v.row, g.columns, T{});
    }
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
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      most[lane] = most[lane + half] > most[lane] ? most[lane + half] : most[lane];
  return most[0];
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

/// The forward pass over one row after another while blocks of keys pass by.
struct SoftmaxRows {
  float *largest, *sums;

  void begin(int64_t rows) const {
    std::fill_n(largest, rows, -infinity);
    std::fill_n(sums, rows, 0.0f);
  }
  /// Scores of row i, `row` of its member, become exponentials; y, what the row has so far, is brought to the new
  /// largest score.
  void addKeys(const Scores &s, int64_t i, const ScoreBlock &b, float *line, float *y) const {
    const int64_t row = b.row + i, seen = s.seen(row, b.key, b.keys);
    std::fill(line + seen, line + b.keys, 0.0f);
    s.maskScores(line, b.member, row, b.key, seen);
    const float most = std::max(largest[i], largestOf(line, seen));
    if (most == -infinity) { // it has seen no key yet, but NaN stays
      for (int64_t j = 0; j < seen; ++j)
        line[j] = line[j] == -infinity ? 0 : line[j];
      sums[i] += sumOf(line, seen);
      return;
    }
    exponentials(line, seen, most);
    const float factor = b.key == 0 || largest[i] == most ? 1 : exponential(largest[i] - most);
    sums[i] = sums[i] * factor + sumOf(line, seen);
    for (int64_t c = 0; factor != 1 && c < s.g.columns; ++c)
      y[c] *= factor;
    largest[i] = most;
    if (s.ratio > 0)
      s.drop(line, line, b.member, row, b.key, seen);
  }
  /// What is left to do when all keys have passed; `sum` is the row's logsumexp.
  void end(const Scores &s, int64_t i, float *y, float *sum) const {
    const bool none = sums[i] == 0;
    const float factor = none ? 0 : 1 / sums[i], most = none ? infinity : largest[i];
    const float rest = none ? 0 : logarithm(sums[i]);
    for (int64_t c = 0; c < s.g.columns; ++c)
      y[c] *= factor;
    *sum = s.g.mask.present ? most : most + rest;
    if (s.g.mask.present)
      sum[s.g.members * s.g.rows] = rest;
  }
};

/// Scores of row i of a block become probabilities; `dropped` is what dropout makes of them, where there is one.
/// `logsumexp` is the member's.
inline void makeProbabilities(const Scores &s, int64_t i, const ScoreBlock &b, const float *logsumexp, float *line,
                              float *dropped) {
  const int64_t row = b.row + i, seen = s.seen(row, b.key, b.keys);
  s.maskScores(line, b.member, row, b.key, seen);
  const float *sum = logsumexp + row;
  exponentials(line, seen, *sum, s.g.mask.present ? sum[s.g.members * s.g.rows] : 0);
  std::fill(line + seen, line + b.keys, 0.0f);
  if (s.ratio > 0) {
    s.drop(line, dropped, b.member, row, b.key, seen);
    std::fill(dropped + seen, dropped + b.keys, 0.0f);
  }
}
/// Gradients of row i's probabilities, after dropout, become those of its scores; `product` is the row's sum of dy * y.
inline void makeSlopes(const Scores &s, int64_t i, const ScoreBlock &b, float product, const float *probabilities,
                       float *slope) {
  const int64_t row = b.row + i, seen = s.seen(row, b.key, b.keys);
  if (s.ratio > 0)
    s.drop(slope, slope, b.member, row, b.key, seen);
#pragma GCC ivdep
  for (int64_t j = 0; j < seen; ++j)
    slope[j] = probabilities[j] * (slope[j] - product) * s.scale;
  s.replace(slope, &zero, 0, b.member, row, b.key, seen);
  std::fill(slope + seen, slope + b.keys, 0.0f);
}

} // namespace sluice
