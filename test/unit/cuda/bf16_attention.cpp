// SPDX-License-Identifier: Apache-2.0
// Attention of halves against that of f32 with the same numbers: with shapes that cuDNN has an engine for, and with
// others.
#include "test/unit/cuda/Halves.h"

#include <cfloat>
#include <cmath>

namespace sluice {
namespace {

/// Whole rows: by numbers that are added, or that also take the place of scores.
enum Hides { Nothing, Added, Replaced };

struct Case {
  const char *name;
  Shape q, k, v, mask;
  bool causal;
  Hides hides = Nothing;
  float ratio = 0; ///< of dropout
  Algorithm algorithm = {};
};
std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

class HALF(Attention) : public testing::TestWithParam<Case> {
protected:
  const Case &c = GetParam();
  const AttentionGeometry g{"attention", c.q, c.k, c.v, c.mask};
  Shape y = c.q;
  void SetUp() override { y.dims[y.rank - 1] = g.columns; }

  /// One that replaces adds -1e9 to all scores of even members, and puts it in place of those of every third key; one
  /// that adds has rows of the least float, and of -infinity.
  Numbers maskNumbers() const {
    Numbers numbers = randomNumbers(c.mask.elements(), 5);
    const size_t keys = static_cast<size_t>(g.keys);
    for (size_t i = 0; i < numbers.size(); ++i)
      if (c.hides == Replaced)
        numbers[i] = i / keys % 2 == 0 || i % 3 == 0 ? -1e9 : numbers[i];
      else if (c.hides == Added && i / keys % 5 < 2)
        numbers[i] = i / keys % 5 == 0 ? -static_cast<double>(FLT_MAX) : -INFINITY;
    return numbers;
  }
  Numbers keptNumbers() const {
    Numbers numbers(static_cast<size_t>(c.mask.elements()), 1);
    for (size_t i = 0; i < numbers.size(); i += 3)
      numbers[i] = 0;
    return numbers;
  }

  /// y, dq, dk, dv.
  std::vector<Numbers> run(DataType type) const {
    Harness h;
    auto input = [&](const Shape &shape, unsigned seed) {
      return h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), seed), type);
    };
    auto output = [&](const Shape &shape) { return input(shape, 9); }; // nothing of what was there stays
    const Tensor q = input(c.q, 1), k = input(c.k, 2), v = input(c.v, 3), dy = input(y, 4);
    const Tensor mask = c.mask.rank ? h.tensor(c.mask, Layout::RowMajor, maskNumbers()) : none;
    const Tensor kept = c.hides == Replaced ? h.tensor(c.mask, Layout::RowMajor, keptNumbers()) : none;
    const Tensor result = output(y), logs = h.tensor({2, g.members * g.rows}), dq = output(c.q), dk = output(c.k),
                 dv = output(c.v);
    auto kernel = [&](AttentionPass pass) {
      return Attention("attention", pass, c.q, c.k, c.v, 0.3f,
                       {c.mask, c.hides == Replaced ? c.mask : Shape(), c.causal, c.ratio, 77, type, c.algorithm});
    };
    const Attention forward = kernel(AttentionPass::Forward), backward = kernel(AttentionPass::Backward);
    forward.forward(h.session.compute, q, k, v, mask, kept, result, logs, h.workspace(forward));
    backward.backward(h.session.compute, dy, q, k, v, mask, kept, result, logs, dq, dk, dv, h.workspace(backward));
    return {h.read(result), h.read(dq), h.read(dk), h.read(dv)};
  }
};

/// Products of probabilities and slopes that an engine rounds first: a few units of its last place.
TEST_P(HALF(Attention), IsThatOfFloatsButForRounding) {
  const std::vector<Numbers> got = run(half), want = run(full);
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_CLOSE(got[i], want[i], 1.5e-2);
  }
  EXPECT_EQ(run(half), got) << "two runs differ";
}

INSTANTIATE_HALVES(
    HALF(Attention),
    testing::Values(
        Case{"heads", {2, 3, 64, 16}, {2, 3, 64, 16}, {2, 3, 64, 16}, {}, false},
        Case{"causal", {2, 3, 70, 8}, {2, 3, 70, 8}, {2, 3, 70, 8}, {}, true},
        Case{"cross", {4, 20, 64}, {4, 130, 64}, {4, 130, 32}, {}, false},
        Case{"dropout", {2, 3, 64, 16}, {2, 3, 64, 16}, {2, 3, 64, 16}, {}, false, Nothing, 0.2f},
        Case{"causal_dropout", {2, 3, 70, 8}, {2, 3, 70, 8}, {2, 3, 70, 8}, {}, true, Nothing, 0.2f},
        Case{"dropout_in_parts", {4, 200, 64}, {4, 130, 64}, {4, 130, 32}, {}, false, Nothing, 0.5f, {"", 1, 190000}},
        Case{"odd_rows", {3, 5, 8}, {3, 7, 8}, {3, 7, 8}, {}, false},
        Case{"odd_depth", {3, 5, 6}, {3, 7, 6}, {3, 7, 5}, {}, false},
        Case{"masked", {2, 2, 16, 8}, {2, 2, 16, 8}, {2, 2, 16, 8}, {2, 1, 1, 16}, false},
        Case{"heads_masked", {2, 3, 64, 16}, {2, 3, 72, 16}, {2, 3, 72, 16}, {3, 64, 72}, false},
        Case{"hidden_rows", {2, 3, 70, 16}, {2, 3, 70, 16}, {2, 3, 70, 16}, {2, 1, 70, 70}, false, Added},
        Case{
            "hidden_causal_dropout", {2, 3, 70, 16}, {2, 3, 70, 16}, {2, 3, 70, 16}, {2, 1, 70, 70}, true, Added, 0.3f},
        Case{"hidden_in_parts",
             {4, 200, 64},
             {4, 132, 64},
             {4, 132, 32},
             {4, 200, 132},
             false,
             Added,
             0,
             {"", 1, 190000}},
        Case{"hidden", {2, 2, 16, 8}, {2, 2, 16, 8}, {2, 2, 16, 8}, {2, 1, 1, 16}, false, Replaced}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace sluice
