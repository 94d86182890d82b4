// SPDX-License-Identifier: Apache-2.0
// Products by weights in fewer bits against products by the floats that they stand for: in one block and in several,
// with what is left behind the last, with every form of bias and in both precisions.
#include "test/unit/runtime/Harness.h"

#include "runtime/Dequantize.h"
#include "runtime/host/MatmulEngine.h"

namespace sluice {
namespace {

struct Case {
  const char *name;
  Quantization form;
  Shape a, c;
  bool transposeB;
  Shape bias;
  float alpha;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

class QuantizedProduct : public testing::TestWithParam<Case> {
protected:
  /// The product by the form and, in its place, of Dequantize (of halves: the numbers themselves) and Matmul.
  std::pair<Numbers, Numbers> results(DataType type, const char *algorithm) {
    const Case &c = GetParam();
    const Quantization &form = c.form;
    const Shape matrix{form.rows, form.columns};
    std::vector<float> weights;
    for (double value : randomNumbers(matrix.elements(), 2))
      weights.push_back(static_cast<float>(value));
    const std::string bytes = quantized(form, "w", [&](size_t first, void *to, size_t size) {
      memcpy(to, reinterpret_cast<const char *>(weights.data()) + first, size);
    });
    const auto options = MatmulOptions()
                             .withTransposeB(c.transposeB)
                             .withAlpha(c.alpha)
                             .withBias(c.bias)
                             .withAlgorithm({algorithm})
                             .withFactors(type)
                             .withResult(type);
    Harness h;
    const QuantizedMatmul kernel("fc", c.a, matrix, form.bits, form.group, form.dimension, form.coding, options);
    const Matmul plain("fc", c.a, matrix, c.c, options);
    const Tensor a = h.tensor(c.a, Layout::RowMajor, type), y = h.tensor(c.c, Layout::RowMajor, type),
                 z = h.tensor(c.c, Layout::RowMajor, type), b = h.tensor(matrix, Layout::RowMajor, type);
    const Tensor packed = form.bits == 16 ? h.tensor(matrix, Layout::RowMajor, DataType::BF16)
                                          : h.tensor({form.bytes()}, Layout::RowMajor, DataType::U8);
    h.write(a, randomNumbers(c.a.elements(), 1));
    h.session.write(packed, bytes.data());
    std::vector<double> floats;
    dequantize(form, bytes.data(), [&](const void *data, size_t size) {
      const auto *some = static_cast<const float *>(data);
      floats.insert(floats.end(), some, some + size / sizeof(float));
    });
    h.write(b, floats);
    const bool row = c.bias.rank && c.bias.elements() == c.c[c.c.rank - 1];
    const Tensor bias = c.bias.rank ? h.tensor(c.bias, Layout::RowMajor, row ? type : DataType::F32) : none;
    if (c.bias.rank)
      h.write(bias, randomNumbers(c.bias.elements(), 3));
    kernel.run(h.session.compute, a, packed, bias, y, h.workspace(kernel));
    plain.run(h.session.compute, a, b, bias, z, h.workspace(plain));
    return {h.read(y), h.read(z)};
  }
};

// Every element is one sum in the order of the depth, however the product is cut.
TEST_P(QuantizedProduct, HasTheBitsOfOurOwnProductByFloats) {
  const auto [got, wanted] = results(DataType::F32, blockedMatmul);
  EXPECT_EQ(got, wanted);
}

TEST_P(QuantizedProduct, IsTheProductByFloats) {
  const auto [got, wanted] = results(DataType::F32, "");
  EXPECT_CLOSE(got, wanted, 1e-5);
}

TEST_P(QuantizedProduct, HasTheBitsOfOurOwnProductByHalves) {
  const auto [got, wanted] = results(DataType::BF16, blockedMatmul);
  EXPECT_EQ(got, wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, QuantizedProduct,
    testing::Values(
        Case{"one_block", {8, 64, 0, 64, 33}, {5, 64}, {5, 33}, false, {}, 1},
        Case{"gradient", {4, 16, 1, 64, 33}, {2, 5, 33}, {2, 5, 64}, true, {}, 1},
        Case{"blocks", {4, 64, 0, 6000, 500}, {7, 6000}, {7, 500}, false, {500}, 1},
        Case{"blocks_of_rows", {4, 32, 1, 500, 6000, Coding::Asymmetric}, {7, 6000}, {7, 500}, true, {500}, 1},
        Case{"odd_columns", {4, 7, 1, 5999, 577, Coding::NormalFloat}, {1, 5999}, {1, 577}, false, {1, 577}, 0.5f},
        Case{"equal_blocks", {8, 128, 1, 6000, 384}, {3, 2, 6000}, {3, 2, 384}, false, {}, 1},
        Case{"to_a_matrix", {8, 128, 1, 6000, 500, Coding::Asymmetric}, {4, 6000}, {4, 500}, false, {4, 500}, 1},
        Case{"to_a_column", {4, 64, 0, 500, 6000}, {4, 6000}, {4, 500}, true, {4, 1}, 1},
        Case{"halves", {16, 0, 0, 6000, 500}, {7, 6000}, {7, 500}, false, {}, 1}),
    [](const auto &info) { return info.param.name; });

TEST(QuantizedMatmul, HoldsNoFloatsOfTheWholeMatrix) {
  const QuantizedMatmul kernel("fc", {4, 2048}, {2048, 32000}, 4, 64, 0, Coding::Symmetric);
  EXPECT_LT(kernel.workspaceBytes(), size_t(64 << 20));
}

TEST(QuantizedMatmul, RefusesWhatNoFormIs) {
  EXPECT_THROW(QuantizedMatmul("fc", {4, 8}, {8, 4}, 5, 4, 0, Coding::Symmetric), std::invalid_argument);
  EXPECT_THROW(QuantizedMatmul("fc", {4, 8}, {8, 4}, 16, 4, 0, Coding::Symmetric), std::invalid_argument);
  EXPECT_THROW(QuantizedMatmul("fc", {8, 4}, {8, 4}, 8, 4, 0, Coding::Symmetric, MatmulOptions().withTransposeA(true)),
               std::invalid_argument);
}

} // namespace
} // namespace sluice
