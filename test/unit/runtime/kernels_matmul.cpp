// SPDX-License-Identifier: Apache-2.0
// Matrix products against plain loops: transposition, batches that broadcast, every form of bias.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

struct Case {
  const char *name;
  Shape a, b, c;
  bool transposeA, transposeB;
  float alpha, beta;
  Shape bias;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

/// Index of the matrix that `batch` of c uses in an operand, by broadcasting leading dimensions.
int64_t matrixOf(const Shape &operand, const Shape &c, int64_t batch) {
  int64_t index = 0, factor = 1;
  for (int i = 3; i <= c.rank; ++i) {
    const int64_t at = batch % c[c.rank - i];
    batch /= c[c.rank - i];
    if (i > operand.rank)
      continue;
    const int64_t extent = operand[operand.rank - i];
    index += (extent == 1 ? 0 : at) * factor;
    factor *= extent;
  }
  return index;
}

double biasAt(const Case &c, const Numbers &bias, int64_t row, int64_t column) {
  if (!c.bias.rank)
    return 0;
  const int64_t columns = c.bias[c.bias.rank - 1], rows = c.bias.elements() / columns;
  return bias[static_cast<size_t>((rows == 1 ? 0 : row) * columns + (columns == 1 ? 0 : column))];
}

Numbers reference(const Case &c, const Numbers &a, const Numbers &b, const Numbers &bias) {
  const int64_t m = c.c[c.c.rank - 2], n = c.c[c.c.rank - 1];
  const int64_t k = c.a[c.a.rank - (c.transposeA ? 2 : 1)], batches = c.c.elements() / (m * n);
  Numbers result;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a[static_cast<size_t>(matrixOf(c.a, c.c, batch) * m * k + (c.transposeA ? l * m + i : i * k + l))] *
                 b[static_cast<size_t>(matrixOf(c.b, c.c, batch) * k * n + (c.transposeB ? j * k + l : l * n + j))];
        result.push_back(c.alpha * sum + c.beta * biasAt(c, bias, i, j));
      }
  return result;
}

class Product : public testing::TestWithParam<Case> {};

TEST_P(Product, Matches) {
  const Case &c = GetParam();
  const Numbers a = randomNumbers(c.a.elements(), 1), b = randomNumbers(c.b.elements(), 2),
                bias = randomNumbers(c.bias.elements(), 3);
  Harness h;
  const Matmul matmul("fc", c.a, c.b, c.c,
                      MatmulOptions()
                          .withTransposeA(c.transposeA)
                          .withTransposeB(c.transposeB)
                          .withAlpha(c.alpha)
                          .withBeta(c.beta)
                          .withBias(c.bias));
  const Tensor ta = h.tensor(c.a, Layout::RowMajor, a), tb = h.tensor(c.b, Layout::RowMajor, b), tc = h.tensor(c.c);
  const Tensor tBias = c.bias.rank ? h.tensor(c.bias, Layout::RowMajor, bias) : none, space = h.workspace(matmul);
  matmul.run(h.session.compute, ta, tb, tBias, tc, space);
  const Numbers first = h.read(tc);
  EXPECT_CLOSE(first, reference(c, a, b, bias), 1e-5);
  matmul.run(h.session.compute, ta, tb, tBias, tc, space);
  EXPECT_EQ(h.read(tc), first) << "two runs differ";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Product,
    testing::Values(Case{"plain", {5, 7}, {7, 3}, {5, 3}, false, false, 1, 1, {}},
                    Case{"bias_row", {5, 7}, {7, 3}, {5, 3}, false, false, 1, 1, {3}},
                    Case{"fc", {16, 100}, {33, 100}, {16, 33}, false, true, 1, 1, {33}},
                    Case{"fc_weight_gradient", {16, 33}, {16, 100}, {33, 100}, true, false, 1, 1, {}},
                    Case{"both_transposed", {7, 5}, {3, 7}, {5, 3}, true, true, 1, 1, {}},
                    Case{"scaled", {5, 7}, {7, 3}, {5, 3}, false, false, 0.5f, 2, {1, 3}},
                    Case{"bias_column", {5, 7}, {7, 3}, {5, 3}, false, false, 1, 1, {5, 1}},
                    Case{"bias_full", {5, 7}, {7, 3}, {5, 3}, false, false, 2, 0.25f, {5, 3}},
                    Case{"bias_matrix", {5, 7}, {7, 3}, {5, 3}, false, false, 1, 1, {5, 3}},
                    Case{"bias_matrix_large", {37, 70}, {37, 300}, {70, 300}, true, false, 1, 1, {70, 300}},
                    Case{"bias_scalar", {5, 7}, {7, 3}, {5, 3}, false, false, 1, 1, {1}},
                    Case{"batches", {2, 3, 5, 7}, {2, 3, 7, 4}, {2, 3, 5, 4}, false, false, 1, 1, {}},
                    Case{"batches_transposed", {6, 7, 5}, {6, 4, 7}, {6, 5, 4}, true, true, 1, 1, {}},
                    Case{"shared_right", {4, 5, 7}, {7, 6}, {4, 5, 6}, false, false, 1, 1, {6}},
                    Case{"shared_left", {5, 7}, {4, 7, 6}, {4, 5, 6}, false, false, 1, 1, {}},
                    Case{"one_in_batch", {3, 1, 5, 7}, {1, 2, 7, 4}, {3, 2, 5, 4}, false, false, 1, 1, {}},
                    Case{"vector_like", {1, 1}, {1, 9}, {1, 9}, false, false, 1, 1, {9}}),
    [](const auto &info) { return std::string(info.param.name); });

/// A sum of products in the bytes of its first summand, of floats and of halves, which the host multiplies in two ways.
TEST(Matmul, AddsToAMatrixInItsBytes) {
  for (const DataType factors : {DataType::F32, DataType::BF16})
    for (const Shape &rows : {Shape{24, 66}, Shape{24, 130}}) {
      const Shape right = {24, 96}, all = {rows[1], 96};
      const MatmulOptions options =
          MatmulOptions().withTransposeA(true).withBias(all).withFactors(factors).withResult(DataType::F32);
      const Numbers a = randomNumbers(rows.elements(), 1), b = randomNumbers(right.elements(), 2),
                    before = randomNumbers(all.elements(), 3);
      Harness h;
      const Matmul product("dw", rows, right, all, options);
      const Tensor ta = h.tensor(rows, Layout::RowMajor, a, factors),
                   tb = h.tensor(right, Layout::RowMajor, b, factors), apart = h.tensor(all),
                   from = h.tensor(all, Layout::RowMajor, before), sum = h.tensor(all, Layout::RowMajor, before),
                   space = h.workspace(product);
      product.run(h.session.compute, ta, tb, from, apart, space);
      product.run(h.session.compute, ta, tb, sum, sum, space);
      EXPECT_EQ(h.read(sum), h.read(apart));
      EXPECT_EQ(h.read(from), before);
      EXPECT_CLOSE(h.read(sum),
                   reference({"", rows, right, all, true, false, 1, 1, all}, h.read(ta), h.read(tb), before), 1e-5);
    }
}

TEST(Matmul, RejectsWrongExtents) {
  try {
    Matmul("/fc/Gemm", {5, 7}, {8, 3}, {5, 3});
    FAIL();
  } catch (const std::invalid_argument &error) {
    EXPECT_STREQ(error.what(), "matrix product '/fc/Gemm': inner extents 7 and 8");
  }
}

} // namespace
} // namespace sluice
