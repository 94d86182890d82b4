// SPDX-License-Identifier: Apache-2.0
// Batch statistics (also far from zero, where a naive variance loses all digits), their running form, layer
// normalization and LRN against plain loops and finite differences.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

struct Moments {
  Numbers mean, rstd;
};

Moments moments(const Numbers &x, const Shape &shape, double epsilon) {
  const int64_t channels = shape[1], inner = shape.elements() / shape[0] / channels;
  Moments result{Numbers(static_cast<size_t>(channels)), Numbers(static_cast<size_t>(channels))};
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    const double count = static_cast<double>(shape[0] * inner);
    auto forAll = [&](auto &&visit) {
      for (int64_t n = 0; n < shape[0]; ++n)
        for (int64_t i = 0; i < inner; ++i)
          visit(x[static_cast<size_t>((n * channels + c) * inner + i)]);
    };
    forAll([&](double v) { sum += v; });
    forAll([&](double v) { squares += (v - sum / count) * (v - sum / count); });
    result.mean[static_cast<size_t>(c)] = sum / count;
    result.rstd[static_cast<size_t>(c)] = 1 / std::sqrt(squares / count + epsilon);
  }
  return result;
}

class Statistics : public testing::TestWithParam<Shape> {};

TEST_P(Statistics, MatchTwoPasses) {
  const Shape shape = GetParam();
  for (double center : {0.0, 1000.0}) {
    const Numbers x = randomNumbers(shape.elements(), 5, 2, center);
    const Moments want = moments(x, shape, 1e-5);
    Harness h;
    const Tensor tx = h.tensor(shape, shape.rank == 4 ? Layout::NHWC : Layout::RowMajor, x);
    const Tensor mean = h.tensor({shape[1]}), rstd = h.tensor({shape[1]});
    const BatchNormStatistics statistics("bn", shape, 1e-5f);
    statistics.run(h.session.compute, tx, mean, rstd, h.workspace(statistics));
    EXPECT_LE(std::fabs(relativeError(h.read(mean), want.mean)), center == 0 ? 1e-5 : 1e-7);
    EXPECT_CLOSE(h.read(rstd), want.rstd, shape.elements() == shape[1] ? 1e-6 : 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Statistics,
                         testing::Values(Shape{16, 3, 33, 31}, Shape{4, 64, 28, 28}, Shape{2, 300, 7, 7},
                                         Shape{1, 1, 5, 5}, Shape{8, 10}, Shape{1, 4, 1, 1}, Shape{3, 257, 9, 9}));

TEST(Statistics, DoNotDependOnThreads) {
  const Shape shape{4, 64, 56, 56};
  const Numbers x = randomNumbers(shape.elements(), 5);
  std::vector<Numbers> results;
  for (int count : {1, 2, 3}) {
    setThreads(count);
    Harness h;
    const Tensor tx = h.tensor(shape, Layout::NHWC, x), mean = h.tensor({64}), rstd = h.tensor({64});
    const BatchNormStatistics statistics("bn", shape, 1e-5f);
    statistics.run(h.session.compute, tx, mean, rstd, h.workspace(statistics));
    results.push_back(h.read(mean));
    results.push_back(h.read(rstd));
  }
  setThreads(2);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[0], results[4]);
  EXPECT_EQ(results[1], results[3]);
  EXPECT_EQ(results[1], results[5]);
}

TEST(UpdateStatistics, AsPyTorch) {
  Harness h;
  const Tensor mean = h.tensor({2}, Layout::RowMajor, {1, -2}), rstd = h.tensor({2}, Layout::RowMajor, {0.5, 2});
  const Tensor runningMean = h.tensor({2}, Layout::RowMajor, {0, 1}),
               runningVar = h.tensor({2}, Layout::RowMajor, {1, 3});
  const UpdateStatistics update("bn", 2, 10, 0.1f, 1e-3f);
  update.run(h.session.compute, mean, rstd, runningMean, runningVar);
  EXPECT_CLOSE(h.read(runningMean), (Numbers{0.1, 0.7}), 1e-6);
  // biased variance 1/rstd^2 - epsilon, unbiased by 10/9
  EXPECT_CLOSE(h.read(runningVar), (Numbers{0.9 + 0.1 * 3.999 * 10 / 9, 2.7 + 0.1 * 0.249 * 10 / 9}), 1e-6);
}

struct LrnCase {
  int64_t size;
  double alpha, beta, bias;
};

class LrnTest : public testing::TestWithParam<LrnCase> {
protected:
  const Shape shape{2, 11, 3, 4};

  Numbers reference(const Numbers &x) const {
    const LrnCase &p = GetParam();
    Numbers y(x.size());
    const int64_t inner = shape[2] * shape[3];
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t c = 0; c < shape[1]; ++c)
        for (int64_t i = 0; i < inner; ++i) {
          double sum = 0;
          const int64_t first = c - (p.size - 1) / 2, last = c + (p.size - 1) - (p.size - 1) / 2;
          for (int64_t j = std::max<int64_t>(0, first); j <= std::min(shape[1] - 1, last); ++j)
            sum += std::pow(x[static_cast<size_t>((n * shape[1] + j) * inner + i)], 2);
          const auto at = static_cast<size_t>((n * shape[1] + c) * inner + i);
          y[at] = x[at] / std::pow(p.bias + p.alpha / static_cast<double>(p.size) * sum, p.beta);
        }
    return y;
  }
};

TEST_P(LrnTest, ForwardAndBackward) {
  const LrnCase &p = GetParam();
  const Numbers x = randomNumbers(shape.elements(), 1), dy = randomNumbers(shape.elements(), 2),
                d = randomNumbers(shape.elements(), 3);
  Harness h;
  const Lrn lrn("lrn", shape, p.size, static_cast<float>(p.alpha), static_cast<float>(p.beta),
                static_cast<float>(p.bias));
  const Tensor tx = h.tensor(shape, Layout::NHWC, x), ty = h.image(shape), tdy = h.tensor(shape, Layout::NHWC, dy),
               tdx = h.image(shape);
  const Tensor space = h.workspace(lrn);
  lrn.forward(h.session.compute, tx, ty, space);
  EXPECT_CLOSE(h.read(ty), reference(x), 1e-5);
  lrn.backward(h.session.compute, tdy, tx, tdx, space);
  const double want = slope([&](const Numbers &at) { return dot(reference(at), dy); }, x, d);
  EXPECT_NEAR(dot(h.read(tdx), d), want, 1e-4 * std::fabs(want) + 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Parameters, LrnTest,
                         testing::Values(LrnCase{5, 1e-1, 0.75, 1}, LrnCase{4, 0.5, 0.5, 2}, LrnCase{1, 1, 1, 1},
                                         LrnCase{21, 2, 0.75, 1}));

class LayerNormTest : public testing::TestWithParam<Shape> {
protected:
  const Shape shape = GetParam();
  const int64_t rows = shape[0], columns = shape[1];
  const Numbers scale = randomNumbers(columns, 4, 1, 1), bias = randomNumbers(columns, 5);

  Numbers reference(const Numbers &x) const {
    Numbers y(x.size());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < columns; ++c)
        sum += x[static_cast<size_t>(r * columns + c)];
      const double mean = sum / static_cast<double>(columns);
      for (int64_t c = 0; c < columns; ++c)
        squares += std::pow(x[static_cast<size_t>(r * columns + c)] - mean, 2);
      const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + 1e-3);
      for (int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<size_t>(r * columns + c), column = static_cast<size_t>(c);
        y[at] = (x[at] - mean) * rstd * scale[column] + bias[column];
      }
    }
    return y;
  }
};

TEST_P(LayerNormTest, ForwardAndBackward) {
  for (double center : {0.0, 100.0}) {
    const Numbers x = randomNumbers(shape.elements(), 1, 2, center), dy = randomNumbers(shape.elements(), 2),
                  d = randomNumbers(shape.elements(), 3);
    Harness h;
    const LayerNorm norm("ln", shape, 1e-3f);
    const Tensor tx = h.tensor(shape, Layout::RowMajor, x), tdy = h.tensor(shape, Layout::RowMajor, dy);
    const Tensor tscale = h.tensor({columns}, Layout::RowMajor, scale),
                 tbias = h.tensor({columns}, Layout::RowMajor, bias);
    const Tensor y = h.tensor(shape), dx = h.tensor(shape), mean = h.tensor({rows, 1}), rstd = h.tensor({rows, 1});
    norm.forward(h.session.compute, tx, tscale, tbias, y, mean, rstd);
    norm.backward(h.session.compute, tdy, tx, tscale, mean, rstd, dx);
    EXPECT_CLOSE(h.read(y), reference(x), center == 0 ? 1e-6 : 2e-5);
    const double want = slope([&](const Numbers &at) { return dot(reference(at), dy); }, x, d);
    EXPECT_NEAR(dot(h.read(dx), d), want, 1e-4 * std::fabs(want) + 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNormTest,
                         testing::Values(Shape{1, 7}, Shape{5, 33}, Shape{64, 96}, Shape{3, 1000}, Shape{4, 2}));

} // namespace
} // namespace sluice
