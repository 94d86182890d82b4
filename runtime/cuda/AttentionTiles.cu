// SPDX-License-Identifier: Apache-2.0
// Attention by tiles of scores that lie in shared memory. Each kernel computes the scores that it needs again, so that
// blocks share nothing, no tensor is kept between kernels, and every sum has one order. All arithmetic is float.
#include "runtime/cuda/AttentionStep.h"

namespace sluice {

namespace {

using namespace tiles;

/// A row's largest score and the sum of its exponentials; each of four threads passes by a quarter of the keys.
template <typename T> __global__ void attentionSums(Step<T> s, float *logsumexp) {
  __shared__ Tiles t;
  const int line = static_cast<int>(threadIdx.x) / 4, quarter = static_cast<int>(threadIdx.x) % 4;
  for (int64_t block = blockIdx.x; block < s.g.members * s.rowBlocks; block += gridDim.x) {
    const int64_t member = block / s.rowBlocks, row = block % s.rowBlocks * side;
    if (!anyTaken(s, member, row, side))
      continue;
    const bool taken = s.takes(member, row + line); // before it is overwritten
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
    if (quarter == 0 && row + line < s.g.rows && taken) {
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
    if (!anyTaken(s, member, row, side))
      continue;
    Part part;
    for (int64_t key = 0; key < s.g.keys && !(s.causal && key >= row + side); key += side) {
      computeProbabilities(t, s, member, row, key, draws, s.ratio > 0);
      multiplyScores<false>(t, part, s.values(member), key, column);
    }
    storeRows(part, s, matrixOf(s.g, s.g.y, y, member, s.g.rows, s.g.columns), member, row, column);
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
    if (!anyTaken(s, member, row, side))
      continue;
    Part part;
    for (int64_t key = 0; key < s.g.keys && !(s.causal && key >= row + side); key += side) {
      computeSlopes(t, s, member, row, key, draws);
      multiplyScores<false>(t, part, s.keys(member), key, column);
    }
    storeRows(part, s, matrixOf(s.g, s.g.q, dq, member, s.g.rows, s.g.depth), member, row, column);
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
    if (!anyTaken(s, member, 0, s.g.rows))
      continue;
    const Matrix<const T> from = Values ? s.rowsOf(s.dy, member) : s.queries(member);
    Part part;
    for (int64_t row = s.causal ? key : 0; row < s.g.rows; row += side) {
      if (!anyTaken(s, member, row, side))
        continue;
      if (Values)
        computeProbabilities(t, s, member, row, key, draws, s.ratio > 0);
      else
        computeSlopes(t, s, member, row, key, draws);
      clearOthers(t, s, member, row);
      multiplyScores<true>(t, part, from, row, column);
    }
    storeKeys(part, s, matrixOf(s.g, Values ? s.g.v : s.g.k, to, member, s.g.keys, width), key, column);
  }
}

} // namespace

void tiledAttention(cudaStream_t stream, const AttentionProblem &p, const DeviceState *state,
                    const AttentionOperands &o, bool onlyHidden) {
  const AttentionGeometry &g = p.g;
  const int64_t rows = g.members * blocksOf(g.rows);
  const unsigned sumBlocks = blocksFor(rows, 1), blocks = blocksFor(rows * blocksOf(g.columns), 1);
  forStored(p.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const Step<T> step(p, o, state, onlyHidden);
    T *y = static_cast<T *>(o.y);
    const auto sumKernel = attentionSums<T>;
    const auto rowKernel = attentionRows<T>;
    sumKernel<<<sumBlocks, blockThreads, 0, stream>>>(step, o.logsumexp);
    rowKernel<<<blocks, blockThreads, 0, stream>>>(step, y);
  });
}

void tiledAttentionGradient(cudaStream_t stream, const AttentionProblem &p, const DeviceState *state,
                            const AttentionOperands &o, bool onlyHidden) {
  const AttentionGeometry &g = p.g;
  const int64_t depthChunks = blocksOf(g.depth), keys = g.members * blocksOf(g.keys);
  const unsigned queryBlocks = blocksFor(g.members * blocksOf(g.rows) * depthChunks, 1);
  const unsigned depthBlocks = blocksFor(keys * depthChunks, 1);
  const unsigned columnBlocks = blocksFor(keys * blocksOf(g.columns), 1);
  forStored(p.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const Step<T> step(p, o, state, onlyHidden);
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
