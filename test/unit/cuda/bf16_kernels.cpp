// SPDX-License-Identifier: Apache-2.0
// Our own kernels on halves. They compute in float, so that what they store is, to the bit, what the same kernel gives
// for the same values in f32, rounded to nearest even; the conformance set holds those to plain loops. Sums, which are
// f32, may be added in another order.
#include "test/unit/cuda/Halves.h"

#include <limits>

namespace sluice {
namespace {

TEST(HALF(Cast), RoundsToNearestEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  // 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between odd and even.
  std::vector<float> from = {1,       1.00390625f, 1.01171875f, 1.00390637f, -1.00390625f, 0.0f, -0.0f,
                             3.4e38f, 3.3962e38f,  infinity,    -infinity,   1e-40f,       65504};
  std::vector<uint16_t> want = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xbf80, 0,     0x8000,
                                0x7f80, 0x7f80, 0x7f80, 0xff80, 0x0001, 0x4780};
  if (half == DataType::F16) {
    // The same with 2^-11 and 2^-10; the last finite number and what rounds beyond it; subnormal numbers, which end at
    // 2^-24, of which the half rounds to 0.
    from = {1,        1.00048828125f, 1.00146484375f, 1.00048835f, -1.00048828125f, 0.0f,      -0.0f,    65504,
            65519.9f, 65520,          -65520,         infinity,    -infinity,       0x1p-14f,  0x1p-15f, 0x1p-24f,
            0x1p-25f, 0x1.8p-25f,     -0x1p-26f,      1e-40f,      0x1.ffcp-15f,    0x1.8p-24f};
    want = {0x3c00, 0x3c00, 0x3c02, 0x3c01, 0xbc00, 0, 0x8000, 0x7bff, 0x7bff, 0x7c00, 0xfc00,
            0x7c00, 0xfc00, 0x0400, 0x0200, 0x0001, 0, 0x0001, 0x8000, 0,      0x0400, 0x0002};
  }
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

/// Losses are computed from floats; their gradient is stored as a product will read it.
TEST(HALF(Loss), RoundsItsGradientOnce) {
  for (const Shape &shape : {Shape{16, 10}, Shape{3, 1000}, Shape{2, 5, 4, 3}}) {
    const int64_t count = shape.elements() / shape[1];
    std::vector<int64_t> classes;
    for (int64_t s = 0; s < count; ++s)
      classes.push_back(s % 4 == 3 ? -100 : s * 7 % shape[1]);
    const Numbers numbers = randomNumbers(shape.elements(), 1, 3), wanted = randomNumbers(shape.elements(), 2);
    Harness h;
    const Tensor x = h.tensor(shape, Layout::RowMajor, numbers), target = h.classes(classes),
                 value = h.tensor(shape, Layout::RowMajor, wanted), wide = h.tensor(shape),
                 narrow = h.tensor(shape, Layout::RowMajor, half);
    const Loss entropy("loss", LossKind::SoftmaxCrossEntropy, shape, -100),
        square("mse", LossKind::MeanSquaredError, shape);
    const Tensor space = h.workspace(entropy);
    entropy.backward(h.session.compute, x, target, wide, space);
    entropy.backward(h.session.compute, x, target, narrow, space);
    EXPECT_EQ(h.read(narrow), halves(h.read(wide)));
    square.backward(h.session.compute, x, value, wide);
    square.backward(h.session.compute, x, value, narrow);
    EXPECT_EQ(h.read(narrow), halves(h.read(wide)));
  }
}

/// Logits of 16 bits are widened where they are read: what comes of them is what comes of such floats, but for the
/// quicker exponentials (SampleThreads.h). The gradient may take their bytes.
TEST(HALF(Loss), ReadsLogitsOfHalves) {
  for (const Shape &shape : {Shape{16, 10}, Shape{3, 1000}, Shape{2, 5, 4, 3}, Shape{2, 5008}}) {
    const int64_t count = shape.elements() / shape[1], own = shape[1] - 3;
    std::vector<int64_t> ids;
    for (int64_t s = 0; s < count; ++s)
      ids.push_back(s % 4 == 3 ? -100 : s * 7 % own);
    const Numbers logits = halves(randomNumbers(shape.elements(), 1, 3));
    Harness h;
    h.session.state.labelSmoothing = 0.1f;
    const Tensor wide = h.tensor(shape, Layout::RowMajor, logits),
                 narrow = h.tensor(shape, Layout::RowMajor, logits, half), target = h.classes(ids), loss = h.tensor({}),
                 dx = h.tensor(shape, Layout::RowMajor, half), correct = h.classes({0});
    const Loss entropy("loss", LossKind::SoftmaxCrossEntropy, shape, -100, own);
    const Tensor space = h.workspace(entropy);
    const auto run = [&](const Tensor &x, const Tensor &gradient) {
      entropy.forward(h.session.compute, x, target, loss, space);
      entropy.countCorrect(h.session.compute, x, target, correct);
      entropy.backward(h.session.compute, x, target, gradient, space);
      Numbers found = h.read(gradient);
      found.push_back(h.read(loss)[0]);
      int64_t number;
      h.session.read(correct, &number);
      h.session.write(correct, std::vector<int64_t>{0}.data());
      found.push_back(static_cast<double>(number));
      return found;
    };
    const Numbers want = run(wide, dx), got = run(narrow, dx);
    const auto results = static_cast<ptrdiff_t>(want.size()) - 2; // the loss, and how many are correct
    EXPECT_CLOSE(Numbers(got.begin(), got.begin() + results), Numbers(want.begin(), want.begin() + results), 8e-3);
    EXPECT_CLOSE(Numbers(got.begin() + results, got.end()), Numbers(want.begin() + results, want.end()), 1e-6);
    EXPECT_EQ(run(narrow, narrow), got);
  }
}

TEST(HALF(Cast), KeepsNaN) {
  Harness h;
  const Tensor x = h.tensor({3}, Layout::RowMajor, {1, std::nan(""), 2}), y = h.tensor({3}, Layout::RowMajor, half);
  const Reorder cast("cast", x, y, {});
  cast.run(h.session.compute, x, y);
  EXPECT_TRUE(std::isnan(h.read(y)[1]));
}

TEST(HALF(Cast), ChangesOrderOnTheWay) {
  for (const Shape &shape : {Shape{16, 8, 3, 3}, Shape{5, 7, 3, 2}, Shape{33, 40, 1, 1}, Shape{64, 3, 7, 7},
                             Shape{1, 1, 1, 1}, Shape{2, 3, 40, 33}}) {
    const Numbers values = randomNumbers(shape.elements(), 1);
    Harness h;
    const Tensor rows = h.tensor(shape, Layout::RowMajor, values), turned = h.image(shape, half),
                 back = h.tensor(shape);
    const Reorder turn("w", rows, turned, {}), turnBack("w", turned, back, {});
    turn.run(h.session.compute, rows, turned);
    EXPECT_EQ(h.read(turned), halves(values));
    turnBack.run(h.session.compute, turned, back);
    EXPECT_EQ(h.read(back), halves(values));
  }
}

TEST(HALF(Reorder), MovesHalves) {
  const Shape shape{3, 17, 5, 9};
  Harness h;
  const Tensor x = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), half),
               y = h.tensor({5, 9, 3, 17}, Layout::RowMajor, half);
  const Reorder transpose("t", x, y, {2, 3, 0, 1});
  transpose.run(h.session.compute, x, y);
  const Numbers from = h.read(x), to = h.read(y);
  for (size_t n = 0; n < 3; ++n)
    for (size_t c = 0; c < 17; ++c)
      for (size_t i = 0; i < 45; ++i)
        ASSERT_EQ(to[i * 51 + n * 17 + c], from[(n * 17 + c) * 45 + i]);
}

TEST(HALF(Slab), OddChannelsGoInAndComeOut) {
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

TEST(HALF(Embedding), ForwardAndBackward) {
  const std::vector<int64_t> ids = {3, 0, 3, 8, 3, 0};
  expectRounded([&](Harness &h, DataType type) {
    const Embedding embedding("e", {9, 5}, {6});
    const Tensor y = h.tensor({6, 5}, Layout::RowMajor, type);
    embedding.forward(h.session.compute, h.tensor({9, 5}, Layout::RowMajor, randomNumbers(45, 1)), h.classes(ids), y);
    return h.read(y);
  });
  Harness h;
  const Embedding embedding("e", {9, 5}, {6});
  const Numbers dy = randomHalves(30, 2);
  const Tensor narrow = h.tensor({9, 5}), wide = h.tensor({9, 5}), space = h.workspace(embedding), ti = h.classes(ids);
  embedding.backward(h.session.compute, h.tensor({6, 5}, Layout::RowMajor, dy, half), ti, narrow, space);
  embedding.backward(h.session.compute, h.tensor({6, 5}, Layout::RowMajor, dy), ti, wide, space);
  EXPECT_EQ(h.read(narrow), h.read(wide)); // sums are f32 in any case
}

struct PoolCase {
  Shape x, y;
  Window window;
};
const PoolCase pools[] = {{{2, 16, 8, 8}, {2, 16, 4, 4}, {{2, 2}, {2, 2}, {0, 0, 0, 0}}},
                          {{2, 64, 9, 7}, {2, 64, 5, 4}, {{3, 3}, {2, 2}, {1, 1, 1, 1}}},
                          {{1, 13, 6, 5}, {1, 13, 6, 5}, {{3, 3}, {1, 1}, {1, 1, 1, 1}}},
                          {{2, 24, 7, 7}, {2, 24, 1, 1}, {{7, 7}, {1, 1}, {0, 0, 0, 0}}}};

TEST(HALF(Pool), MaximumAndItsGradient) {
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

TEST(HALF(Pool), AverageAndItsGradient) {
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

TEST(HALF(Lrn), ForwardAndBackward) {
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

TEST(HALF(LayerNorm), ForwardAndBackward) {
  for (int64_t columns : {11, 96})
    expectRounded([&](Harness &h, DataType type) {
      const Shape shape{7, columns};
      const LayerNorm norm("ln", shape, 1e-5f);
      const Tensor x = h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), 1), type),
                   dy = h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), 2), type);
      const Tensor scale = h.tensor({columns}, Layout::RowMajor, randomHalves(columns, 3)),
                   bias = h.tensor({columns}, Layout::RowMajor, randomHalves(columns, 4));
      const Tensor y = h.tensor(shape, Layout::RowMajor, type), dx = h.tensor(shape, Layout::RowMajor, type);
      const Tensor mean = h.tensor({7, 1}), rstd = h.tensor({7, 1});
      norm.forward(h.session.compute, x, scale, bias, y, mean, rstd);
      norm.backward(h.session.compute, dy, x, scale, mean, rstd, dx);
      Numbers both = h.read(y);
      for (double v : h.read(dx))
        both.push_back(v);
      return both;
    });
}

TEST(HALF(Resize), ForwardAndBackward) {
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

TEST(HALF(Softmax), ForwardAndBackward) {
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

TEST(HALF(Broadcast), FromEitherTypeToEither) {
  const Shape small{2, 12, 1, 1}, large{2, 12, 5, 3};
  const Numbers x = randomHalves(24, 1);
  for (DataType from : {half, full})
    for (DataType to : {half, full}) {
      Harness h;
      const Tensor tx = h.tensor(small, Layout::RowMajor, x, from), y = h.tensor(large, Layout::RowMajor, to);
      const BroadcastTo broadcast("b", tx, y, 0.25f);
      broadcast.run(h.session.compute, tx, y);
      Numbers want;
      for (double v : x)
        want.insert(want.end(), 15, 0.25 * v);
      EXPECT_EQ(h.read(y), want); // a power of two rounds nothing
    }
}

TEST(HALF(SumTo), AddsInFloat) {
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

TEST(HALF(Statistics), StayNearThoseOfDoubles) {
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

// More rows a thread than it asks for at once: every other pixel is 1.
TEST(HALF(Statistics), OfManyRows) {
  const Shape shape{1, 8, 1024, 1100};
  Numbers x(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(i % 2);
  Harness h;
  const Tensor mean = h.tensor({8}), rstd = h.tensor({8});
  const BatchNormStatistics statistics("bn", shape, 0);
  statistics.run(h.session.compute, h.tensor(shape, Layout::NHWC, x, half), mean, rstd, h.workspace(statistics));
  EXPECT_EQ(h.read(mean), Numbers(8, 0.5));
  EXPECT_EQ(h.read(rstd), Numbers(8, 2));
}

} // namespace
} // namespace sluice
