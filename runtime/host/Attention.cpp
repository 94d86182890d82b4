// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of rows and keys whose scores stay in the cache. Forward tasks are blocks of rows; backward tasks
// are whole members, of which each block of keys meets each block of rows, so that every sum has one order.
#include "runtime/Attention.h"

#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Tile.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {

namespace {

constexpr int64_t rowsAtOnce = 96, keysAtOnce = 256;
/// From one row of scores to the next: lines of a column fall into different sets of the cache.
constexpr int64_t scoreStep = keysAtOnce + 16;
constexpr float infinity = __builtin_huge_valf(), zero = 0;

int64_t packedSize(int64_t depths, int64_t columns) {
  return depths * tile::panels(columns) * tile::panelColumns(columns);
}

/// The right factor of a product, packed: op(b) [depths, columns], `transposed`: b is [columns, depths].
struct Packed {
  float *panels;
  int64_t depths = 0, columns = 0;

  void take(const float *b, int64_t step, int64_t newDepths, int64_t newColumns, bool transposed = false) {
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

/// What all tasks of a call share, and the pieces of both passes.
struct Step {
  AttentionGeometry g;
  float scale, ratio;
  bool causal;
  uint64_t draws; ///< key of this step's draws
  const float *q, *k, *v, *mask, *kept;

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

float largestOf(const float *x, int64_t count) {
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

float sumOf(const float *x, int64_t count) {
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
void exponentials(float *x, int64_t count, float shift, float rest = 0) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i)
    x[i] = exponential(x[i] - shift - rest);
}

/// A task of the forward pass: one block of rows of one member.
class ForwardBlock {
public:
  static int64_t floats(const AttentionGeometry &g) {
    const int64_t keys = std::min(g.keys, keysAtOnce);
    return packedSize(g.depth, keys) + packedSize(keys, g.columns) + std::min(g.rows, rowsAtOnce) * (scoreStep + 2);
  }
  ForwardBlock(const Step &step, float *work) : s(step), g(step.g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    keysT.panels = work;
    values.panels = keysT.panels + packedSize(g.depth, keys);
    scores = values.panels + packedSize(keys, g.columns);
    largest = scores + rows * scoreStep;
    sums = largest + rows;
  }

  void run(int64_t member, int64_t row, float *y, float *logsumexp) {
    const int64_t rows = std::min(rowsAtOnce, g.rows - row), visible = s.keysOf(row + rows);
    float *to = y + g.start(g.y, member) + row * g.y.row;
    const float *q = s.q + g.start(g.q, member) + row * g.q.row;
    const float *k = s.k + g.start(g.k, member), *v = s.v + g.start(g.v, member);
    std::fill_n(largest, rows, -infinity);
    std::fill_n(sums, rows, 0.0f);
    for (int64_t key = 0; key < visible; key += keysAtOnce) {
      const int64_t keys = std::min(keysAtOnce, visible - key);
      keysT.take(k + key * g.k.row, g.k.row, g.depth, keys, true);
      values.take(v + key * g.v.row, g.v.row, keys, g.columns);
      keysT.multiply(q, g.q.row, 1, rows, scores, scoreStep, false);
      for (int64_t i = 0; i < rows; ++i)
        addKeys(i, member, row + i, key, keys, to + i * g.y.row);
      values.multiply(scores, scoreStep, 1, rows, to, g.y.row, key > 0);
    }
    for (int64_t i = 0; i < rows; ++i) {
      const float factor = sums[i] == 0 ? 0 : 1 / sums[i];
      for (int64_t c = 0; c < g.columns; ++c)
        to[i * g.y.row + c] *= factor;
      const float most = sums[i] == 0 ? infinity : largest[i], rest = sums[i] == 0 ? 0 : std::log(sums[i]);
      float *sum = logsumexp + member * g.rows + row + i;
      *sum = g.mask.present ? most : most + rest;
      if (g.mask.present)
        sum[g.members * g.rows] = rest;
    }
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

  const Step &s;
  const AttentionGeometry &g;
  Packed keysT, values;
  float *scores, *largest, *sums;
};

/// A task of the backward pass: one member. With p the probabilities, and d(.) what dropout makes of a tensor:
/// dv = d(p)^T dy, ds = p * (d(dy v^T) - rows' sums of dy * y), dq = scale ds k, dk = scale ds^T q.
class BackwardMember {
public:
  static int64_t floats(const AttentionGeometry &g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    return packedSize(g.depth, keys) + packedSize(g.columns, keys) + packedSize(keys, g.depth) +
           packedSize(rows, g.depth) + packedSize(rows, g.columns) + 2 * rows * scoreStep + g.rows;
  }
  BackwardMember(const Step &step, float *work) : s(step), g(step.g) {
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
  }

  void run(int64_t member, const float *dy, const float *y, const float *logsumexp, float *dq, float *dk, float *dv) {
    const float *gradient = dy + g.start(g.y, member), *result = y + g.start(g.y, member);
    for (int64_t row = 0; row < g.rows; ++row) {
      float sum = 0;
      for (int64_t c = 0; c < g.columns; ++c)
        sum += gradient[row * g.y.row + c] * result[row * g.y.row + c];
      products[row] = sum;
    }
    float *toQ = dq + g.start(g.q, member), *toK = dk + g.start(g.k, member), *toV = dv + g.start(g.v, member);
    for (int64_t key = 0; key < g.keys; key += keysAtOnce) {
      const int64_t keys = std::min(keysAtOnce, g.keys - key), first = s.causal ? key / rowsAtOnce * rowsAtOnce : 0;
      const float *k = s.k + g.start(g.k, member) + key * g.k.row, *v = s.v + g.start(g.v, member) + key * g.v.row;
      keysT.take(k, g.k.row, g.depth, keys, true);
      valuesT.take(v, g.v.row, g.columns, keys, true);
      keysPacked.take(k, g.k.row, keys, g.depth);
      for (int64_t i = key; first >= g.rows && i < key + keys; ++i) { // no row sees them
        std::fill_n(toK + i * g.k.row, g.depth, 0.0f);
        std::fill_n(toV + i * g.v.row, g.columns, 0.0f);
      }
      for (int64_t row = first; row < g.rows; row += rowsAtOnce)
        meet({member, row, std::min(rowsAtOnce, g.rows - row), key, keys, row == first}, gradient,
             logsumexp + member * g.rows, toQ, toK, toV);
    }
  }

private:
  struct Block {
    int64_t member, row, rows, key, keys;
    bool first; ///< of this block of keys
  };

  void meet(const Block &b, const float *dy, const float *logsumexp, float *dq, float *dk, float *dv) {
    const float *q = s.q + g.start(g.q, b.member) + b.row * g.q.row, *gradient = dy + b.row * g.y.row;
    keysT.multiply(q, g.q.row, 1, b.rows, probabilities, scoreStep, false);
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
    gradients.multiply(s.ratio > 0 ? slopes : probabilities, 1, scoreStep, b.keys, dv + b.key * g.v.row, g.v.row,
                       !b.first);
    valuesT.multiply(gradient, g.y.row, 1, b.rows, slopes, scoreStep, false);
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
    keysPacked.multiply(slopes, scoreStep, 1, b.rows, dq + b.row * g.q.row, g.q.row, b.key > 0);
    queries.multiply(slopes, 1, scoreStep, b.keys, dk + b.key * g.k.row, g.k.row, !b.first);
  }

  const Step &s;
  const AttentionGeometry &g;
  Packed keysT, valuesT, keysPacked, queries, gradients;
  float *probabilities, *slopes, *products;
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

int64_t floatsOf(AttentionPass pass, const AttentionGeometry &g) {
  return pass == AttentionPass::Forward ? ForwardBlock::floats(g) : BackwardMember::floats(g);
}

} // namespace

Attention::Attention(Node node, AttentionPass pass, Shape q, Shape k, Shape v, Shape mask, Shape kept, float scale,
                     bool causal, float ratio, int64_t key, DataType, Algorithm, Shape qView, Shape kView, Shape vView,
                     Shape yView)
    : Kernel(node), geometry(node, q, k, v, mask, kept, {qView, kView, vView, yView}), scale(scale), causal(causal),
      ratio(ratio), key(static_cast<uint64_t>(key)) {
  workspace = sizeof(float) * static_cast<size_t>(threads() * floatsOf(pass, geometry));
}

void Attention::forward(Stream &stream, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &mask,
                        const Tensor &kept, const Tensor &y, const Tensor &logsumexp, const Tensor &scratch) const {
  requireF32(node, y.type);
  const Step step = {geometry,
                     scale,
                     ratio,
                     causal,
                     drawsOf(stream, key),
                     stream.data<float>(q),
                     stream.data<float>(k),
                     stream.data<float>(v),
                     stream.data<float>(mask),
                     stream.data<float>(kept)};
  float *py = stream.data<float>(y), *pSums = stream.data<float>(logsumexp), *work = stream.data<float>(scratch);
  stream.launch(node, "attention", [step, py, pSums, work] {
    const int64_t blocks = (step.g.rows + rowsAtOnce - 1) / rowsAtOnce;
    forTasks(step.g.members * blocks, work, ForwardBlock::floats(step.g), [&](int64_t i, float *own) {
      ForwardBlock(step, own).run(i / blocks, i % blocks * rowsAtOnce, py, pSums);
    });
  });
}

void Attention::backward(Stream &stream, const Tensor &dy, const Tensor &q, const Tensor &k, const Tensor &v,
                         const Tensor &mask, const Tensor &kept, const Tensor &y, const Tensor &logsumexp,
                         const Tensor &dq, const Tensor &dk, const Tensor &dv, const Tensor &scratch) const {
  requireF32(node, y.type);
  const Step step = {geometry,
                     scale,
                     ratio,
                     causal,
                     drawsOf(stream, key),
                     stream.data<float>(q),
                     stream.data<float>(k),
                     stream.data<float>(v),
                     stream.data<float>(mask),
                     stream.data<float>(kept)};
  const float *pdy = stream.data<float>(dy), *py = stream.data<float>(y), *pSums = stream.data<float>(logsumexp);
  float *pdq = stream.data<float>(dq), *pdk = stream.data<float>(dk), *pdv = stream.data<float>(dv);
  float *work = stream.data<float>(scratch);
  stream.launch(node, "attention_backward", [step, pdy, py, pSums, pdq, pdk, pdv, work] {
    forTasks(step.g.members, work, BackwardMember::floats(step.g),
             [&](int64_t member, float *own) { BackwardMember(step, own).run(member, pdy, py, pSums, pdq, pdk, pdv); });
  });
}

} // namespace sluice
