// SPDX-License-Identifier: Apache-2.0
// What AMX computes on the host: products of tiles, and attention of bf16 against the one whose products are floats.
// Where there is no AMX all of it is skipped but for what is refused there.
#include "test/unit/runtime/Harness.h"

#include "runtime/Attention.h"
#include "runtime/host/AmxTiles.h"
#include "runtime/host/AttentionEngine.h"

#include <cfloat>
#include <numeric>

namespace sluice {
namespace {

#define NEEDS_AMX                                                                                                      \
  if (!amx::isOffered())                                                                                               \
  GTEST_SKIP() << "this processor has no AMX"

// ---- Tiles

using Halves = std::vector<BFloat16>;

Halves randomHalves(int64_t count, unsigned seed) {
  Halves halves;
  for (double value : randomNumbers(count, seed))
    halves.push_back(bfloat16Of(static_cast<float>(value)));
  return halves;
}

/// Rows x columns with rows `step` apart.
struct Matrix {
  int64_t rows, columns, step;
  Halves data;
  Matrix(int64_t rows, int64_t columns, unsigned seed)
      : rows(rows), columns(columns), step(columns + 5), data(randomHalves(rows * step, seed)) {}
  double at(int64_t row, int64_t column) const {
    return static_cast<double>(widened(data[static_cast<size_t>(row * step + column)]));
  }
  amx::Rows<BFloat16> view() const { return {data.data(), step, rows, columns}; }
  Matrix transposed() const {
    Matrix t(columns, rows, 1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        t.data[static_cast<size_t>(j * t.step + i)] = data[static_cast<size_t>(i * step + j)];
    return t;
  }
};

template <typename T> struct Aligned {
  std::vector<T> room;
  T *data;
  explicit Aligned(int64_t count) : room(static_cast<size_t>(count) + 64 / sizeof(T)) {
    void *at = room.data();
    size_t space = room.size() * sizeof(T);
    data = static_cast<T *>(std::align(64, static_cast<size_t>(count) * sizeof(T), at, space));
  }
};

void expectProduct(const Matrix &a, const Matrix &b, const float *c, int64_t step, double factor) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.columns; ++k)
        sum += a.at(i, k) * b.at(k, j);
      ASSERT_NEAR(static_cast<double>(c[i * step + j]), factor * sum, 1e-4 * (1 + std::abs(sum))) << i << ", " << j;
    }
}

TEST(AmxTiles, MultiplyWhatIsPackedInAnyWay) {
  NEEDS_AMX;
  const amx::Tiles tiles;
  for (const amx::Extents &e : {amx::Extents{16, 32, 16}, {96, 64, 256}, {33, 40, 17}, {5, 3, 2}, {48, 100, 49}}) {
    const Matrix a(e.rows, e.depths, 1), b(e.depths, e.columns, 2);
    const int64_t step = amx::whole(e.columns, 16) + 16;
    Aligned<BFloat16> left(amx::leftSize(e.rows, e.depths)), right(amx::rightSize(e.depths, e.columns));
    Aligned<float> c(step * amx::whole(e.rows, 16));
    for (int way = 0; way < 4; ++way) {
      way & 1 ? amx::packLeft(a.view(), left.data) : amx::packLeftTransposed(a.transposed().view(), left.data);
      way & 2 ? amx::packRight(b.view(), right.data) : amx::packRightTransposed(b.transposed().view(), right.data);
      amx::multiply(left.data, right.data, e, c.data, step, false);
      expectProduct(a, b, c.data, step, 1);
      amx::multiply(left.data, right.data, e, c.data, step, true);
      expectProduct(a, b, c.data, step, 2);
    }
  }
}

TEST(AmxTiles, MultiplyTheFirstDepthsOfARightFactor) {
  NEEDS_AMX;
  const amx::Tiles tiles;
  const Matrix a(20, 40, 1), whole(100, 50, 2);
  Matrix b = whole;
  b.rows = a.columns;
  Aligned<BFloat16> left(amx::leftSize(20, 40)), right(amx::rightSize(100, 50));
  Aligned<float> c(64 * 32);
  amx::packLeft(a.view(), left.data); // zeros from depth 40 on
  amx::packRight(whole.view(), right.data);
  amx::multiply(left.data, right.data, {20, 40, 50}, c.data, 64, false, 100);
  expectProduct(a, b, c.data, 64, 1);
}

TEST(AmxTiles, StoreTransposesWithinTheirRows) {
  NEEDS_AMX;
  for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{16, 16}, {40, 23}, {3, 70}}) {
    const int64_t step = amx::whole(columns, 16), toStep = rows + 3;
    std::vector<float> from(static_cast<size_t>(amx::whole(rows, 16) * step));
    std::iota(from.begin(), from.end(), 0.5f);
    Halves to(static_cast<size_t>(columns * toStep), BFloat16{7});
    amx::storeTransposed({from.data(), step, rows, columns}, to.data(), toStep);
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t j = 0; j < toStep; ++j)
        EXPECT_EQ(to[static_cast<size_t>(i * toStep + j)].bits,
                  j < rows ? bfloat16Of(from[static_cast<size_t>(j * step + i)]).bits : 7)
            << i << ", " << j;
  }
}

// ---- Attention

struct Case {
  const char *name;
  Shape q, k, v, mask;
  bool causal;
  float ratio = 0;
  bool kept = false; ///< every third number of the mask takes the score's place
};
std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

class AmxAttention : public testing::TestWithParam<Case> {
protected:
  const Case &c = GetParam();
  const AttentionGeometry g{"attention", c.q, c.k, c.v, c.mask};
  Shape y = c.q;
  void SetUp() override { y.dims[y.rank - 1] = g.columns; }

  Numbers numbers(const Shape &shape, unsigned seed) const {
    Numbers values = randomNumbers(shape.elements(), seed);
    for (double &value : values)
      value = static_cast<double>(widened(bfloat16Of(static_cast<float>(value))));
    return values;
  }
  /// Every fifth number hides its key.
  Numbers maskNumbers() const {
    Numbers values = randomNumbers(c.mask.elements(), 5);
    for (size_t i = 0; i < values.size(); i += 5)
      values[i] = i % 2 ? -static_cast<double>(FLT_MAX) : -HUGE_VAL;
    return values;
  }

  /// y, logsumexp, dq, dk, dv.
  std::vector<Numbers> run(const char *algorithm) const {
    Harness h;
    auto input = [&](const Shape &shape, unsigned seed) {
      return h.tensor(shape, Layout::RowMajor, numbers(shape, seed), DataType::BF16);
    };
    const Tensor q = input(c.q, 1), k = input(c.k, 2), v = input(c.v, 3), dy = input(y, 4);
    const Tensor mask = c.mask.rank ? h.tensor(c.mask, Layout::RowMajor, maskNumbers()) : none;
    Numbers kept(static_cast<size_t>(c.mask.rank ? c.mask.elements() : 0), 1);
    for (size_t i = 0; i < kept.size(); i += 3)
      kept[i] = 0;
    const Tensor keeps = c.kept ? h.tensor(c.mask, Layout::RowMajor, kept) : none;
    const Tensor result = input(y, 9), logs = h.tensor({2, g.members * g.rows}), dq = input(c.q, 9), dk = input(c.k, 9),
                 dv = input(c.v, 9);
    auto kernel = [&](AttentionPass pass) {
      return Attention("attention", pass, c.q, c.k, c.v, 0.3f,
                       {c.mask, c.kept ? c.mask : Shape(), c.causal, c.ratio, 77, DataType::BF16, {algorithm}});
    };
    const Attention forward = kernel(AttentionPass::Forward), backward = kernel(AttentionPass::Backward);
    h.write(logs, Numbers(static_cast<size_t>(2 * g.members * g.rows), 0));
    forward.forward(h.session.compute, q, k, v, mask, keeps, result, logs, h.workspace(forward));
    backward.backward(h.session.compute, dy, q, k, v, mask, keeps, result, logs, dq, dk, dv, h.workspace(backward));
    Numbers sums = h.read(logs);
    for (double &sum : sums) // of rows that see no key
      sum = std::isinf(sum) ? 1e3 : sum;
    return {h.read(result), sums, h.read(dq), h.read(dk), h.read(dv)};
  }
};

/// Probabilities and their gradients are rounded to bf16 before they are multiplied.
TEST_P(AmxAttention, IsThatOfFloatsButForRounding) {
  NEEDS_AMX;
  const std::vector<Numbers> got = run(amxAttention), want = run(floatAttention);
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_CLOSE(got[i], want[i], i == 1 ? 1e-4 : 1.5e-2);
  }
}

TEST_P(AmxAttention, GivesTheSameBitsWithAnyNumberOfThreads) {
  NEEDS_AMX;
  const int before = threads();
  const std::vector<Numbers> want = run(amxAttention);
  for (int count : {1, 3}) {
    setThreads(count);
    EXPECT_EQ(run(amxAttention), want) << count;
  }
  setThreads(before);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AmxAttention,
    testing::Values(Case{"heads", {2, 3, 64, 16}, {2, 3, 64, 16}, {2, 3, 64, 16}, {}, false},
                    Case{"causal", {2, 3, 70, 8}, {2, 3, 70, 8}, {2, 3, 70, 8}, {}, true},
                    Case{"long_causal", {2, 600, 64}, {2, 600, 64}, {2, 600, 64}, {}, true},
                    Case{"long", {1, 530, 40}, {1, 300, 40}, {1, 300, 24}, {}, false},
                    Case{"cross", {4, 20, 64}, {4, 130, 64}, {4, 130, 32}, {}, false},
                    Case{"few_rows_causal", {3, 7, 16}, {3, 300, 16}, {3, 300, 16}, {}, true},
                    Case{"few_keys_causal", {3, 300, 16}, {3, 7, 16}, {3, 7, 16}, {}, true},
                    Case{"odd", {3, 5, 6}, {3, 7, 6}, {3, 7, 5}, {}, false},
                    Case{"dropout", {2, 100, 16}, {2, 290, 16}, {2, 290, 16}, {}, false, 0.2f},
                    Case{"causal_dropout", {2, 290, 16}, {2, 290, 16}, {2, 290, 16}, {}, true, 0.2f},
                    Case{"masked", {2, 2, 300, 8}, {2, 2, 280, 8}, {2, 2, 280, 8}, {2, 1, 300, 280}, false},
                    Case{"masked_causal", {2, 2, 130, 8}, {2, 2, 130, 8}, {2, 2, 130, 8}, {2, 1, 1, 130}, true},
                    Case{"replaced", {2, 2, 60, 8}, {2, 2, 280, 8}, {2, 2, 280, 8}, {2, 1, 60, 280}, false, 0, true}),
    [](const auto &info) { return info.param.name; });

TEST(AmxAttention, IsTheFirstChoiceOfBf16WhereItIsOffered) {
  const AttentionGeometry g("attention", {4, 64, 16}, {4, 64, 16}, {4, 64, 16}, {});
  for (AttentionPass pass : {AttentionPass::Forward, AttentionPass::Backward}) {
    const std::vector<AttentionCandidate> halves = attentionCandidates(pass, g, DataType::BF16);
    EXPECT_EQ(halves.front().name, amx::isOffered() ? amxAttention : "");
    EXPECT_EQ(halves.size(), amx::isOffered() ? 2u : 1u);
    EXPECT_EQ(attentionCandidates(pass, g, DataType::F32).front().name, "");
  }
}

TEST(AmxAttention, IsRefusedWhereItIsNotOffered) {
  auto make = [](const char *name, DataType type) {
    return Attention("node", AttentionPass::Forward, {4, 64, 16}, {4, 64, 16}, {4, 64, 16}, 1,
                     AttentionOptions().withType(type).withAlgorithm({name}));
  };
  EXPECT_THROW(make(amxAttention, DataType::F32), MemoryNotAvailable);
  EXPECT_THROW(make("unknown", DataType::BF16), MemoryNotAvailable);
  if (!amx::isOffered()) {
    EXPECT_THROW(make(amxAttention, DataType::BF16), MemoryNotAvailable);
  }
}

} // namespace
} // namespace sluice
