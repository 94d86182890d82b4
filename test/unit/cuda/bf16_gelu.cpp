// SPDX-License-Identifier: Apache-2.0
// Products with Gelu in their epilogues, against their definition in double, where Gelu is taken of sums before they
// are rounded; the bits of product, Gelu and slope by themselves where the library has no such epilogue.
#include "runtime/MatmulGelu.h"
#include "test/unit/cuda/Halves.h"

#include <cstdlib>

namespace sluice {
namespace {

/// Of results that are rounded like the reference, but for ties: less than a rounding before Gelu would change.
constexpr double rounded = half == DataType::F16 ? 6e-5 : 5e-4;

struct GeluCase {
  const char *name;
  int64_t m, n, k;
  bool transposeA, transposeB, bias;

  Shape a() const { return transposeA ? Shape{k, m} : Shape{m, k}; }
  Shape b() const { return transposeB ? Shape{n, k} : Shape{k, n}; }
  Shape c() const { return {m, n}; }
};

double below(double x) { return 0.5 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double gelu(double x) { return x * below(x); }
double slopeOfGelu(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

class HALF(MatmulGelus) : public testing::TestWithParam<GeluCase> {
protected:
  void SetUp() override { setKernelPolicy(size_t(1) << 20, halfPrecision); }
  void TearDown() override {
    unsetenv("EMULATED_EPILOGUES");
    setKernelPolicy(size_t(64) << 20, Precision::FP32);
  }

  MatmulGelu kernel(bool gradient) const {
    return MatmulGelu("fc", c.a(), c.b(), c.c(), {c.transposeA, c.transposeB, c.bias, gradient, {}, half});
  }
  Tensor matrix(const Shape &shape, unsigned seed) {
    return h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), seed, 0.4), half);
  }
  static Numbers randomHalves(int64_t count, unsigned seed, double spread) {
    return halves(randomNumbers(count, seed, spread));
  }
  Tensor empty(const Shape &shape) { return h.tensor(shape, Layout::RowMajor, half); }

  /// op(a) op(b)
  Numbers products(const Tensor &a, const Tensor &b) {
    const Numbers va = h.read(a), vb = h.read(b);
    Numbers result;
    for (int64_t row = 0; row < c.m; ++row)
      for (int64_t column = 0; column < c.n; ++column) {
        double sum = 0;
        for (int64_t i = 0; i < c.k; ++i)
          sum += va[static_cast<size_t>(c.transposeA ? i * c.m + row : row * c.k + i)] *
                 vb[static_cast<size_t>(c.transposeB ? column * c.k + i : i * c.n + column)];
        result.push_back(sum);
      }
    return result;
  }
  size_t columns() const { return static_cast<size_t>(c.n); }

  const GeluCase &c = GetParam();
  Harness h;
};

TEST_P(HALF(MatmulGelus), TakeGeluOfSumsThatAreNotRounded) {
  const MatmulGelu fc = kernel(false);
  const Tensor a = matrix(c.a(), 1), b = matrix(c.b(), 2), bias = c.bias ? matrix({c.n}, 3) : none, y = empty(c.c()),
               x = empty(c.c()), space = h.workspace(fc);
  fc.forward(h.session.compute, a, b, bias, y, x, space);
  Numbers sums = products(a, b), wanted;
  const Numbers added = c.bias ? h.read(bias) : Numbers();
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] += c.bias ? added[i % columns()] : 0;
    wanted.push_back(gelu(sums[i]));
  }
  EXPECT_CLOSE(h.read(x), halves(sums), rounded);
  EXPECT_CLOSE(h.read(y), halves(wanted), rounded);
  const Tensor again = empty(c.c());
  const MatmulGelu second = kernel(false);
  second.forward(h.session.compute, a, b, bias, again, empty(c.c()), h.workspace(second));
  EXPECT_EQ(h.read(again), h.read(y)) << "two runs differ";
}

TEST_P(HALF(MatmulGelus), MultiplyByTheSlopeAndAddItUp) {
  const MatmulGelu fc = kernel(true);
  const Tensor a = matrix(c.a(), 1), b = matrix(c.b(), 2), x = matrix(c.c(), 3), dx = empty(c.c()),
               dbias = c.bias ? empty({c.n}) : none, space = h.workspace(fc);
  fc.backward(h.session.compute, a, b, x, dx, dbias, space);
  Numbers wanted = products(a, b), sums(columns());
  const Numbers at = h.read(x);
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] *= slopeOfGelu(at[i]);
    sums[i % columns()] += wanted[i];
  }
  EXPECT_CLOSE(h.read(dx), halves(wanted), rounded);
  const Numbers first = h.read(dx), firstSums = c.bias ? h.read(dbias) : Numbers();
  if (c.bias) {
    EXPECT_CLOSE(firstSums, sums, 4e-3);
  }
  const MatmulGelu second = kernel(true);
  second.backward(h.session.compute, a, b, x, dx, dbias, h.workspace(second));
  EXPECT_EQ(h.read(dx), first) << "two runs differ";
  EXPECT_EQ(c.bias ? h.read(dbias) : Numbers(), firstSums) << "two runs differ";
}

#ifdef SLUICE_EMULATED // whose cuBLASLt can do without them
TEST_P(HALF(MatmulGelus), AreKernelsOfTheirOwnWhereThereIsNoEpilogue) {
  setKernelPolicy((size_t(1) << 20) + 4096, halfPrecision); // no plan of the tests before
  setenv("EMULATED_EPILOGUES", "0", 1);
  const MatmulGelu forward = kernel(false), backward = kernel(true);
  const Matmul product("fc", c.a(), c.b(), c.c(),
                       MatmulOptions()
                           .withTransposeA(c.transposeA)
                           .withTransposeB(c.transposeB)
                           .withBias(c.bias ? Shape{c.n} : Shape{})
                           .withFactors(half)
                           .withResult(half));
  const Tensor a = matrix(c.a(), 1), b = matrix(c.b(), 2), bias = c.bias ? matrix({c.n}, 3) : none, y = empty(c.c()),
               x = empty(c.c()), alone = empty(c.c()), dx = empty(c.c()), dbias = c.bias ? empty({c.n}) : none;
  forward.forward(h.session.compute, a, b, bias, y, x, h.workspace(forward));
  product.run(h.session.compute, a, b, bias, alone, h.workspace(product));
  backward.backward(h.session.compute, a, b, x, dx, dbias, h.workspace(backward));
  const Numbers stored = h.read(x);
  Numbers wanted, slopes = halves(products(a, b)), sums(columns());
  for (size_t i = 0; i < stored.size(); ++i) {
    wanted.push_back(gelu(stored[i]));
    slopes[i] *= slopeOfGelu(stored[i]);
    sums[i % columns()] += slopes[i];
  }
  EXPECT_EQ(stored, h.read(alone));
  EXPECT_CLOSE(h.read(y), halves(wanted), rounded);
  EXPECT_CLOSE(h.read(dx), halves(slopes), rounded);
  if (c.bias) {
    EXPECT_CLOSE(h.read(dbias), sums, 4e-3);
  }
}
#endif

INSTANTIATE_HALVES(HALF(MatmulGelus),
                   testing::Values(GeluCase{"plain", 16, 24, 8, false, false, false},
                                   GeluCase{"layer", 40, 64, 16, false, true, true},
                                   GeluCase{"odd_rows", 21, 8, 32, false, false, true},
                                   GeluCase{"many_rows", 1030, 136, 24, false, false, true},
                                   GeluCase{"turned", 16, 8, 24, true, false, true},
                                   GeluCase{"both_turned", 8, 16, 16, true, true, true}),
                   [](const auto &info) { return info.param.name; });

TEST(HALF(MatmulGelu), RefusesRowsThatTheLibraryDoesNotTake) {
  EXPECT_THROW(MatmulGelu("fc", {16, 12}, {12, 8}, {16, 8}, MatmulGeluOptions().withType(half)), std::invalid_argument);
  EXPECT_THROW(MatmulGelu("fc", {1, 16}, {16, 8}, {1, 8}, MatmulGeluOptions().withType(half)), std::invalid_argument);
  EXPECT_THROW(MatmulGelu("fc", {16, 16}, {16, 8}, {16, 8}, MatmulGeluOptions().withType(DataType::F32)),
               std::invalid_argument);
}

} // namespace
} // namespace sluice
