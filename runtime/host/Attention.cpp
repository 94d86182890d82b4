// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of rows and keys whose scores stay in the cache. Forward tasks are blocks of rows; backward tasks
// are whole members, of which each block of keys meets each block of rows, so that every sum has one order.
#include "runtime/host/AmxTiles.h"
#include "runtime/host/AttentionEngine.h"
#include "runtime/host/FloatRows.h"

#include <utility>

namespace sluice {

namespace {

/// A task of the forward pass: one block of rows of one member.
template <typename T> class ForwardBlock {
public:
  static int64_t floats(const AttentionGeometry &g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    return packedSize(g.depth, keys) + packedSize(keys, g.columns) + rows * (scoreStep + 2) + roomOf<T>(rows, g.depth) +
           roomOf<T>(rows, g.columns);
  }
  ForwardBlock(const AttentionStep<T> &step, float *work) : s(step), g(step.g) {
    const int64_t keys = std::min(g.keys, keysAtOnce), rows = std::min(g.rows, rowsAtOnce);
    keysT.panels = work;
    values.panels = keysT.panels + packedSize(g.depth, keys);
    scores = values.panels + packedSize(keys, g.columns);
    softmax = {scores + rows * scoreStep, scores + rows * (scoreStep + 1)};
    queries = softmax.sums + rows;
    results = queries + roomOf<T>(rows, g.depth);
  }

  void run(int64_t member, int64_t row, T *y, float *logsumexp) {
    const int64_t rows = std::min(rowsAtOnce, g.rows - row), visible = s.keysOf(row + rows);
    T *place = y + g.start(g.y, member) + row * g.y.row;
    const FloatRows<float> to = summedRows(place, g.y.row, g.columns, results);
    const FloatRows<const float> q =
        floatRows(s.q + g.start(g.q, member) + row * g.q.row, g.q.row, rows, g.depth, queries);
    const T *k = s.k + g.start(g.k, member), *v = s.v + g.start(g.v, member);
    softmax.begin(rows);
    for (int64_t key = 0; key < visible; key += keysAtOnce) {
      const int64_t keys = std::min(keysAtOnce, visible - key);
      keysT.take(k + key * g.k.row, g.k.row, g.depth, keys, true);
      values.take(v + key * g.v.row, g.v.row, keys, g.columns);
      keysT.multiply(q.data, q.step, 1, rows, scores, scoreStep, false);
      for (int64_t i = 0; i < rows; ++i)
        softmax.addKeys(s, i, {member, row, rows, key, keys}, scores + i * scoreStep, to.data + i * to.step);
      values.multiply(scores, scoreStep, 1, rows, to.data, to.step, key > 0);
    }
    for (int64_t i = 0; i < rows; ++i)
      softmax.end(s, i, to.data + i * to.step, logsumexp + member * g.rows + row + i);
    storeRows(to, rows, g.columns, place, g.y.row);
  }

private:
  const AttentionStep<T> &s;
  const AttentionGeometry &g;
  Packed keysT, values;
  SoftmaxRows softmax;
  float *scores, *queries, *results;
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
  BackwardMember(const AttentionStep<T> &step, float *work) : s(step), g(step.g) {
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
    s.sumProducts(gradient, result, products);
    T *toQ = dq + g.start(g.q, member), *toK = dk + g.start(g.k, member), *toV = dv + g.start(g.v, member);
    const FloatRows<float> rowsQ = summedRows(toQ, g.q.row, g.depth, sumsQ);
    for (int64_t key = 0; key < g.keys; key += keysAtOnce) {
      const int64_t keys = std::min(keysAtOnce, g.keys - key), first = s.causal ? key / rowsAtOnce * rowsAtOnce : 0;
      const T *k = s.k + g.start(g.k, member) + key * g.k.row, *v = s.v + g.start(g.v, member) + key * g.v.row;
      keysT.take(k, g.k.row, g.depth, keys, true);
      valuesT.take(v, g.v.row, g.columns, keys, true);
      keysPacked.take(k, g.k.row, keys, g.depth);
      if (first >= g.rows)
        s.clearKeys({member, 0, 0, key, keys}, toK, toV);
      const FloatRows<float> rowsK = summedRows(toK + key * g.k.row, g.k.row, g.depth, sumsK),
                             rowsV = summedRows(toV + key * g.v.row, g.v.row, g.columns, sumsV);
      for (int64_t row = first; row < g.rows; row += rowsAtOnce)
        meet({{member, row, std::min(rowsAtOnce, g.rows - row), key, keys}, row == first}, gradient,
             logsumexp + member * g.rows, rowsQ, rowsK, rowsV);
      if (first < g.rows) {
        storeRows(rowsK, keys, g.depth, toK + key * g.k.row, g.k.row);
        storeRows(rowsV, keys, g.columns, toV + key * g.v.row, g.v.row);
      }
    }
    storeRows(rowsQ, g.rows, g.depth, toQ, g.q.row);
  }

private:
  struct Block : ScoreBlock {
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
    for (int64_t i = 0; i < b.rows; ++i)
      makeProbabilities(s, i, b, logsumexp, probabilities + i * scoreStep, slopes + i * scoreStep);
    gradients.multiply(s.ratio > 0 ? slopes : probabilities, 1, scoreStep, b.keys, dv.data, dv.step, !b.first);
    valuesT.multiply(slopesY.data, slopesY.step, 1, b.rows, slopes, scoreStep, false);
    for (int64_t i = 0; i < b.rows; ++i)
      makeSlopes(s, i, b, products[b.row + i], probabilities + i * scoreStep, slopes + i * scoreStep);
    keysPacked.multiply(slopes, scoreStep, 1, b.rows, dq.data + b.row * dq.step, dq.step, b.key > 0);
    queries.multiply(slopes, 1, scoreStep, b.keys, dk.data, dk.step, !b.first);
  }

  const AttentionStep<T> &s;
  const AttentionGeometry &g;
  Packed keysT, valuesT, keysPacked, queries, gradients;
  float *probabilities, *slopes, *products;
  float *queryRoom, *gradientRoom, *sumsQ, *sumsK, *sumsV; ///< of bf16
};

uint64_t drawsOf(const Stream &stream, uint64_t key) {
  return randomKey(stream.session.state.seed, key, static_cast<uint64_t>(stream.session.state.draw()));
}

template <typename T> int64_t floatsOf(AttentionPass pass, const AttentionGeometry &g) {
  return pass == AttentionPass::Forward ? ForwardBlock<T>::floats(g) : BackwardMember<T>::floats(g);
}

size_t floatBytes(AttentionPass pass, const AttentionGeometry &g, DataType type) {
  const int64_t floats = type == DataType::BF16 ? floatsOf<BFloat16>(pass, g) : floatsOf<float>(pass, g);
  return sizeof(float) * static_cast<size_t>(threads() * floats);
}

} // namespace

std::vector<AttentionCandidate> attentionCandidates(AttentionPass pass, const AttentionGeometry &g, DataType type) {
  if (type != DataType::BF16 || !amx::isOffered())
    return {{"", floatBytes(pass, g, type), 1}};
  return {{amxAttention, amxAttentionBytes(pass, g), 0.3}, {floatAttention, floatBytes(pass, g, type), 1}};
}

/// There is one where AMX computes.
struct Attention::Impl {};

Attention::Attention(Node node, AttentionPass pass, Shape q, Shape k, Shape v, float scale, AttentionOptions options)
    : Kernel(node), geometry(node, q, k, v, options.mask, options.kept, options.views()), scale(scale),
      causal(options.causal), ratio(options.ratio), key(static_cast<uint64_t>(options.key)) {
  refuseF16(node, options.type);
  const std::string name = options.algorithm.name;
  if (name.empty() || name == floatAttention) {
    workspace = floatBytes(pass, geometry, options.type);
    return;
  }
  if (name != amxAttention || options.type != DataType::BF16 || !amx::isOffered())
    throw MemoryNotAvailable(std::string("'") + node + "': this processor does not offer the algorithm '" + name +
                             "'; compile the model again on it");
  impl = std::make_shared<const Impl>();
  workspace = amxAttentionBytes(pass, geometry);
}

void Attention::forward(Stream &stream, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &mask,
                        const Tensor &kept, const Tensor &y, const Tensor &logsumexp, const Tensor &scratch) const {
  const Scores scores{
      geometry, scale, ratio, causal, drawsOf(stream, key), stream.data<float>(mask), stream.data<float>(kept)};
  float *pSums = stream.data<float>(logsumexp), *work = stream.data<float>(scratch);
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const AttentionStep<T> step{scores, stream.data<T>(q), stream.data<T>(k), stream.data<T>(v)};
    T *py = stream.data<T>(y);
    stream.launch(node, "attention", [step, py, pSums, work, onAmx = impl != nullptr] {
      if constexpr (std::is_same_v<T, BFloat16>)
        if (onAmx)
          return amxAttentionForward(step, py, pSums, work);
      const int64_t blocks = (step.g.rows + rowsAtOnce - 1) / rowsAtOnce;
      forAttentionTasks(step.g.members * blocks, work, ForwardBlock<T>::floats(step.g), [&](int64_t i, float *own) {
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
    const AttentionStep<T> step{scores, stream.data<T>(q), stream.data<T>(k), stream.data<T>(v)};
    const T *pdy = stream.data<T>(dy), *py = stream.data<T>(y);
    T *pdq = stream.data<T>(dq), *pdk = stream.data<T>(dk), *pdv = stream.data<T>(dv);
    stream.launch(node, "attention_backward", [step, pdy, py, pSums, pdq, pdk, pdv, work, onAmx = impl != nullptr] {
      if constexpr (std::is_same_v<T, BFloat16>)
        if (onAmx)
          return amxAttentionBackward(step, pdy, py, pSums, {pdq, pdk, pdv}, work);
      forAttentionTasks(step.g.members, work, BackwardMember<T>::floats(step.g), [&](int64_t member, float *own) {
        BackwardMember<T>(step, own).run(member, pdy, py, pSums, pdq, pdk, pdv);
      });
    });
  });
}

} // namespace sluice
