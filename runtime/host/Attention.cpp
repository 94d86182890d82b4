// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of rows and keys whose scores stay in the cache. Forward tasks are blocks of rows; backward tasks
// are whole members, of which each block of keys meets each block of rows, so that every sum has one order.
#include "runtime/host/AttentionScores.h"
#include "runtime/host/FloatRows.h"
#include "runtime/host/Parallel.h"

#include <cmath>
#include <utility>

namespace sluice {

namespace {

/// With the tensors that it reads.
template <typename T> struct Step : Scores {
  const T *q, *k, *v;
};

/// A task of the forward pass: one block of rows of one member.
template <typename T> class ForwardBlock {
public:
  static int64_t floats(const AttentionGeometry &g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    return packedSize(g.depth, keys) + packedSize(keys, g.columns) + rows * (scoreStep + 2) + roomOf<T>(rows, g.depth) +
           roomOf<T>(rows, g.columns);
  }
  ForwardBlock(const Step<T> &step, float *work) : s(step), g(step.g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    keysT.panels = work;
    values.panels = keysT.panels + packedSize(g.depth, keys);
    scores = values.panels + packedSize(keys, g.columns);
    largest = scores + rows * scoreStep;
    sums = largest + rows;
    queries = sums + rows;
    results = queries + roomOf<T>(rows, g.depth);
  }

  void run(int64_t member, int64_t row, T *y, float *logsumexp) {
    const int64_t rows = std::min(rowsAtOnce, g.rows - row), visible = s.keysOf(row + rows);
    T *place = y + g.start(g.y, member) + row * g.y.row;
    const FloatRows<float> to = summedRows(place, g.y.row, g.columns, results);
    const FloatRows<const float> q =
        floatRows(s.q + g.start(g.q, member) + row * g.q.row, g.q.row, rows, g.depth, queries);
    const T *k = s.k + g.start(g.k, member), *v = s.v + g.start(g.v, member);
    std::fill_n(largest, rows, -infinity);
    std::fill_n(sums, rows, 0.0f);
    for (int64_t key = 0; key < visible; key += keysAtOnce) {
      const int64_t keys = std::min(keysAtOnce, visible - key);
      keysT.take(k + key * g.k.row, g.k.row, g.depth, keys, true);
      values.take(v + key * g.v.row, g.v.row, keys, g.columns);
      keysT.multiply(q.data, q.step, 1, rows, scores, scoreStep, false);
      for (int64_t i = 0; i < rows; ++i)
        addKeys(i, member, row + i, key, keys, to.data + i * to.step);
      values.multiply(scores, scoreStep, 1, rows, to.data, to.step, key > 0);
    }
    for (int64_t i = 0; i < rows; ++i) {
      const float factor = sums[i] == 0 ? 0 : 1 / sums[i];
      for (int64_t c = 0; c < g.columns; ++c)
        to.data[i * to.step + c] *= factor;
      const float most = sums[i] == 0 ? infinity : largest[i], rest = sums[i] == 0 ? 0 : std::log(sums[i]);
      float *sum = logsumexp + member * g.rows + row + i;
      *sum = g.mask.present ? most : most + rest;
      if (g.mask.present)
        sum[g.members * g.rows] = rest;
    }
    storeRows(to, rows, g.columns, place, g.y.row);
  }

private:
  /// Scores become exponentials; what the row has so far is brought to the new largest score.
  void addKeys(int64_t i, int64_t member, int64_t row, int64_t key, int64_t keys, float *y) {
    float *line = scores + i * scoreStep;
    s.maskScores(line, member, row, key, keys);
    const float most = std::max(largest[i], largestOf(line, keys));
    if (most == -infinity) { // it has seen no key yet, but NaN stays
      for (int64_t j = 0; j < keys; ++j)
        line[j] = line[j] == -infinity ? 0 : line[j];
      sums[i] += sumOf(line, keys);
      return;
    }
    exponentials(line, keys, most);
    const float factor = key == 0 || largest[i] == most ? 1 : exponential(largest[i] - most);
    sums[i] = sums[i] * factor + sumOf(line, keys);
    for (int64_t c = 0; factor != 1 && c < g.columns; ++c)
      y[c] *= factor;
    largest[i] = most;
    if (s.ratio > 0)
      s.drop(line, line, member, row, key, keys);
  }

  const Step<T> &s;
  const AttentionGeometry &g;
  Packed keysT, values;
  float *scores, *largest, *sums, *queries, *results;
};

/// A task of the backward pass: one member. With p the probabilities, and d(.) what dropout makes of a tensor:
/// dv = d(p)^T dy, ds = p * (d(dy v^T) - rows' sums of dy * y), dq = scale ds k, dk = scale ds^T q.
template <typename T> class BackwardMember {
public:
  static int64_t floats(const AttentionGeometry &g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    return packedSize(g.depth, keys) + packedSize(g.columns, keys) + packedSize(keys, g.depth) +
           packedSize(rows, g.depth) + packedSize(rows, g.columns) + 2 * rows * scoreStep + g.rows +
           roomOf<T>(rows + g.rows + keys, g.depth) + roomOf<T>(rows + keys, g.columns);
  }
  BackwardMember(const Step<T> &step, float *work) : s(step), g(step.g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    auto next = [&work](int64_t count) { return std::exchange(work, work + count); };
    keysT.panels = next(packedSize(g.depth, keys));
    valuesT.panels = next(packedSize(g.columns, keys));
    keysPacked.panels = next(packedSize(keys, g.depth));
    queries.panels = next(packedSize(rows, g.depth));
    gradients.panels = next(packedSize(rows, g.columns));
    probabilities = next(rows * scoreStep);
    slopes = next(rows * scoreStep);
    products = next(g.rows);
    queryRoom = next(roomOf<T>(rows, g.depth));
    gradientRoom = next(roomOf<T>(rows, g.columns));
    sumsQ = next(roomOf<T>(g.rows, g.depth));
    sumsK = next(roomOf<T>(keys, g.depth));
    sumsV = next(roomOf<T>(keys, g.columns));
  }

  void run(int64_t member, const T *dy, const T *y, const float *logsumexp, T *dq, T *dk, T *dv) {
    const T *gradient = dy + g.start(g.y, member), *result = y + g.start(g.y, member);
    for (int64_t row = 0; row < g.rows; ++row) {
      float sum = 0;
      for (int64_t c = 0; c < g.columns; ++c)
        sum += widened(gradient[row * g.y.row + c]) * widened(result[row * g.y.row + c]);
      products[row] = sum;
    }
    T *toQ = dq + g.start(g.q, member), *toK = dk + g.start(g.k, member), *toV = dv + g.start(g.v, member);
    const FloatRows<float> rowsQ = summedRows(toQ, g.q.row, g.depth, sumsQ);
    for (int64_t key = 0; key < g.keys; key += keysAtOnce) {
      const int64_t keys = std::min(keysAtOnce, g.keys - key), first = s.causal ? key / rowsAtOnce * rowsAtOnce : 0;
      const T *k = s.k + g.start(g.k, member) + key * g.k.row, *v = s.v + g.start(g.v, member) + key * g.v.row;
      keysT.take(k, g.k.row, g.depth, keys, true);
      valuesT.take(v, g.v.row, g.columns, keys, true);
      keysPacked.take(k, g.k.row, keys, g.depth);
      for (int64_t i = key; first >= g.rows && i < key + keys; ++i) { // no row sees them
        std::fill_n(toK + i * g.k.row, g.depth, T{});
        std::fill_n(toV + i * g.v.row, g.columns, T{});
      }
      const FloatRows<float> rowsK = summedRows(toK + key * g.k.row, g.k.row, g.depth, sumsK),
                             rowsV = summedRows(toV + key * g.v.row, g.v.row, g.columns, sumsV);
      for (int64_t row = first; row < g.rows; row += rowsAtOnce)
        meet({member, row, std::min(rowsAtOnce, g.rows - row), key, keys, row == first}, gradient,
             logsumexp + member * g.rows, rowsQ, rowsK, rowsV);
      if (first < g.rows) {
        storeRows(rowsK, keys, g.depth, toK + key * g.k.row, g.k.row);
        storeRows(rowsV, keys, g.columns, toV + key * g.v.row, g.v.row);
      }
    }
    storeRows(rowsQ, g.rows, g.depth, toQ, g.q.row);
  }

private:
  struct Block {
    int64_t member, row, rows, key, keys;
    bool first; ///< of this block of keys
  };

  void meet(const Block &b, const T *dy, const float *logsumexp, const FloatRows<float> &dq, const FloatRows<float> &dk,
            const FloatRows<float> &dv) {
    const T *q = s.q + g.start(g.q, b.member) + b.row * g.q.row, *gradient = dy + b.row * g.y.row;
    const FloatRows<const float> rowsQ = floatRows(q, g.q.row, b.rows, g.depth, queryRoom),
                                 slopesY = floatRows(gradient, g.y.row, b.rows, g.columns, gradientRoom);
    keysT.multiply(rowsQ.data, rowsQ.step, 1, b.rows, probabilities, scoreStep, false);
    gradients.take(gradient, g.y.row, b.rows, g.columns);
    queries.take(q, g.q.row, b.rows, g.depth);
    for (int64_t i = 0; i < b.rows; ++i) {
      float *line = probabilities + i * scoreStep;
      s.maskScores(line, b.member, b.row + i, b.key, b.keys);
      const float *sum = logsumexp + b.row + i;
      exponentials(line, b.keys, *sum, g.mask.present ? sum[g.members * g.rows] : 0);
      if (s.ratio > 0)
        s.drop(line, slopes + i * scoreStep, b.member, b.row + i, b.key, b.keys);
    }
    gradients.multiply(s.ratio > 0 ? slopes : probabilities, 1, scoreStep, b.keys, dv.data, dv.step, !b.first);
    valuesT.multiply(slopesY.data, slopesY.step, 1, b.rows, slopes, scoreStep, false);
    for (int64_t i = 0; i < b.rows; ++i) {
      const float *line = probabilities + i * scoreStep, product = products[b.row + i];
      float *slope = slopes + i * scoreStep;
      if (s.ratio > 0)
        s.drop(slope, slope, b.member, b.row + i, b.key, b.keys);
#pragma GCC ivdep
      for (int64_t j = 0; j < b.keys; ++j)
        slope[j] = line[j] * (slope[j] - product) * s.scale;
      s.replace(slope, &zero, 0, b.member, b.row + i, b.key, b.keys);
    }
    keysPacked.multiply(slopes, scoreStep, 1, b.rows, dq.data + b.row * dq.step, dq.step, b.key > 0);
    queries.multiply(slopes, 1, scoreStep, b.keys, dk.data, dk.step, !b.first);
  }

  const Step<T> &s;
  const AttentionGeometry &g;
  Packed keysT, valuesT, keysPacked, queries, gradients;
  float *probabilities, *slopes, *products;
  float *queryRoom, *gradientRoom, *sumsQ, *sumsK, *sumsV; ///< of bf16
};

/// Calls task(i, its scratch) for i in [0, count), each thread with scratch of its own.
template <typename Task> void forTasks(int64_t count, float *work, int64_t floats, Task &&task) {
  const int64_t tasks = std::min<int64_t>(threads(), count);
  parallelFor(tasks, [&](int64_t first) {
    for (int64_t i = first; i < count; i += tasks)
      task(i, work + first * floats);
  });
}

uint64_t drawsOf(const Stream &stream, uint64_t key) {
  return randomKey(stream.session.state.seed, key, static_cast<uint64_t>(stream.session.state.draw()));
}

template <typename T> int64_t floatsOf(AttentionPass pass, const AttentionGeometry &g) {
  return pass == AttentionPass::Forward ? ForwardBlock<T>::floats(g) : BackwardMember<T>::floats(g);
}

} // namespace

Attention::Attention(Node node, AttentionPass pass, Shape q, Shape k, Shape v, float scale, AttentionOptions options)
    : Kernel(node), geometry(node, q, k, v, options.mask, options.kept, options.views()), scale(scale),
      causal(options.causal), ratio(options.ratio), key(static_cast<uint64_t>(options.key)) {
  forStored(node, options.type, [&](auto *stored) {
    workspace = sizeof(float) * static_cast<size_t>(threads() * floatsOf<Stored<decltype(stored)>>(pass, geometry));
  });
}

void Attention::forward(Stream &stream, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &mask,
                        const Tensor &kept, const Tensor &y, const Tensor &logsumexp, const Tensor &scratch) const {
  const Scores scores{
      geometry, scale, ratio, causal, drawsOf(stream, key), stream.data<float>(mask), stream.data<float>(kept)};
  float *pSums = stream.data<float>(logsumexp), *work = stream.data<float>(scratch);
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const Step<T> step{scores, stream.data<T>(q), stream.data<T>(k), stream.data<T>(v)};
    T *py = stream.data<T>(y);
    stream.launch(node, "attention", [step, py, pSums, work] {
      const int64_t blocks = (step.g.rows + rowsAtOnce - 1) / rowsAtOnce;
      forTasks(step.g.members * blocks, work, ForwardBlock<T>::floats(step.g), [&](int64_t i, float *own) {
        ForwardBlock<T>(step, own).run(i / blocks, i % blocks * rowsAtOnce, py, pSums);
      });
    });
  });
}

void Attention::backward(Stream &stream, const Tensor &dy, const Tensor &q, const Tensor &k, const Tensor &v,
                         const Tensor &mask, const Tensor &kept, const Tensor &y, const Tensor &logsumexp,
                         const Tensor &dq, const Tensor &dk, const Tensor &dv, const Tensor &scratch) const {
  const Scores scores{
      geometry, scale, ratio, causal, drawsOf(stream, key), stream.data<float>(mask), stream.data<float>(kept)};
  const float *pSums = stream.data<float>(logsumexp);
  float *work = stream.data<float>(scratch);
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const Step<T> step{scores, stream.data<T>(q), stream.data<T>(k), stream.data<T>(v)};
    const T *pdy = stream.data<T>(dy), *py = stream.data<T>(y);
    T *pdq = stream.data<T>(dq), *pdk = stream.data<T>(dk), *pdv = stream.data<T>(dv);
    stream.launch(node, "attention_backward", [step, pdy, py, pSums, pdq, pdk, pdv, work] {
      forTasks(step.g.members, work, BackwardMember<T>::floats(step.g), [&](int64_t member, float *own) {
        BackwardMember<T>(step, own).run(member, pdy, py, pSums, pdq, pdk, pdv);
      });
    });
  });
}

} // namespace sluice
