// SPDX-License-Identifier: Apache-2.0
// Attention of bf16 whose products AMX computes. As Attention.cpp, but that a forward task sees more rows, for which it
// packs keys once, and that the gradients of keys are summed transposed, so that probabilities are a right factor.
#include "runtime/host/AmxTiles.h"
#include "runtime/host/AttentionEngine.h"
#include "runtime/host/FloatRows.h"

#include <utility>

namespace sluice {

namespace {

constexpr int64_t rowsOfTask = 4 * rowsAtOnce;

/// Hands out parts of a task's scratch, each at a multiple of 64 bytes; counts where there is none.
class Room {
public:
  explicit Room(float *from) : from(from) {}
  float *floats(int64_t count) {
    float *at = from ? from + used : nullptr;
    used += amx::whole(count, 16);
    return at;
  }
  BFloat16 *factor(int64_t elements) { return reinterpret_cast<BFloat16 *>(floats(elements / 2)); }
  int64_t size() const { return used; }

private:
  float *from;
  int64_t used = 0;
};

int64_t wholeSide(int64_t extent) { return amx::whole(extent, amx::side); }

/// Adjacent rows of floats that hold whole tiles.
struct Sums {
  float *data;
  int64_t step;
  Sums(Room &room, int64_t rows, int64_t columns)
      : data(room.floats(wholeSide(rows) * wholeSide(columns))), step(wholeSide(columns)) {}
};

class ForwardRows {
public:
  ForwardRows(const AttentionStep<BFloat16> &step, Room room)
      : s(step), g(step.g), keys(std::min(g.keys, keysAtOnce)), most(std::min(g.rows, rowsOfTask)),
        rows(std::min(g.rows, rowsAtOnce)), keysT(room.factor(amx::rightSize(g.depth, keys))),
        values(room.factor(amx::rightSize(keys, g.columns))), queries(room.factor(amx::leftSize(most, g.depth))),
        probabilities(room.factor(amx::leftSize(rows, keys))), scores(room.floats(wholeSide(rows) * scoreStep)),
        results(room, most, g.columns), softmax{room.floats(most), room.floats(most)}, size(room.size()) {}

  int64_t floats() const { return size; }

  void run(int64_t member, int64_t row, BFloat16 *y, float *logsumexp) {
    const amx::Tiles tiles;
    const int64_t count = std::min(rowsOfTask, g.rows - row), visible = s.keysOf(row + count);
    softmax.begin(count);
    amx::packLeft(amx::Rows<BFloat16>{s.q + g.start(g.q, member) + row * g.q.row, g.q.row, count, g.depth}, queries);
    for (int64_t key = 0; key < visible; key += keysAtOnce) {
      const int64_t all = std::min(keysAtOnce, visible - key);
      amx::packRightTransposed({s.k + g.start(g.k, member) + key * g.k.row, g.k.row, all, g.depth}, keysT);
      amx::packRight(amx::Rows<BFloat16>{s.v + g.start(g.v, member) + key * g.v.row, g.v.row, all, g.columns}, values);
      for (int64_t first = 0; first < count; first += rowsAtOnce) {
        const int64_t of = std::min(rowsAtOnce, count - first);
        const int64_t seen = std::min(all, s.keysOf(row + first + of) - key);
        if (seen > 0)
          meet({member, row + first, of, key, seen}, first, all);
      }
    }
    BFloat16 *place = y + g.start(g.y, member) + row * g.y.row;
    for (int64_t i = 0; i < count; ++i)
      softmax.end(s, i, results.data + i * results.step, logsumexp + member * g.rows + row + i);
    storeRows({results.data, results.step}, count, g.columns, place, g.y.row);
  }

private:
  /// Rows of the task from `first` on and what they see of a block of `all` keys.
  void meet(const ScoreBlock &b, int64_t first, int64_t all) {
    amx::multiply(queries + first * amx::whole(g.depth, amx::deep), keysT, {b.rows, g.depth, b.keys}, scores, scoreStep,
                  false);
    float *to = results.data + first * results.step;
    const SoftmaxRows own{softmax.largest + first, softmax.sums + first};
    for (int64_t i = 0; i < b.rows; ++i)
      own.addKeys(s, i, b, scores + i * scoreStep, to + i * results.step);
    amx::packLeft(amx::Rows<float>{scores, scoreStep, b.rows, b.keys}, probabilities);
    amx::multiply(probabilities, values, {b.rows, b.keys, g.columns}, to, results.step, b.key > 0, all);
  }

  const AttentionStep<BFloat16> &s;
  const AttentionGeometry &g;
  int64_t keys, most, rows; ///< at most: of a block, of a task, of a block
  BFloat16 *keysT, *values, *queries, *probabilities;
  float *scores;
  Sums results;
  SoftmaxRows softmax;
  int64_t size;
};

/// A member's gradients; see BackwardMember of Attention.cpp.
class BackwardMember {
public:
  BackwardMember(const AttentionStep<BFloat16> &step, Room room)
      : s(step), g(step.g), keys(std::min(g.keys, keysAtOnce)), rows(std::min(g.rows, rowsAtOnce)),
        blocks((g.rows + rowsAtOnce - 1) / rowsAtOnce), keysT(room.factor(amx::rightSize(g.depth, keys))),
        valuesT(room.factor(amx::rightSize(g.columns, keys))), keysRight(room.factor(amx::rightSize(keys, g.depth))),
        queries(room.factor(blocks * querySize())), queriesT(room.factor(blocks * queryTSize())),
        gradients(room.factor(blocks * gradientSize())), gradientsT(room.factor(blocks * gradientTSize())),
        pairs(room.factor(amx::rightSize(rows, keys))), slopesLeft(room.factor(amx::leftSize(rows, keys))),
        probabilities(room.floats(wholeSide(rows) * scoreStep)), slopes(room.floats(wholeSide(rows) * scoreStep)),
        products(room.floats(g.rows)), sumsQ(room, g.rows, g.depth), sumsK(room, g.depth, keys),
        sumsV(room, g.columns, keys), size(room.size()) {}

  int64_t floats() const { return size; }

  void run(int64_t member, const BFloat16 *dy, const BFloat16 *y, const float *logsumexp,
           const AttentionGradients &to) {
    const amx::Tiles tiles;
    const BFloat16 *gradient = dy + g.start(g.y, member);
    s.sumProducts(gradient, y + g.start(g.y, member), products);
    packRows(s.q + g.start(g.q, member), gradient);
    BFloat16 *toK = to.dk + g.start(g.k, member), *toV = to.dv + g.start(g.v, member);
    for (int64_t key = 0; key < g.keys; key += keysAtOnce) {
      const int64_t all = std::min(keysAtOnce, g.keys - key), first = s.causal ? key / rowsAtOnce * rowsAtOnce : 0;
      if (first >= g.rows) {
        s.clearKeys({member, 0, 0, key, all}, toK, toV);
        continue;
      }
      packKeys(member, key, all);
      std::fill_n(sumsK.data, wholeSide(g.depth) * sumsK.step, 0.0f);
      std::fill_n(sumsV.data, wholeSide(g.columns) * sumsV.step, 0.0f);
      for (int64_t row = first; row < g.rows; row += rowsAtOnce) {
        const int64_t count = std::min(rowsAtOnce, g.rows - row), seen = std::min(all, s.keysOf(row + count) - key);
        if (seen > 0)
          meet({member, row, count, key, seen}, all, logsumexp + member * g.rows);
      }
      amx::storeTransposed({sumsK.data, sumsK.step, g.depth, all}, toK + key * g.k.row, g.k.row);
      amx::storeTransposed({sumsV.data, sumsV.step, g.columns, all}, toV + key * g.v.row, g.v.row);
    }
    storeRows({sumsQ.data, sumsQ.step}, g.rows, g.depth, to.dq + g.start(g.q, member), g.q.row);
  }

private:
  int64_t querySize() const { return amx::leftSize(rows, g.depth); }
  int64_t queryTSize() const { return amx::leftSize(g.depth, rows); }
  int64_t gradientSize() const { return amx::leftSize(rows, g.columns); }
  int64_t gradientTSize() const { return amx::leftSize(g.columns, rows); }

  /// What all blocks of keys meet.
  void packRows(const BFloat16 *q, const BFloat16 *dy) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = block * rowsAtOnce, count = std::min(rowsAtOnce, g.rows - row);
      const amx::Rows<BFloat16> ofQ{q + row * g.q.row, g.q.row, count, g.depth},
          ofY{dy + row * g.y.row, g.y.row, count, g.columns};
      amx::packLeft(ofQ, queries + block * querySize());
      amx::packLeftTransposed(ofQ, queriesT + block * queryTSize());
      amx::packLeft(ofY, gradients + block * gradientSize());
      amx::packLeftTransposed(ofY, gradientsT + block * gradientTSize());
    }
  }
  void packKeys(int64_t member, int64_t key, int64_t all) {
    const amx::Rows<BFloat16> k{s.k + g.start(g.k, member) + key * g.k.row, g.k.row, all, g.depth};
    amx::packRightTransposed(k, keysT);
    amx::packRight(k, keysRight);
    amx::packRightTransposed({s.v + g.start(g.v, member) + key * g.v.row, g.v.row, all, g.columns}, valuesT);
  }

  /// What a block of rows sees of one of `all` keys.
  void meet(const ScoreBlock &b, int64_t all, const float *logsumexp) {
    const int64_t block = b.row / rowsAtOnce;
    const amx::Rows<float> dropped{s.ratio > 0 ? slopes : probabilities, scoreStep, b.rows, b.keys},
        ofSlopes{slopes, scoreStep, b.rows, b.keys};
    amx::multiply(queries + block * querySize(), keysT, {b.rows, g.depth, b.keys}, probabilities, scoreStep, false);
    for (int64_t i = 0; i < b.rows; ++i)
      makeProbabilities(s, i, b, logsumexp, probabilities + i * scoreStep, slopes + i * scoreStep);
    amx::packRight(dropped, pairs);
    amx::multiply(gradientsT + block * gradientTSize(), pairs, {g.columns, b.rows, b.keys}, sumsV.data, sumsV.step,
                  true);
    amx::multiply(gradients + block * gradientSize(), valuesT, {b.rows, g.columns, b.keys}, slopes, scoreStep, false);
    for (int64_t i = 0; i < b.rows; ++i)
      makeSlopes(s, i, b, products[b.row + i], probabilities + i * scoreStep, slopes + i * scoreStep);
    amx::packLeft(ofSlopes, slopesLeft);
    amx::multiply(slopesLeft, keysRight, {b.rows, b.keys, g.depth}, sumsQ.data + b.row * sumsQ.step, sumsQ.step,
                  b.key > 0, all);
    amx::packRight(ofSlopes, pairs);
    amx::multiply(queriesT + block * queryTSize(), pairs, {g.depth, b.rows, b.keys}, sumsK.data, sumsK.step, true);
  }

  const AttentionStep<BFloat16> &s;
  const AttentionGeometry &g;
  int64_t keys, rows, blocks; ///< at most, of a block; how many of rows
  BFloat16 *keysT, *valuesT, *keysRight, *queries, *queriesT, *gradients, *gradientsT, *pairs, *slopesLeft;
  float *probabilities, *slopes, *products;
  Sums sumsQ, sumsK, sumsV;
  int64_t size;
};

int64_t floatsOfTask(AttentionPass pass, const AttentionGeometry &g) {
  const AttentionStep<BFloat16> step{{g, 0, 0, false, 0, nullptr, nullptr}, nullptr, nullptr, nullptr};
  return pass == AttentionPass::Forward ? ForwardRows(step, Room(nullptr)).floats()
                                        : BackwardMember(step, Room(nullptr)).floats();
}

} // namespace

size_t amxAttentionBytes(AttentionPass pass, const AttentionGeometry &g) {
  return sizeof(float) * static_cast<size_t>(threads() * floatsOfTask(pass, g));
}

void amxAttentionForward(const AttentionStep<BFloat16> &step, BFloat16 *y, float *logsumexp, float *work) {
  const int64_t blocks = (step.g.rows + rowsOfTask - 1) / rowsOfTask;
  forAttentionTasks(step.g.members * blocks, work, floatsOfTask(AttentionPass::Forward, step.g),
                    [&](int64_t i, float *own) {
                      ForwardRows(step, Room(own)).run(i / blocks, i % blocks * rowsOfTask, y, logsumexp);
                    });
}

void amxAttentionBackward(const AttentionStep<BFloat16> &step, const BFloat16 *dy, const BFloat16 *y,
                          const float *logsumexp, const AttentionGradients &to, float *work) {
  forAttentionTasks(
      step.g.members, work, floatsOfTask(AttentionPass::Backward, step.g),
      [&](int64_t member, float *own) { BackwardMember(step, Room(own)).run(member, dy, y, logsumexp, to); });
}

} // namespace sluice
