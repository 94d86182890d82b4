// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of halves against their definition in double, with operands and results rounded
// where kernels store: a result may round the other way where sums are close to a tie.
#include "test/unit/cuda/Halves.h"
#include "test/unit/runtime/ConvCases.h"

namespace sluice {
namespace {

/// Of results that are rounded like the reference, but for ties; of f32 ones.
constexpr double rounded = 1e-3, exactly = 1e-5;

class HALF(Convolution) : public testing::TestWithParam<ConvCase> {
protected:
  const ConvCase &c = GetParam();
  const Shape ys = outputOf(c);
  Harness h;

  Conv make(ConvPass pass) const { return Conv("conv", pass, c.x, c.w, ys, windowOf(c), {c.groups, c.bias, {}, half}); }
  Tensor image(const Shape &shape, const Numbers &values) { return h.tensor(shape, Layout::NHWC, values, half); }
};

TEST_P(HALF(Convolution), Forward) {
  const Numbers x = randomHalves(c.x.elements(), 1), w = randomHalves(c.w.elements(), 2), b = randomNumbers(c.w[0], 3);
  Numbers want(static_cast<size_t>(ys.elements()));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[iy] += x[ix] * w[iw]; });
  if (c.bias) {
    if (runtimeTarget() == Target::Cuda) // added to what the engine stored
      want = halves(want);
    for (size_t i = 0; i < want.size(); ++i)
      want[i] += b[i / static_cast<size_t>(ys.elements() / ys[0] / ys[1]) % static_cast<size_t>(ys[1])];
  }
  const Conv conv = make(ConvPass::Forward);
  const Tensor y = h.image(ys, half);
  conv.forward(h.session.compute, image(c.x, x), image(c.w, w), c.bias ? h.tensor({c.w[0]}, Layout::RowMajor, b) : none,
               y, h.workspace(conv));
  EXPECT_CLOSE(h.read(y), halves(want), rounded);
}

TEST_P(HALF(Convolution), BackwardData) {
  const Numbers dy = randomHalves(ys.elements(), 1), w = randomHalves(c.w.elements(), 2);
  Numbers want(static_cast<size_t>(c.x.elements()));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[ix] += dy[iy] * w[iw]; });
  const Conv conv = make(ConvPass::BackwardData);
  const Tensor dx = h.image(c.x, half);
  conv.backwardData(h.session.compute, image(ys, dy), image(c.w, w), dx, h.workspace(conv));
  EXPECT_CLOSE(h.read(dx), halves(want), rounded);
}

/// The gradient comes row-major and in f32; the bias's is summed in f32.
TEST_P(HALF(Convolution), BackwardWeight) {
  const Numbers dy = randomHalves(ys.elements(), 1), x = randomHalves(c.x.elements(), 2);
  Numbers want(static_cast<size_t>(c.w.elements())), wantBias(static_cast<size_t>(c.w[0]));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[iw] += dy[iy] * x[ix]; });
  for (size_t i = 0; i < dy.size(); ++i)
    wantBias[i / static_cast<size_t>(ys.elements() / ys[0] / ys[1]) % static_cast<size_t>(ys[1])] += dy[i];
  const Conv conv = make(ConvPass::BackwardWeight);
  const Tensor dw = h.tensor(c.w), db = h.tensor({c.w[0]}), space = h.workspace(conv);
  const Tensor tdy = image(ys, dy), tx = image(c.x, x);
  conv.backwardWeight(h.session.compute, tdy, tx, dw, c.bias ? db : none, space);
  const Numbers first = h.read(dw);
  EXPECT_CLOSE(halves(first), halves(want), rounded);
  if (c.bias) {
    EXPECT_CLOSE(h.read(db), wantBias, exactly);
  }
  conv.backwardWeight(h.session.compute, tdy, tx, dw, c.bias ? db : none, space);
  EXPECT_EQ(h.read(dw), first) << "two runs differ";
#if !defined(SLUICE_HOST_RUNTIME)
  // The same halves as the engine leaves them; sums in f32, where there is none, are rounded.
  const Tensor left = h.image(c.w, half);
  conv.backwardWeight(h.session.compute, tdy, tx, left, c.bias ? db : none, space);
  EXPECT_EQ(h.read(left), halves(first));
#endif
}

INSTANTIATE_HALVES(HALF(Convolution), testing::ValuesIn(convCases()),
                   [](const auto &info) { return std::string(info.param.name); });

struct Product {
  const char *name;
  Shape a, b, c, bias;
  bool transposeA, transposeB;
  float alpha, beta;
};

class HALF(Matmul) : public testing::TestWithParam<Product> {};

/// Either result; a row, of the result's type, is added before it is stored, any other bias to what is.
TEST_P(HALF(Matmul), RoundsItsResultOnce) {
  const Product &p = GetParam();
  const Numbers a = randomHalves(p.a.elements(), 1), b = randomHalves(p.b.elements(), 2),
                bias = randomHalves(p.bias.elements(), 3);
  const bool biased = p.bias.rank > 0, row = biased && p.beta == 1;
  for (DataType type : {DataType::F32, half}) {
    Harness h;
    const Matmul product("fc", p.a, p.b, p.c, {p.transposeA, p.transposeB, p.alpha, p.beta, p.bias, {}, half, type});
    const Tensor c = h.tensor(p.c, Layout::RowMajor, type);
    product.run(h.session.compute, h.tensor(p.a, Layout::RowMajor, a, half), h.tensor(p.b, Layout::RowMajor, b, half),
                biased ? h.tensor(p.bias, Layout::RowMajor, bias, row ? type : DataType::F32) : none, c,
                h.workspace(product));
    const int64_t m = p.c[p.c.rank - 2], n = p.c[p.c.rank - 1], k = p.a[p.a.rank - (p.transposeA ? 2 : 1)];
    Numbers want;
    for (int64_t row = 0; row < p.c.elements() / n; ++row)
      for (int64_t column = 0; column < n; ++column) {
        const int64_t batchA = row / m * (p.a.elements() > m * k), batchB = row / m * (p.b.elements() > k * n);
        double sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += a[static_cast<size_t>(batchA * m * k + (p.transposeA ? i * m + row % m : row % m * k + i))] *
                 b[static_cast<size_t>(batchB * k * n + (p.transposeB ? column * k + i : i * n + column))];
        want.push_back(static_cast<double>(p.alpha) * sum);
      }
    const bool joins = row && (runtimeTarget() == Target::Host || std::min({m, n, k}) > 1); // before it is stored
    if (type == half && !joins)
      want = halves(want);
    for (size_t i = 0; i < want.size() && biased; ++i)
      want[i] += static_cast<double>(p.beta) * bias[i % static_cast<size_t>(p.bias.elements())];
    EXPECT_CLOSE(h.read(c), type == half ? halves(want) : want, type == half ? rounded : exactly);
  }
}

INSTANTIATE_HALVES(HALF(Matmul),
                   testing::Values(Product{"plain", {5, 7}, {7, 3}, {5, 3}, {}, false, false, 1, 1},
                                   Product{"classifier", {8, 33}, {10, 33}, {8, 10}, {10}, false, true, 1, 1},
                                   Product{"both_turned", {12, 6}, {9, 12}, {6, 9}, {}, true, true, 1, 1},
                                   Product{"single_row", {1, 33}, {10, 33}, {1, 10}, {10}, false, true, 1, 1},
                                   Product{"scaled_bias", {4, 16}, {16, 8}, {4, 8}, {8}, false, false, 0.5f, 2},
                                   Product{"batch", {3, 5, 9}, {3, 9, 7}, {3, 5, 7}, {}, false, false, 1, 1},
                                   Product{"shared_right", {2, 5, 8}, {8, 7}, {2, 5, 7}, {}, false, false, 1, 1}),
                   [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace sluice
