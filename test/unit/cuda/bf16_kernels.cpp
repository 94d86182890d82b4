// SPDX-License-Identifier: Apache-2.0
// Our own kernels on bf16. They compute in float, so that what they store is, to the bit, what the same kernel gives
// for the same values in f32, rounded to nearest even; the conformance set holds those to plain loops. Sums, which are
// f32, may be added in another order.
#include "Harness.h"

#include <limits>

namespace sluice {
namespace {

constexpr DataType half = DataType::BF16, full = DataType::F32;

Numbers halves(Numbers values) {
  for (double &v : values)
    v = static_cast<double>(widened(bfloat16Of(static_cast<float>(v))));
  return values;
}
Numbers randomHalves(int64_t count, unsigned seed) { return halves(randomNumbers(count, seed)); }

/// What run(harness, type) reads back for bf16 is what it reads for f32, rounded.
template <typename Run> void expectRounded(Run &&run) {
  Harness narrow, wide;
  const Numbers got = run(narrow, half), want = run(wide, full);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got, halves(want));
}

TEST(Bf16Cast, RoundsToNearestEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  // 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between odd and even.
  const std::vector<float> from = {1,       1.00390625f, 1.01171875f, 1.00390637f, -1.00390625f, 0.0f, -0.0f,
                                   3.4e38f, 3.3962e38f,  infinity,    -infinity,   1e-40f,       65504};
  const std::vector<uint16_t> want = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xbf80, 0,     0x8000,
                                      0x7f80, 0x7f80, 0x7f80, 0xff80, 0x0001, 0x4780};
  Harness h;
  const Shape shape{static_cast<int64_t>(from.size())};
  const Tensor x = h.tensor(shape), y = h.tensor(shape, Layout::RowMajor, half), back = h.tensor(shape);
  h.session.write(x, from.data());
  const Reorder cast("cast", x, y, {}), widen("cast", y, back, {});
  cast.run(h.session.compute, x, y);
  widen.run(h.session.compute, y, back);
  std::vector<uint16_t> got(from.size());
  h.session.read(y, got.data());
  EXPECT_EQ(got, want);
  EXPECT_EQ(h.read(back), h.read(y));
}

TEST(Bf16Cast, KeepsNaN) {
  Harness h;
  const Tensor x = h.tensor({3}, Layout::RowMajor, {1, std::nan(""), 2}), y = h.tensor({3}, Layout::RowMajor, half);
  Reorder("cast", x, y, {}).run(h.session.compute, x, y);
  EXPECT_TRUE(std::isnan(h.read(y)[1]));
}

TEST(Bf16Cast, ChangesOrderOnTheWay) {
  for (const Shape &shape : {Shape{16, 8, 3, 3}, Shape{5, 7, 3, 2}, Shape{33, 40, 1, 1}, Shape{64, 3, 7, 7},
                             Shape{1, 1, 1, 1}, Shape{2, 3, 40, 33}}) {
    const Numbers values = randomNumbers(shape.elements(), 1);
    Harness h;
    const Tensor rows = h.tensor(shape, Layout::RowMajor, values), turned = h.image(shape, half),
                 back = h.tensor(shape);
    Reorder("w", rows, turned, {}).run(h.session.compute, rows, turned);
    EXPECT_EQ(h.read(turned), halves(values));
    Reorder("w", turned, back, {}).run(h.session.compute, turned, back);
    EXPECT_EQ(h.read(back), halves(values));
  }
}

TEST(Bf16Reorder, MovesHalves) {
  const Shape shape{3, 17, 5, 9};
  Harness h;
  const Tensor x = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), half),
               y = h.tensor({5, 9, 3, 17}, Layout::RowMajor, half);
  Reorder("t", x, y, {2, 3, 0, 1}).run(h.session.compute, x, y);
  const Numbers from = h.read(x), to = h.read(y);
  for (size_t n = 0; n < 3; ++n)
    for (size_t c = 0; c < 17; ++c)
      for (size_t i = 0; i < 45; ++i)
        ASSERT_EQ(to[i * 51 + n * 17 + c], from[(n * 17 + c) * 45 + i]);
}

TEST(Bf16Slab, OddChannelsGoInAndComeOut) {
  Harness h;
  const Tensor large = h.image({2, 9, 3, 3}, half),
               small = h.tensor({2, 5, 3, 3}, Layout::NHWC, randomHalves(90, 1), half),
               back = h.image({2, 5, 3, 3}, half);
  clear(h.session.compute, large, "s");
  const Slab slab("s", large, small, 1, 3);
  slab.insert(h.session.compute, small, large);
  slab.extract(h.session.compute, large, back);
  EXPECT_EQ(h.read(back), h.read(small));
  const Numbers whole = h.read(large);
  EXPECT_EQ(whole[2 * 9], 0);                // channel 2
  EXPECT_EQ(whole[3 * 9], h.read(small)[0]); // channel 3
}

struct PoolCase {
  Shape x, y;
  Window window;
};
const PoolCase pools[] = {{{2, 16, 8, 8}, {2, 16, 4, 4}, {{2, 2}, {2, 2}, {0, 0, 0, 0}}},
                          {{2, 64, 9, 7}, {2, 64, 5, 4}, {{3, 3}, {2, 2}, {1, 1, 1, 1}}},
                          {{1, 13, 6, 5}, {1, 13, 6, 5}, {{3, 3}, {1, 1}, {1, 1, 1, 1}}},
                          {{2, 24, 7, 7}, {2, 24, 1, 1}, {{7, 7}, {1, 1}, {0, 0, 0, 0}}}};

TEST(Bf16Pool, MaximumAndItsGradient) {
  for (const PoolCase &p : pools)
    for (DataType indexType : {DataType::U8, DataType::I32}) {
      expectRounded([&](Harness &h, DataType type) {
        const MaxPool pool("p", p.x, p.y, p.window);
        const Tensor y = h.image(p.y, type), indices = h.image(p.y, indexType), dx = h.image(p.x, type);
        const Tensor space = h.workspace(pool);
        pool.forward(h.session.compute, h.tensor(p.x, Layout::NHWC, randomHalves(p.x.elements(), 1), type), y, indices,
                     space);
        pool.backward(h.session.compute, h.tensor(p.y, Layout::NHWC, randomHalves(p.y.elements(), 2), type), indices,
                      dx, space);
        Numbers both = h.read(y);
        for (double v : h.read(dx))
          both.push_back(v);
        return both;
      });
    }
}

TEST(Bf16Pool, AverageAndItsGradient) {
  for (const PoolCase &p : pools)
    expectRounded([&](Harness &h, DataType type) {
      const AveragePool pool("p", p.x, p.y, p.window, false);
      const Tensor y = h.image(p.y, type), dx = h.image(p.x, type), space = h.workspace(pool);
      pool.forward(h.session.compute, h.tensor(p.x, Layout::NHWC, randomHalves(p.x.elements(), 1), type), y, space);
      pool.backward(h.session.compute, h.tensor(p.y, Layout::NHWC, randomHalves(p.y.elements(), 2), type), dx, space);
      Numbers both = h.read(y);
      for (double v : h.read(dx))
        both.push_back(v);
      return both;
    });
}

TEST(Bf16Lrn, ForwardAndBackward) {
  for (int64_t channels : {11, 96})
    expectRounded([&](Harness &h, DataType type) {
      const Shape shape{2, channels, 3, 4};
      const Lrn lrn("lrn", shape, 5, 0.1f, 0.75f, 1);
      const Tensor x = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), type), y = h.image(shape, type),
                   dx = h.image(shape, type);
      const Tensor space = h.workspace(lrn);
      lrn.forward(h.session.compute, x, y, space);
      lrn.backward(h.session.compute, h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 2), type), x, dx,
                   space);
      Numbers both = h.read(y);
      for (double v : h.read(dx))
        both.push_back(v);
      return both;
    });
}

TEST(Bf16Resize, ForwardAndBackward) {
  const Shape x{2, 12, 5, 6}, y{2, 12, 10, 9};
  for (ResizeMode mode : {ResizeMode::Nearest, ResizeMode::Linear})
    expectRounded([&](Harness &h, DataType type) {
      const Resize resize("r", x, y, 2, 1.5f, mode, ResizeCoordinates::HalfPixel, NearestRounding::Floor);
      const Tensor ty = h.image(y, type), dx = h.image(x, type);
      resize.forward(h.session.compute, h.tensor(x, Layout::NHWC, randomHalves(x.elements(), 1), type), ty);
      resize.backward(h.session.compute, h.tensor(y, Layout::NHWC, randomHalves(y.elements(), 2), type), dx);
      Numbers both = h.read(ty);
      for (double v : h.read(dx))
        both.push_back(v);
      return both;
    });
}

TEST(Bf16Softmax, ForwardAndBackward) {
  for (int axis : {1, 2})
    for (bool logarithm : {false, true})
      expectRounded([&](Harness &h, DataType type) {
        const Shape shape{3, 5, 37};
        const Softmax softmax("s", shape, axis, logarithm);
        const Tensor y = h.tensor(shape, Layout::RowMajor, type), dx = h.tensor(shape, Layout::RowMajor, type);
        softmax.forward(h.session.compute, h.tensor(shape, Layout::RowMajor, randomHalves(555, 1), type), y);
        const Numbers result = h.read(y);
        h.write(y, halves(result)); // both gradients read the same result
        softmax.backward(h.session.compute, h.tensor(shape, Layout::RowMajor, randomHalves(555, 2), type), y, dx);
        Numbers both = result;
        for (double v : h.read(dx))
          both.push_back(v);
        return both;
      });
}

TEST(Bf16Broadcast, FromEitherTypeToEither) {
  const Shape small{2, 12, 1, 1}, large{2, 12, 5, 3};
  const Numbers x = randomHalves(24, 1);
  for (DataType from : {half, full})
    for (DataType to : {half, full}) {
      Harness h;
      const Tensor tx = h.tensor(small, Layout::RowMajor, x, from), y = h.tensor(large, Layout::RowMajor, to);
      BroadcastTo("b", tx, y, 0.25f).run(h.session.compute, tx, y);
      Numbers want;
      for (double v : x)
        want.insert(want.end(), 15, 0.25 * v);
      EXPECT_EQ(h.read(y), want); // a power of two rounds nothing
    }
}

TEST(Bf16SumTo, AddsInFloat) {
  struct Case {
    Shape x, y;
    Layout layout;
  };
  for (const Case &c : {Case{{4, 12, 5, 3}, {1, 12, 1, 1}, Layout::NHWC}, Case{{64, 130}, {130}, Layout::RowMajor},
                        Case{{3, 7, 900}, {3, 7, 1}, Layout::RowMajor}, Case{{9000}, {}, Layout::RowMajor}}) {
    const Numbers x = randomHalves(c.x.elements(), 1);
    Numbers results[2];
    for (DataType type : {full, half}) {
      Harness h;
      const Tensor tx = h.tensor(c.x, c.layout, x, type), y = h.tensor(c.y, c.layout);
      const SumTo sum("s", tx, y, 0.5f);
      sum.run(h.session.compute, tx, y, h.workspace(sum));
      results[type == half] = h.read(y);
    }
    EXPECT_EQ(results[0], results[1]); // cut alike
  }
}

TEST(Bf16Statistics, StayNearThoseOfDoubles) {
  for (const Shape &shape :
       {Shape{4, 64, 28, 28}, Shape{3, 257, 9, 9}, Shape{8, 10}, Shape{2, 12, 30, 30}, Shape{1, 8, 3, 1}})
    for (double center : {0.0, 100.0}) {
      const Numbers x = halves(randomNumbers(shape.elements(), 5, 2, center));
      const Layout layout = shape.rank == 4 ? Layout::NHWC : Layout::RowMajor;
      Numbers means[2], rstds[2];
      for (DataType type : {full, half}) {
        Harness h;
        const Tensor mean = h.tensor({shape[1]}), rstd = h.tensor({shape[1]});
        const BatchNormStatistics statistics("bn", shape, 1e-5f);
        statistics.run(h.session.compute, h.tensor(shape, layout, x, type), mean, rstd, h.workspace(statistics));
        means[type == half] = h.read(mean), rstds[type == half] = h.read(rstd);
      }
      EXPECT_CLOSE(means[1], means[0], center == 0 ? 1e-5 : 1e-6);
      EXPECT_CLOSE(rstds[1], rstds[0], 2e-5);
    }
}

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

const Shape regions[] = {{2, 64, 9, 7}, {3, 3, 17, 5},   {2, 1100, 3, 3}, {2, 100, 5, 5},
                         {2, 40, 4, 1}, {1, 12, 33, 31}, {16, 24, 1, 1}};

template <DataType Type> Numbers forward(Harness &h, const Shape &shape) {
  const Tensor x = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), Type), y = h.image(shape, Type);
  const Tensor mean = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 2)),
               scale = h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 3));
  const Fused<NormalizeRelu<Type>> region("n", shape, Layout::NHWC, {x, channel(mean), channel(scale)}, {y}, {});
  region.run(h.session.compute, {x, channel(mean), channel(scale)}, {y}, {}, none);
  return h.read(y);
}

TEST(Bf16Fused, OutputsAreRoundedOnce) {
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

TEST(Bf16Fused, SumsStayFloat) {
  for (const Shape &shape : regions) {
    const BackwardResults narrow = backward<half>(shape), wide = backward<full>(shape), again = backward<half>(shape);
    EXPECT_EQ(narrow.dx, halves(wide.dx));
    EXPECT_CLOSE(narrow.plain, wide.plain, 1e-5);
    EXPECT_CLOSE(narrow.product, wide.product, 1e-5);
    EXPECT_EQ(narrow.plain, again.plain);
    EXPECT_EQ(narrow.product, again.product);
  }
}

TEST(Bf16Fused, MasksStandForHalves) {
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
    Mask("m", shape.elements(), false).encode(h.session.compute, y, bits);
    raw.run(h.session.compute, {dy, y, channel(scale)}, {dx}, {a, b}, space);
    masked.run(h.session.compute, {dy, bits, channel(scale)}, {maskedDx}, {a, b}, space);
    EXPECT_EQ(h.read(dx), h.read(maskedDx));
  }
}

TEST(Bf16Fused, MixesTypes) {
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

TEST(Bf16Fused, StandsOnlyWhereTheRegionExpectsIt) {
  Harness h;
  const Tensor x = h.tensor({40}), y = h.tensor({40}, Layout::RowMajor, half);
  EXPECT_NO_THROW((Fused<Narrow>("n", {40}, Layout::RowMajor, {x}, {y}, {})));
  EXPECT_THROW((Fused<Narrow>("n", {40}, Layout::RowMajor, {y}, {y}, {})), std::invalid_argument);
  EXPECT_THROW((Fused<Narrow>("n", {40}, Layout::RowMajor, {x}, {x}, {})), std::invalid_argument);
}

} // namespace
} // namespace sluice
