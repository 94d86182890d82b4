// SPDX-License-Identifier: Apache-2.0
// Attention against a plain loop in double: any number of rows, keys and columns, masks that broadcast, causal ones,
// rows that see no key, dropout; gradients by central differences; bits that do not depend on threads.
#include "test/unit/runtime/Harness.h"

#include <functional>
#include <ostream>

namespace sluice {
namespace {

struct Case {
  Shape q, k, v, mask;
  bool causal = false;
  float ratio = 0;
  Shape kept = {};
};
std::ostream &operator<<(std::ostream &out, const Case &c) {
  for (const Shape *shape : {&c.q, &c.k, &c.v, &c.mask, &c.kept}) {
    for (int i = 0; i < shape->rank; ++i)
      out << (i ? "x" : "") << (*shape)[i];
    out << " ";
  }
  return out << (c.causal ? "causal " : "") << c.ratio;
}

constexpr float scale = 0.3f;
constexpr int64_t key = 5;
const double infinity = std::numeric_limits<double>::infinity();

class AttentionTest : public testing::TestWithParam<Case> {
protected:
  const Case c = GetParam();
  const AttentionGeometry g{"attention", c.q, c.k, c.v, c.mask, c.kept};
  const Shape y = resultShape(), sums = sumsShape();
  const Numbers q = randomNumbers(c.q.elements(), 1), k = randomNumbers(c.k.elements(), 2),
                v = randomNumbers(c.v.elements(), 3), dy = randomNumbers(y.elements(), 4), mask = maskNumbers(),
                kept = keptNumbers();
  Harness h;

  Shape resultShape() const {
    Shape shape = c.q;
    shape.dims[shape.rank - 1] = g.columns;
    return shape;
  }
  Shape sumsShape() const {
    Shape shape = c.q;
    --shape.rank;
    return c.mask.rank ? Shape{2, shape.elements()} : shape;
  }
  /// Every fifth number of a mask hides its key.
  Numbers maskNumbers() const {
    if (c.mask.rank == 0)
      return {};
    Numbers numbers = randomNumbers(c.mask.elements(), 5);
    for (size_t i = 0; i < numbers.size(); i += 5)
      numbers[i] = -infinity;
    return numbers;
  }
  /// About every third score is a number of the mask alone.
  Numbers keptNumbers() const {
    Numbers numbers;
    for (int64_t i = 0; c.kept.rank && i < c.kept.elements(); ++i)
      numbers.push_back(i * i % 3 == 0 ? 0 : 1);
    return numbers;
  }
  bool keepsAt(int64_t member, int64_t row, int64_t at) const {
    return kept.empty() || kept[static_cast<size_t>(g.start(g.kept, member) + row * g.kept.row + at * g.kept.key)] > 0;
  }
  double maskAt(int64_t member, int64_t row, int64_t at) const {
    if (c.causal && at > row)
      return -infinity;
    return mask.empty() ? 0 : mask[static_cast<size_t>(g.start(g.mask, member) + row * g.mask.row + at * g.mask.key)];
  }
  /// What dropout multiplies a probability by.
  double keptAt(int64_t member, int64_t row, int64_t at) const {
    const auto index = static_cast<uint64_t>((member * g.rows + row) * g.keys + at);
    const uint64_t draws = randomKey(h.session.state.seed, key, static_cast<uint64_t>(h.session.state.step));
    return c.ratio == 0 ? 1 : uniform(draws, index) < c.ratio ? 0 : 1 / (1 - static_cast<double>(c.ratio));
  }

  Numbers reference(const Numbers &q, const Numbers &k, const Numbers &v) const {
    Numbers result(static_cast<size_t>(y.elements()));
    for (int64_t row = 0; row < g.members * g.rows; ++row) {
      const int64_t member = row / g.rows;
      Numbers p(static_cast<size_t>(g.keys));
      double largest = -infinity, sum = 0;
      for (int64_t at = 0; at < g.keys; ++at) {
        double score = 0;
        for (int64_t d = 0; d < g.depth; ++d)
          score +=
              q[static_cast<size_t>(row * g.depth + d)] * k[static_cast<size_t>((member * g.keys + at) * g.depth + d)];
        score *= keepsAt(member, row % g.rows, at) ? static_cast<double>(scale) : 0;
        p[static_cast<size_t>(at)] = score + maskAt(member, row % g.rows, at);
        largest = std::max(largest, p[static_cast<size_t>(at)]);
      }
      for (double &score : p)
        sum += score = largest == -infinity ? 0 : std::exp(score - largest);
      for (int64_t at = 0; at < g.keys && sum > 0; ++at)
        for (int64_t column = 0; column < g.columns; ++column)
          result[static_cast<size_t>(row * g.columns + column)] +=
              p[static_cast<size_t>(at)] / sum * keptAt(member, row % g.rows, at) *
              v[static_cast<size_t>((member * g.keys + at) * g.columns + column)];
    }
    return result;
  }

  struct Tensors {
    Tensor q, k, v, mask, kept, y, sums, dy, dq, dk, dv;
  };
  Tensors run() {
    auto input = [this](Shape shape, const Numbers &numbers) { return h.tensor(shape, Layout::RowMajor, numbers); };
    Tensors t{input(c.q, q),  input(c.k, k), input(c.v, v), none,          none,         h.tensor(y),
              h.tensor(sums), input(y, dy),  h.tensor(c.q), h.tensor(c.k), h.tensor(c.v)};
    if (c.mask.rank)
      t.mask = input(c.mask, mask);
    if (c.kept.rank)
      t.kept = input(c.kept, kept);
    for (const Tensor &result : {t.y, t.dq, t.dk, t.dv}) // nothing of what was there stays
      h.write(result, randomNumbers(result.shape.elements(), 9));
    const AttentionOptions options{c.mask, c.kept, c.causal, c.ratio, key};
    const Attention forward("attention", AttentionPass::Forward, c.q, c.k, c.v, scale, options),
        backward("attention", AttentionPass::Backward, c.q, c.k, c.v, scale, options);
    h.session.state.seed = 3, h.session.state.step = 2;
    forward.forward(h.session.compute, t.q, t.k, t.v, t.mask, t.kept, t.y, t.sums, h.workspace(forward));
    backward.backward(h.session.compute, t.dy, t.q, t.k, t.v, t.mask, t.kept, t.y, t.sums, t.dq, t.dk, t.dv,
                      h.workspace(backward));
    return t;
  }
};

TEST_P(AttentionTest, IsWhatThePlainLoopsGive) {
  const Tensors t = run();
  EXPECT_CLOSE(h.read(t.y), reference(q, k, v), 2e-6);
  auto expectSlope = [&](const Tensor &gradient, const Numbers &at, const std::function<Numbers(const Numbers &)> &f) {
    const Numbers d = randomNumbers(gradient.shape.elements(), 7);
    const double want = slope([&](const Numbers &x) { return dot(f(x), dy); }, at, d);
    EXPECT_NEAR(dot(h.read(gradient), d), want, 1e-4 * std::fabs(want) + 2e-4);
  };
  expectSlope(t.dq, q, [&](const Numbers &x) { return reference(x, k, v); });
  expectSlope(t.dk, k, [&](const Numbers &x) { return reference(q, x, v); });
  expectSlope(t.dv, v, [&](const Numbers &x) { return reference(q, k, x); });
}

TEST_P(AttentionTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  const int before = threads();
  std::vector<Numbers> results[2];
  for (int i : {0, 1}) {
    setThreads(i == 0 ? 1 : 3);
    const Tensors t = run();
    for (const Tensor &tensor : {t.y, t.sums, t.dq, t.dk, t.dv})
      results[i].push_back(h.read(tensor));
  }
  setThreads(before);
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AttentionTest,
    testing::Values(Case{{1, 1}, {1, 1}, {1, 1}, {}}, Case{{5, 3}, {7, 3}, {7, 2}, {}},
                    Case{{2, 3, 65, 8}, {2, 3, 65, 8}, {2, 3, 65, 8}, {}, true},
                    Case{{2, 3, 17, 16}, {2, 3, 30, 16}, {2, 3, 30, 33}, {2, 1, 1, 30}},
                    Case{{3, 100, 40}, {3, 270, 40}, {3, 270, 70}, {100, 270}},
                    Case{{2, 2, 20, 5}, {2, 2, 9, 5}, {2, 2, 9, 5}, {1, 2, 20, 1}, true},
                    Case{{2, 9, 4}, {2, 20, 4}, {2, 20, 4}, {}, true},
                    Case{{2, 2, 33, 8}, {2, 2, 33, 8}, {2, 2, 33, 8}, {33}, true, 0.4f},
                    Case{{2, 3, 17, 8}, {2, 3, 30, 8}, {2, 3, 30, 9}, {2, 1, 1, 30}, false, 0, {2, 1, 17, 30}},
                    Case{{2, 100, 8}, {2, 270, 8}, {2, 270, 8}, {100, 1}, true, 0, {270}},
                    Case{{2, 2, 9, 4}, {2, 2, 9, 4}, {2, 2, 9, 4}, {9, 9}, false, 0.3f, {2, 2, 9, 1}}));

/// Extents of self-attention: batch, heads, rows and depth.
struct Views : testing::TestWithParam<Shape> {};

/// The numbers of a tensor of 3 [B,H,S,D] in the order [S,B,3,H,D] of a packed projection, or those of one [B,H,S,D] in
/// the order [S,B,H,D].
Numbers packed(const std::vector<Numbers> &parts, const Shape &s) {
  Numbers all(parts.size() * static_cast<size_t>(s.elements()));
  size_t at = 0;
  for (int64_t row = 0; row < s[2]; ++row)
    for (int64_t b = 0; b < s[0]; ++b)
      for (const Numbers &part : parts)
        for (int64_t h = 0; h < s[1]; ++h)
          for (int64_t d = 0; d < s[3]; ++d)
            all[at++] = part[static_cast<size_t>(((b * s[1] + h) * s[2] + row) * s[3] + d)];
  return all;
}

TEST_P(Views, GiveTheBitsOfCopies) {
  const Shape s = GetParam();
  const int64_t width = s[1] * s[3];
  std::vector<Numbers> in;
  for (unsigned i = 0; i < 4; ++i)
    in.push_back(randomNumbers(s.elements(), i));
  std::vector<Numbers> plain, viewed;
  const AttentionOptions options{{}, {}, true, 0.2f, key};
  {
    Harness h;
    h.session.state.seed = 3, h.session.state.step = 2;
    std::vector<Tensor> t;
    for (const Numbers &numbers : in)
      t.push_back(h.tensor(s, Layout::RowMajor, numbers));
    const Tensor y = h.tensor(s), sums = h.tensor({s[0], s[1], s[2]}), dq = h.tensor(s), dk = h.tensor(s),
                 dv = h.tensor(s);
    const Attention forward("a", AttentionPass::Forward, s, s, s, scale, options),
        backward("a", AttentionPass::Backward, s, s, s, scale, options);
    forward.forward(h.session.compute, t[0], t[1], t[2], none, none, y, sums, h.workspace(forward));
    backward.backward(h.session.compute, t[3], t[0], t[1], t[2], none, none, y, sums, dq, dk, dv,
                      h.workspace(backward));
    plain = {packed({h.read(y)}, s), h.read(sums), packed({h.read(dq), h.read(dk), h.read(dv)}, s)};
  }
  Harness h;
  h.session.state.seed = 3, h.session.state.step = 2;
  auto part = [&](int64_t i) { return Shape{i * width, 3 * width, s[3], 3 * width * s[0]}; };
  const Shape order{0, width, s[3], width * s[0]}, all{s[2], s[0], 3 * width}, result{s[2], s[0], s[1], s[3]};
  auto kernel = [&](AttentionPass pass) {
    return Attention(
        "a", pass, s, s, s, scale,
        AttentionOptions(options).withQView(part(0)).withKView(part(1)).withVView(part(2)).withYView(order));
  };
  const Attention forward = kernel(AttentionPass::Forward), backward = kernel(AttentionPass::Backward);
  const Tensor qkv = h.tensor(all, Layout::RowMajor, packed({in[0], in[1], in[2]}, s)),
               dy = h.tensor(result, Layout::RowMajor, packed({in[3]}, s)), y = h.tensor(result),
               sums = h.tensor({s[0], s[1], s[2]}), dqkv = h.tensor(all);
  for (const Tensor &t : {y, dqkv}) // nothing of what was there stays
    h.write(t, randomNumbers(t.shape.elements(), 9));
  forward.forward(h.session.compute, qkv, qkv, qkv, none, none, y, sums, h.workspace(forward));
  backward.backward(h.session.compute, dy, qkv, qkv, qkv, none, none, y, sums, dqkv, dqkv, dqkv, h.workspace(backward));
  viewed = {h.read(y), h.read(sums), h.read(dqkv)};
  EXPECT_EQ(viewed, plain);
}

INSTANTIATE_TEST_SUITE_P(Cases, Views,
                         testing::Values(Shape{2, 3, 5, 8}, Shape{1, 2, 130, 16}, Shape{3, 1, 7, 5},
                                         Shape{2, 2, 300, 40}),
                         [](const auto &info) { return "Depth" + std::to_string(info.param[3]); });

TEST(Attention, KeepsWhatIsNoNumber) {
  const Shape shape{2, 4};
  Harness h;
  const Attention attention("a", AttentionPass::Forward, shape, shape, shape, 1);
  Numbers q = randomNumbers(8, 1);
  for (size_t i = 0; i < 4; ++i)
    q[i] = std::nan("");
  const Tensor tq = h.tensor(shape, Layout::RowMajor, q), y = h.tensor(shape), sums = h.tensor({2});
  attention.forward(h.session.compute, tq, h.tensor(shape, Layout::RowMajor, randomNumbers(8, 2)),
                    h.tensor(shape, Layout::RowMajor, randomNumbers(8, 3)), none, none, y, sums,
                    h.workspace(attention));
  const Numbers got = h.read(y);
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_FALSE(std::isnan(got[4]));
}

/// Scores of 0 leave a number as it is, so that a row that is hidden whole is like one that is not.
TEST(Attention, ComputesRowsThatANumberHidesWhole) {
  const Shape shape{2, 5, 4}, mask{5, 1};
  auto run = [&](double number) {
    Harness h;
    const Attention forward("a", AttentionPass::Forward, shape, shape, shape, 1, AttentionOptions().withMask(mask)),
        backward("a", AttentionPass::Backward, shape, shape, shape, 1, AttentionOptions().withMask(mask));
    auto input = [&](unsigned seed) { return h.tensor(shape, Layout::RowMajor, randomNumbers(40, seed)); };
    const Tensor q = h.tensor(shape, Layout::RowMajor, Numbers(40, 0)), k = input(1), v = input(2), dy = input(3),
                 m = h.tensor(mask, Layout::RowMajor, {number, 0, number, number, 0}), y = h.tensor(shape),
                 sums = h.tensor({2, 10}), dq = h.tensor(shape), dk = h.tensor(shape), dv = h.tensor(shape);
    forward.forward(h.session.compute, q, k, v, m, none, y, sums, h.workspace(forward));
    backward.backward(h.session.compute, dy, q, k, v, m, none, y, sums, dq, dk, dv, h.workspace(backward));
    return std::vector<Numbers>{h.read(y), h.read(dq), h.read(dk), h.read(dv)};
  };
  const std::vector<Numbers> plain = run(0);
  for (double number : {-1e4, -1e9, static_cast<double>(std::numeric_limits<float>::lowest())})
    EXPECT_EQ(run(number), plain) << number;
}

TEST(Attention, RefusesWhatDoesNotFit) {
  auto make = [](Shape q, Shape k, Shape v, Shape mask, Shape kept = {}) {
    Attention("/h/Softmax", AttentionPass::Forward, q, k, v, 1, AttentionOptions().withMask(mask).withKept(kept));
  };
  EXPECT_THROW(make({2, 3}, {2, 4}, {2, 4}, {}), std::invalid_argument);
  EXPECT_THROW(make({2, 3}, {2, 3}, {3, 3}, {}), std::invalid_argument);
  EXPECT_THROW(make({2, 2, 3}, {3, 2, 3}, {3, 2, 3}, {}), std::invalid_argument);
  EXPECT_THROW(make({2, 3}, {5, 3}, {5, 3}, {3, 5}), std::invalid_argument);
  EXPECT_THROW(make({2, 3}, {5, 3}, {5, 3}, {1, 2, 5}), std::invalid_argument);
  EXPECT_THROW(make({2, 3}, {5, 3}, {5, 3}, {2, 5}, {4}), std::invalid_argument);
  EXPECT_THROW(make({2, 3}, {5, 3}, {5, 3}, {}, {2, 5}), std::invalid_argument);
  EXPECT_THROW(Attention("/h/Softmax", AttentionPass::Forward, {2, 4, 3}, {2, 4, 3}, {2, 4, 3}, 1,
                         AttentionOptions().withQView({0, 12})),
               std::invalid_argument);
}

} // namespace
} // namespace sluice
