// SPDX-License-Identifier: Apache-2.0
// Fused regions on halves: their arithmetic is in float, outputs are rounded once, sums stay f32.
#include "test/unit/cuda/Halves.h"

namespace sluice {
namespace {

/// BatchNorm's forward and backward regions: vectors and sums stay f32, dx may take dy's bytes.
template <DataType Type> struct NormalizeRelu {
  static constexpr int inputs = 3, outputs = 1, sums = 0;
  static constexpr DataType types[] = {Type, full, full, Type};
  SLUICE_KERNEL Values<1> operator()(float x, float mean, float scale) const {
    const float v = (x - mean) * scale;
    return {{v > 0 ? v : 0}};
  }
};
template <DataType Type> struct ReluBackward {
  static constexpr int inputs = 3, outputs = 1, sums = 2;
  static constexpr DataType types[] = {Type, Type, full, Type};
  SLUICE_KERNEL Values<3> operator()(float dy, float y, float scale) const {
    const float v = y <= 0 ? 0.0f : dy;
    return {{v * scale, v, v * y}};
  }
};
struct MaskedReluBackward : ReluBackward<half> {
  static constexpr DataType types[] = {half, DataType::Bit, full, half};
};
/// A residual sum whose second term is f32 and broadcasts.
struct MixedAdd {
  static constexpr int inputs = 2, outputs = 2, sums = 0;
  static constexpr bool steps[] = {true, false};
  static constexpr DataType types[] = {half, full, half, half};
  SLUICE_KERNEL Values<2> operator()(float a, float b) const { return {{a + b, a * b}}; }
};
struct Narrow {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr DataType types[] = {full, half};
  SLUICE_KERNEL Values<1> operator()(float a) const { return {{a}}; }
};

/// {5, 64, 51, 1}: a chunk of 255 rows, eight a thread of halves, which a RowQueue does not hold at once.
const Shape regions[] = {{2, 64, 9, 7}, {3, 3, 17, 5},   {2, 1100, 3, 3}, {2, 100, 5, 5},
                         {2, 40, 4, 1}, {1, 12, 33, 31}, {16, 24, 1, 1},  {5, 64, 51, 1}};

template <DataType Type> Numbers forward(Harness &h, const Shape &shape) {
  const Tensor x = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), Type), y = h.image(shape, Type);
  const Tensor mean = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 2)),
               scale = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 3));
  const Fused<NormalizeRelu<Type>> region("n", shape, Layout::NHWC, {x, channel(mean), channel(scale)}, {y}, {});
  region.run(h.session.compute, {x, channel(mean), channel(scale)}, {y}, {}, none);
  return h.read(y);
}

TEST(HALF(Fused), OutputsAreRoundedOnce) {
  for (const Shape &shape : regions)
    expectRounded(
        [&](Harness &h, DataType type) { return type == half ? forward<half>(h, shape) : forward<full>(h, shape); });
}

struct BackwardResults {
  Numbers dx, plain, product;
};
template <DataType Type> BackwardResults backward(const Shape &shape) {
  Harness h;
  const Tensor dy = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), Type),
               y = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 2), Type);
  const Tensor scale = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 3)), a = h.tensor({shape[1]}),
               b = h.tensor({shape[1]});
  const Fused<ReluBackward<Type>> region("n", shape, Layout::NHWC, {dy, y, channel(scale)}, {dy}, {a, b});
  region.run(h.session.compute, {dy, y, channel(scale)}, {dy}, {a, b}, h.workspace(region)); // in place
  return {h.read(dy), h.read(a), h.read(b)};
}

TEST(HALF(Fused), SumsStayFloat) {
  for (const Shape &shape : regions) {
    const BackwardResults narrow = backward<half>(shape), wide = backward<full>(shape), again = backward<half>(shape);
    EXPECT_EQ(narrow.dx, halves(wide.dx));
    EXPECT_CLOSE(narrow.plain, wide.plain, 1e-5);
    EXPECT_CLOSE(narrow.product, wide.product, 1e-5);
    EXPECT_EQ(narrow.plain, again.plain);
    EXPECT_EQ(narrow.product, again.product);
  }
}

TEST(HALF(Fused), MasksStandForHalves) {
  for (const Shape &shape : regions) {
    Harness h;
    const Tensor dy = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), half),
                 y = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 2), half);
    const Tensor scale = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 3)),
                 bits = h.tensor(shape, Layout::NHWC, DataType::Bit);
    const Tensor dx = h.image(shape, half), maskedDx = h.image(shape, half), a = h.tensor({shape[1]}),
                 b = h.tensor({shape[1]});
    const Fused<ReluBackward<half>> raw("n", shape, Layout::NHWC, {dy, y, channel(scale)}, {dx}, {a, b});
    const Fused<MaskedReluBackward> masked("n", shape, Layout::NHWC, {dy, bits, channel(scale)}, {maskedDx}, {a, b});
    const Tensor space = h.workspace(raw);
    const Mask mask("m", shape.elements(), false);
    mask.encode(h.session.compute, y, bits);
    raw.run(h.session.compute, {dy, y, channel(scale)}, {dx}, {a, b}, space);
    masked.run(h.session.compute, {dy, bits, channel(scale)}, {maskedDx}, {a, b}, space);
    EXPECT_EQ(h.read(dx), h.read(maskedDx));
  }
}

// Elements are then loaded one by one: the sums' order may not follow.
TEST(HALF(Fused), AddressesChangeNoBit) {
  for (const Shape &shape : regions) {
    Harness h;
    const Tensor room = h.tensor({shape.elements() + 8}, Layout::RowMajor, half),
                 y = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 2), half),
                 scale = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 3)), a = h.tensor({shape[1]}),
                 b = h.tensor({shape[1]});
    const Fused<ReluBackward<half>> region("n", shape, Layout::NHWC, {y, y, channel(scale)}, {y}, {a, b});
    const Tensor space = h.workspace(region);
    std::vector<Numbers> results[2];
    for (const size_t shift : {0, 2}) {
      const Tensor dy = device(room.offset + shift, shape, Layout::NHWC, half);
      h.write(dy, randomHalves(shape.elements(), 1));
      region.run(h.session.compute, {dy, y, channel(scale)}, {dy}, {a, b}, space);
      results[shift / 2] = {h.read(dy), h.read(a), h.read(b)};
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(HALF(Fused), MixesTypes) {
  const Shape shape{3, 5, 40}, line{3, 5, 1};
  Harness h;
  const Numbers a = randomHalves(600, 1), b = randomNumbers(15, 2);
  const Tensor ta = h.tensor(shape, Layout::RowMajor, a, half), tb = h.tensor(line, Layout::RowMajor, b);
  const Tensor sum = h.tensor(shape, Layout::RowMajor, half), product = h.tensor(shape, Layout::RowMajor, half);
  const Fused<MixedAdd> region("n", shape, Layout::RowMajor, {ta, tb}, {sum, product}, {});
  region.run(h.session.compute, {ta, tb}, {sum, product}, {}, none);
  Numbers wantSum, wantProduct;
  for (size_t i = 0; i < a.size(); ++i) { // in float, as the kernel does
    const auto x = static_cast<float>(a[i]), y = static_cast<float>(b[i / 40]);
    wantSum.push_back(static_cast<double>(x + y)), wantProduct.push_back(static_cast<double>(x * y));
  }
  EXPECT_EQ(h.read(sum), halves(wantSum));
  EXPECT_EQ(h.read(product), halves(wantProduct));
}

TEST(HALF(Fused), StandsOnlyWhereTheRegionExpectsIt) {
  Harness h;
  const Tensor x = h.tensor({40}), y = h.tensor({40}, Layout::RowMajor, half);
  EXPECT_NO_THROW((Fused<Narrow>("n", {40}, Layout::RowMajor, {x}, {y}, {})));
  EXPECT_THROW((Fused<Narrow>("n", {40}, Layout::RowMajor, {y}, {y}, {})), std::invalid_argument);
  EXPECT_THROW((Fused<Narrow>("n", {40}, Layout::RowMajor, {x}, {x}, {})), std::invalid_argument);
}

} // namespace
} // namespace sluice
