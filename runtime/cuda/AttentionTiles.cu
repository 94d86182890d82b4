// SPDX-License-Identifier: Apache-2.0
// Attention by tiles of scores that lie in shared memory. Each kernel computes the scores that it needs again, so that
// blocks share nothing, no tensor is kept between kernels, and every sum has one order. All arithmetic is float.
#include "runtime/cuda/AttentionTiles.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

/// A block computes a square of scores, each thread `each` by `each` of them, taking so many depths at once.
constexpr int side = 64, depthAtOnce = 32, across = 16, each = side / across;

int64_t blocksOf(int64_t extent) { return (extent + side - 1) / side; }

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
  bool causal;
  uint64_t key;
  const DeviceState *state;
  const T *q, *k, *v, *dy, *y;
  const float *mask, *kept, *logsumexp; ///< logsumexp: of what an earlier kernel wrote
  int64_t rowBlocks, keyBlocks;

  Step(const AttentionProblem &p, const AttentionOperands &o, const DeviceState *state)
      : g(p.g), scale(p.scale), ratio(p.ratio), causal(p.causal), key(p.key), state(state),
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
  __device__ uint64_t draws() const { return ratio > 0 ? randomKey(state->seed, key, state->draw) : 0; }
};

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

template <typename T> __device__ void storePart(Part &part, const Matrix<T> &to, int64_t row, int64_t column) {
  part.forAll([&](int i, int j, float &sum) {
    if (row + i < to.rows && column + j < to.columns)
      store(&to.at(row + i, column + j), sum);
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

/// A row's largest score and the sum of its exponentials; each of four threads passes by a quarter of the keys.
template <typename T> __global__ void attentionSums(Step<T> s, float *logsumexp) {
  __shared__ Tiles t;
  const int line = static_cast<int>(threadIdx.x) / 4, quarter = static_cast<int>(threadIdx.x) % 4;
  for (int64_t block = blockIdx.x; block < s.g.members * s.rowBlocks; block += gridDim.x) {
    const int64_t member = block / s.rowBlocks, row = block % s.rowBlocks * side;
    const float least = -__builtin_huge_valf();
    float largest = least, sum = 0;
    for (int64_t key = 0; key < s.g.keys && !(s.causal && key >= row + side); key += side) {
      computeScores(t, s, member, row, key);
      for (int j = quarter; j < side; j += 4) {
        const float score = t.scores[line][j];
        if (score > largest) {
          sum *= exponential(largest - score);
          largest = score;
        }
        sum += score == least ? 0 : exponential(score - largest);
      }
    }
    __syncthreads();
    t.of[quarter][line] = largest;
    t.scores[line][quarter] = sum;
    __syncthreads();
    if (quarter == 0 && row + line < s.g.rows) {
      for (int i = 1; i < 4; ++i)
        largest = t.of[i][line] > largest ? t.of[i][line] : largest;
      float total = 0;
      for (int i = 0; i < 4; ++i)
        total += t.of[i][line] == least ? t.scores[line][i] : t.scores[line][i] * exponential(t.of[i][line] - largest);
      const float most = total == 0 ? -least : largest, rest = total == 0 ? 0 : logf(total);
      float *to = logsumexp + member * s.g.rows + row + line;
      *to = s.g.mask.present ? most : most + rest;
      if (s.g.mask.present)
        to[s.g.members * s.g.rows] = rest;
    }
    __syncthreads();
  }
}

/// t.scores = probabilities of a square, dropped or not.
template <typename T>
__device__ void computeProbabilities(Tiles &t, const Step<T> &s, int64_t member, int64_t row, int64_t key,
                                     uint64_t draws, bool drops) {
  computeScores(t, s, member, row, key);
  for (int i = static_cast<int>(threadIdx.x); i < side * side; i += blockThreads) {
    const int64_t r = row + i / side;
    float &score = t.scores[i / side][i % side];
    score = s.probabilityOf(score, member, r);
    if (drops)
      score = s.dropped(score, draws, member, r, key + i % side);
  }
  __syncthreads();
}

template <typename T> __global__ void attentionRows(Step<T> s, T *y) {
  __shared__ Tiles t;
  const int64_t chunks = (s.g.columns + side - 1) / side, tasks = s.g.members * s.rowBlocks * chunks;
  const uint64_t draws = s.draws();
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t column = task % chunks * side, row = task / chunks % s.rowBlocks * side,
                  member = task / chunks / s.rowBlocks;
    Part part;
    for (int64_t key = 0; key < s.g.keys && !(s.causal && key >= row + side); key += side) {
      computeProbabilities(t, s, member, row, key, draws, s.ratio > 0);
      multiplyScores<false>(t, part, s.values(member), key, column);
    }
    storePart(part, matrixOf(s.g, s.g.y, y, member, s.g.rows, s.g.columns), row, column);
  }
}

/// t.scores = scale * p * (d(dy v^T) - sum of dy * y) of a square.
template <typename T>
__device__ void computeSlopes(Tiles &t, const Step<T> &s, int64_t member, int64_t row, int64_t key, uint64_t draws) {
  const Matrix<const T> dy = s.rowsOf(s.dy, member), y = s.rowsOf(s.y, member);
  const MaskStarts starts = s.startsOf(member);
  computeProbabilities(t, s, member, row, key, draws, false);
  const int line = static_cast<int>(threadIdx.x) / 4, quarter = static_cast<int>(threadIdx.x) % 4;
  float product = 0;
  for (int64_t c = quarter; row + line < s.g.rows && c < s.g.columns; c += 4)
    product += widened(dy.at(row + line, c)) * widened(y.at(row + line, c));
  t.of[quarter][line] = product;
  Part part;
  multiplyRows(t, part, dy, row, s.values(member), key);
  part.forAll([&](int i, int j, float &sum) {
    const float whole = t.of[0][i] + t.of[1][i] + t.of[2][i] + t.of[3][i];
    const float slope = (s.dropped(sum, draws, member, row + i, key + j) - whole) * s.scale;
    t.scores[i][j] = s.keeps(starts, row + i, key + j) ? t.scores[i][j] * slope : 0;
  });
  __syncthreads();
}

template <typename T> __global__ void attentionQueryGradient(Step<T> s, T *dq) {
  __shared__ Tiles t;
  const int64_t chunks = (s.g.depth + side - 1) / side, tasks = s.g.members * s.rowBlocks * chunks;
  const uint64_t draws = s.draws();
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t column = task % chunks * side, row = task / chunks % s.rowBlocks * side,
                  member = task / chunks / s.rowBlocks;
    Part part;
    for (int64_t key = 0; key < s.g.keys && !(s.causal && key >= row + side); key += side) {
      computeSlopes(t, s, member, row, key, draws);
      multiplyScores<false>(t, part, s.keys(member), key, column);
    }
    storePart(part, matrixOf(s.g, s.g.q, dq, member, s.g.rows, s.g.depth), row, column);
  }
}

/// Of values (from probabilities and dy) or of keys (from slopes and q).
template <bool Values, typename T> __global__ void attentionKeyGradient(Step<T> s, T *to) {
  __shared__ Tiles t;
  const int64_t width = Values ? s.g.columns : s.g.depth;
  const int64_t chunks = (width + side - 1) / side, tasks = s.g.members * s.keyBlocks * chunks;
  const uint64_t draws = s.draws();
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t column = task % chunks * side, key = task / chunks % s.keyBlocks * side,
                  member = task / chunks / s.keyBlocks;
    const Matrix<const T> from = Values ? s.rowsOf(s.dy, member) : s.queries(member);
    Part part;
    for (int64_t row = s.causal ? key : 0; row < s.g.rows; row += side) {
      if (Values)
        computeProbabilities(t, s, member, row, key, draws, s.ratio > 0);
      else
        computeSlopes(t, s, member, row, key, draws);
      multiplyScores<true>(t, part, from, row, column);
    }
    storePart(part, matrixOf(s.g, Values ? s.g.v : s.g.k, to, member, s.g.keys, width), key, column);
  }
}

} // namespace

void tiledAttention(cudaStream_t stream, const AttentionProblem &p, const DeviceState *state,
                    const AttentionOperands &o) {
  const AttentionGeometry &g = p.g;
  const int64_t rows = g.members * blocksOf(g.rows);
  const unsigned sumBlocks = blocksFor(rows, 1), blocks = blocksFor(rows * blocksOf(g.columns), 1);
  forStored(p.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const Step<T> step(p, o, state);
    T *y = static_cast<T *>(o.y);
    const auto sumKernel = attentionSums<T>;
    const auto rowKernel = attentionRows<T>;
    sumKernel<<<sumBlocks, blockThreads, 0, stream>>>(step, o.logsumexp);
    rowKernel<<<blocks, blockThreads, 0, stream>>>(step, y);
  });
}

void tiledAttentionGradient(cudaStream_t stream, const AttentionProblem &p, const DeviceState *state,
                            const AttentionOperands &o) {
  const AttentionGeometry &g = p.g;
  const int64_t depthChunks = blocksOf(g.depth), keys = g.members * blocksOf(g.keys);
  const unsigned queryBlocks = blocksFor(g.members * blocksOf(g.rows) * depthChunks, 1);
  const unsigned depthBlocks = blocksFor(keys * depthChunks, 1);
  const unsigned columnBlocks = blocksFor(keys * blocksOf(g.columns), 1);
  forStored(p.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const Step<T> step(p, o, state);
    T *dq = static_cast<T *>(o.dq), *dk = static_cast<T *>(o.dk), *dv = static_cast<T *>(o.dv);
    const auto queryKernel = attentionQueryGradient<T>;
    const auto keyKernel = attentionKeyGradient<false, T>;
    const auto valueKernel = attentionKeyGradient<true, T>;
    queryKernel<<<queryBlocks, blockThreads, 0, stream>>>(step, dq);
    keyKernel<<<depthBlocks, blockThreads, 0, stream>>>(step, dk);
    valueKernel<<<columnBlocks, blockThreads, 0, stream>>>(step, dv);
  });
}

} // namespace sluice
