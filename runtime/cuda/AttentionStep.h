// SPDX-License-Identifier: Apache-2.0
// What the kernels of AttentionTiles.cu share: squares of scores in shared memory. All arithmetic is float.
#pragma once

#include "runtime/cuda/AttentionTiles.h"
#include "runtime/cuda/Storage.h"

namespace sluice::tiles {

/// A block computes a square of scores, each thread `each` by `each` of them, taking so many depths at once.
constexpr int side = 64, depthAtOnce = 32, across = 16, each = side / across;

inline int64_t blocksOf(int64_t extent) { return (extent + side - 1) / side; }

/// A member's [rows, columns], rows `step` apart.
template <typename T> struct Matrix {
  T *data;
  int64_t rows, columns, step;
  __device__ T &at(int64_t row, int64_t column) const { return data[row * step + column]; }
};
template <typename T>
__device__ Matrix<T> matrixOf(const AttentionGeometry &g, const AttentionView &view, T *data, int64_t member,
                              int64_t rows, int64_t columns) {
  return {data + g.start(view, member), rows, columns, view.row};
}

/// Where a member's masks begin.
struct MaskStarts {
  int64_t mask, kept;
};

template <typename T> struct Step {
  AttentionGeometry g;
  float scale, ratio;
  bool causal, onlyHidden; ///< onlyHidden: see computeHidden()
  uint64_t key;
  const DeviceState *state;
  const T *q, *k, *v, *dy, *y;
  const float *mask, *kept, *logsumexp; ///< logsumexp: of what an earlier kernel wrote
  int64_t rowBlocks, keyBlocks;

  Step(const AttentionProblem &p, const AttentionOperands &o, const DeviceState *state, bool onlyHidden)
      : g(p.g), scale(p.scale), ratio(p.ratio), causal(p.causal), onlyHidden(onlyHidden), key(p.key), state(state),
        q(static_cast<const T *>(o.q)), k(static_cast<const T *>(o.k)), v(static_cast<const T *>(o.v)),
        dy(static_cast<const T *>(o.dy)), y(static_cast<const T *>(o.y)), mask(o.mask), kept(o.kept),
        logsumexp(o.logsumexp), rowBlocks(blocksOf(p.g.rows)), keyBlocks(blocksOf(p.g.keys)) {}

  __device__ Matrix<const T> queries(int64_t member) const { return matrixOf(g, g.q, q, member, g.rows, g.depth); }
  __device__ Matrix<const T> keys(int64_t member) const { return matrixOf(g, g.k, k, member, g.keys, g.depth); }
  __device__ Matrix<const T> values(int64_t member) const { return matrixOf(g, g.v, v, member, g.keys, g.columns); }
  /// Of y or dy.
  __device__ Matrix<const T> rowsOf(const T *data, int64_t member) const {
    return matrixOf(g, g.y, data, member, g.rows, g.columns);
  }

  __device__ MaskStarts startsOf(int64_t member) const {
    return {g.mask.present ? g.start(g.mask, member) : 0, g.kept.present ? g.start(g.kept, member) : 0};
  }
  /// Whether a score is no number of the mask alone.
  __device__ bool keeps(const MaskStarts &starts, int64_t row, int64_t key) const {
    return !g.kept.present || row >= g.rows || key >= g.keys ||
           kept[starts.kept + row * g.kept.row + key * g.kept.key] > 0;
  }
  __device__ float scoreOf(float product, const MaskStarts &starts, int64_t row, int64_t key) const {
    if (key >= g.keys || row >= g.rows || (causal && key > row))
      return -__builtin_huge_valf();
    const float shift = g.mask.present ? mask[starts.mask + row * g.mask.row + key * g.mask.key] : 0;
    return keeps(starts, row, key) ? product * scale + shift : shift;
  }
  /// exp(score) over the sum of its row's exponentials, which an earlier kernel wrote.
  __device__ float probabilityOf(float score, int64_t member, int64_t row) const {
    if (row >= g.rows)
      return 0;
    const float *sum = logsumexp + member * g.rows + row;
    return exponential(score - *sum - (g.mask.present ? sum[g.members * g.rows] : 0));
  }
  /// What dropout makes of a value at this place.
  __device__ float dropped(float value, uint64_t draws, int64_t member, int64_t row, int64_t key) const {
    const auto index = static_cast<uint64_t>((member * g.rows + row) * g.keys + key);
    return ratio > 0 ? (uniform(draws, index) < ratio ? 0 : value * (1 / (1 - ratio))) : value;
  }
  /// Whether a mask hides the row, by what an engine or an earlier kernel says of its sum.
  __device__ bool isHidden(int64_t member, int64_t row) const {
    return row < g.rows && hidesRow(logsumexp[member * g.rows + row]);
  }
  /// Whether the row is to be computed.
  __device__ bool takes(int64_t member, int64_t row) const { return !onlyHidden || isHidden(member, row); }
  __device__ uint64_t draws() const { return ratio > 0 ? randomKey(state->seed, key, state->draw) : 0; }
};

/// Whether one of `count` rows from `first` on is to be computed. All threads of the block call it.
template <typename T> __device__ bool anyTaken(const Step<T> &s, int64_t member, int64_t first, int64_t count) {
  if (!s.onlyHidden)
    return true;
  __shared__ int found;
  __syncthreads();
  if (threadIdx.x == 0)
    found = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += blockThreads)
    if (s.isHidden(member, first + i))
      found = 1;
  __syncthreads();
  return found != 0;
}

/// Shared memory of a block.
struct Tiles {
  float left[side][depthAtOnce + 1], right[side][depthAtOnce + 1], scores[side][side + 1], of[4][side];
};

/// The elements of a square that this thread has: rows y + across * i, columns x + across * j.
struct Part {
  int x = static_cast<int>(threadIdx.x) % across, y = static_cast<int>(threadIdx.x) / across;
  float sums[each][each] = {};
  __device__ int row(int i) const { return y + across * i; }
  __device__ int column(int j) const { return x + across * j; }
  template <typename Body> __device__ void forAll(Body &&body) {
    for (int i = 0; i < each; ++i)
      for (int j = 0; j < each; ++j)
        body(row(i), column(j), sums[i][j]);
  }
};

/// to[i][d] = from[first + i][start + d], 0 outside of it.
template <typename T>
__device__ void loadTile(float (&to)[side][depthAtOnce + 1], const Matrix<T> &from, int64_t first, int64_t start) {
  for (int i = static_cast<int>(threadIdx.x); i < side * depthAtOnce; i += blockThreads) {
    const int64_t row = first + i / depthAtOnce, column = start + i % depthAtOnce;
    to[i / depthAtOnce][i % depthAtOnce] = row < from.rows && column < from.columns ? widened(from.at(row, column)) : 0;
  }
}

/// part += rows of a times rows of b, which has as many columns.
template <typename T>
__device__ void multiplyRows(Tiles &t, Part &part, const Matrix<T> &a, int64_t row, const Matrix<T> &b, int64_t key) {
  for (int64_t start = 0; start < a.columns; start += depthAtOnce) {
    __syncthreads();
    loadTile(t.left, a, row, start);
    loadTile(t.right, b, key, start);
    __syncthreads();
    for (int d = 0; d < depthAtOnce; ++d)
      part.forAll([&](int i, int j, float &sum) { sum += t.left[i][d] * t.right[j][d]; });
  }
}

/// part += t.scores, or transposed, times columns [column, column + side) of b from row `first` on.
template <bool Transposed, typename T>
__device__ void multiplyScores(Tiles &t, Part &part, const Matrix<T> &b, int64_t first, int64_t column) {
  for (int start = 0; start < side; start += depthAtOnce) {
    __syncthreads(); // what was computed with right, and scores that were written
    for (int i = static_cast<int>(threadIdx.x); i < side * depthAtOnce; i += blockThreads) {
      const int64_t row = first + start + i / side, at = column + i % side;
      t.right[i % side][i / side] = row < b.rows && at < b.columns ? widened(b.at(row, at)) : 0;
    }
    __syncthreads();
    for (int d = 0; d < depthAtOnce; ++d)
      part.forAll([&](int i, int j, float &sum) {
        sum += (Transposed ? t.scores[start + d][i] : t.scores[i][start + d]) * t.right[j][d];
      });
  }
}

/// to[row + i] = sums of the part, of the rows that are to be computed.
template <typename T>
__device__ void storeRows(Part &part, const Step<T> &s, const Matrix<T> &to, int64_t member, int64_t row,
                          int64_t column) {
  part.forAll([&](int i, int j, float &sum) {
    if (row + i < to.rows && column + j < to.columns && s.takes(member, row + i))
      store(&to.at(row + i, column + j), sum);
  });
}

/// to = sums of the part, or that more than an engine left there.
template <typename T>
__device__ void storeKeys(Part &part, const Step<T> &s, const Matrix<T> &to, int64_t key, int64_t column) {
  part.forAll([&](int i, int j, float &sum) {
    if (key + i < to.rows && column + j < to.columns)
      store(&to.at(key + i, column + j), s.onlyHidden ? widened(to.at(key + i, column + j)) + sum : sum);
  });
}

/// t.scores = scores of a square.
template <typename T>
__device__ void computeScores(Tiles &t, const Step<T> &s, int64_t member, int64_t row, int64_t key) {
  Part part;
  const MaskStarts starts = s.startsOf(member);
  multiplyRows(t, part, s.queries(member), row, s.keys(member), key);
  __syncthreads(); // whoever reads the scores before
  part.forAll([&](int i, int j, float &sum) { t.scores[i][j] = s.scoreOf(sum, starts, row + i, key + j); });
  __syncthreads();
}

/// t.scores = 0 in rows that are not to be computed.
template <typename T> __device__ void clearOthers(Tiles &t, const Step<T> &s, int64_t member, int64_t row) {
  if (!s.onlyHidden)
    return;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < side * side; i += blockThreads)
    if (!s.isHidden(member, row + i / side))
      t.scores[i / side][i % side] = 0;
  __syncthreads();
}

} // namespace sluice::tiles
