// SPDX-License-Identifier: Apache-2.0
// Regions: broadcasting in every position, in-place outputs, sums that repeat bit for bit with any number of threads,
// dropout.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

struct Add {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  SLUICE_KERNEL Values<1> operator()(float a, float b) const { return {{a + 2 * b}}; }
};
struct AddConstant : Add {
  static constexpr bool steps[] = {true, false};
};
struct NormalizeRelu {
  static constexpr int inputs = 3, outputs = 2, sums = 0;
  SLUICE_KERNEL Values<2> operator()(float x, float mean, float scale) const {
    const float v = (x - mean) * scale;
    return {{v > 0 ? v : 0, v}};
  }
};
/// dx in place of dy; sums of dy and dy*x.
struct Backward {
  static constexpr int inputs = 2, outputs = 1, sums = 2;
  SLUICE_KERNEL Values<3> operator()(float dy, float x) const { return {{x > 0 ? dy : 0, dy, dy * x}}; }
};
struct SumOnly {
  static constexpr int inputs = 1, outputs = 0, sums = 1;
  SLUICE_KERNEL Values<1> operator()(float x) const { return {{x * x}}; }
};
struct Drop {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr bool random = true;
  SLUICE_KERNEL Values<1> operator()(Element e, float x) const {
    return {{uniform(randomKey(e.seed, nameKey("drop"), e.step), e.index) >= 0.25f ? x : 0}};
  }
};

/// Value of an operand at a logical index of `shape`.
double at(const Numbers &values, const Shape &operand, const Shape &shape, int64_t index) {
  int64_t offset = 0, factor = 1;
  for (int i = 1; i <= shape.rank; ++i) {
    const int64_t position = index % shape[shape.rank - i];
    index /= shape[shape.rank - i];
    if (i > operand.rank)
      continue;
    const int64_t extent = operand[operand.rank - i];
    offset += (extent == 1 ? 0 : position) * factor;
    factor *= extent;
  }
  return values[static_cast<size_t>(offset)];
}

template <typename F> void checkAdd(Shape shape, Layout layout, Shape operand) {
  Harness h;
  const Numbers a = randomNumbers(shape.elements(), 1), b = randomNumbers(operand.elements(), 2);
  const Tensor ta = h.tensor(shape, layout, a), y = h.tensor(shape, layout);
  const Tensor tb = h.tensor(operand, operand.rank == shape.rank ? layout : Layout::RowMajor, b);
  Numbers want(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    want[i] = static_cast<float>(a[i]) + 2 * static_cast<float>(at(b, operand, shape, static_cast<int64_t>(i)));
  const Fused<F> add("add", shape, layout, {ta, tb}, {y}, {});
  add.run(h.session.compute, {ta, tb}, {y}, {}, none);
  EXPECT_EQ(h.read(y), want);
  add.run(h.session.compute, {ta, tb}, {ta}, {}, none);
  EXPECT_EQ(h.read(ta), want) << "in place";
}

TEST(Fused, Broadcasts) {
  for (Layout layout : {Layout::RowMajor, Layout::NHWC}) {
    const Shape shape{2, 5, 6, 7};
    const bool nhwc = layout == Layout::NHWC;
    checkAdd<Add>(shape, layout, shape);
    checkAdd<AddConstant>(shape, layout, {1});
    checkAdd<AddConstant>(shape, layout, {});
    checkAdd<AddConstant>(shape, layout, {2, 1, 1, 1});
    nhwc ? checkAdd<Add>(shape, layout, {5, 1, 1}) : checkAdd<AddConstant>(shape, layout, {5, 1, 1});
    nhwc ? checkAdd<AddConstant>(shape, layout, {7}) : checkAdd<Add>(shape, layout, {7});
    nhwc ? checkAdd<Add>(shape, layout, {2, 5, 1, 1}) : checkAdd<AddConstant>(shape, layout, {2, 5, 1, 1});
    nhwc ? checkAdd<AddConstant>(shape, layout, {2, 1, 6, 7}) : checkAdd<Add>(shape, layout, {2, 1, 6, 7});
    checkAdd<Add>(shape, layout, {1, 5, 6, 7});
  }
}

TEST(Fused, AwkwardExtents) {
  checkAdd<Add>({}, Layout::RowMajor, {});
  checkAdd<Add>({1}, Layout::RowMajor, {1});
  checkAdd<Add>({3, 1, 4, 5}, Layout::NHWC, {3, 1, 4, 5});
  checkAdd<Add>({3, 1, 4, 5}, Layout::NHWC, {1, 1, 4, 5});
  checkAdd<AddConstant>({3, 1, 4, 5}, Layout::NHWC, {1, 1, 1, 1});
  checkAdd<Add>({100003}, Layout::RowMajor, {100003});
  checkAdd<AddConstant>({100003}, Layout::RowMajor, {1});
  checkAdd<Add>({2, 3, 2, 3, 2, 3}, Layout::RowMajor, {3, 1, 3, 1, 3});
  checkAdd<Add>({2, 1000, 2, 2}, Layout::NHWC, {1000, 1, 1});
  checkAdd<Add>({40, 16, 8, 8}, Layout::NHWC, {16, 1, 1});
  checkAdd<Add>({2, 24, 15, 9}, Layout::NHWC, {24, 1, 1});
}

/// The host writes such outputs around the caches, in whole lines: with the next operand behind them.
TEST(Fused, LargeOutputs) {
  checkAdd<Add>({1100003}, Layout::RowMajor, {1100003});
  checkAdd<AddConstant>({1100003}, Layout::RowMajor, {1});
  checkAdd<Add>({2, 48, 120, 100}, Layout::NHWC, {48, 1, 1});
  checkAdd<Add>({1, 20, 250, 250}, Layout::NHWC, {20, 1, 1});
  checkAdd<Add>({3, 1072, 21, 20}, Layout::NHWC, {1072, 1, 1});
}

TEST(Fused, StepsMustFit) {
  const Tensor x = device(0, {2, 3}), scalar = device(0, {1});
  EXPECT_THROW((Fused<Add>("n", {2, 3}, Layout::RowMajor, {x, scalar}, {x}, {})), std::invalid_argument);
  EXPECT_THROW((Fused<AddConstant>("n", {2, 3}, Layout::RowMajor, {x, x}, {x}, {})), std::invalid_argument);
  EXPECT_THROW((Fused<Add>("n", {2, 3}, Layout::RowMajor, {x, device(0, {4})}, {x}, {})), std::invalid_argument);
  EXPECT_THROW((Fused<Add>("n", {2, 3}, Layout::RowMajor, {x}, {x}, {})), std::invalid_argument);
  EXPECT_THROW((Fused<Backward>("n", {2, 3}, Layout::RowMajor, {x, x}, {x}, {device(0, {3}), device(0, {2})})),
               std::invalid_argument);
}

TEST(Fused, TwoOutputsAndChannels) {
  for (int64_t channels : {3, 64, 300}) {
    Harness h;
    const Shape shape{2, channels, 9, 5};
    const Numbers x = randomNumbers(shape.elements(), 1), m = randomNumbers(channels, 2),
                  s = randomNumbers(channels, 3);
    const Tensor tx = h.tensor(shape, Layout::NHWC, x), y = h.image(shape), v = h.image(shape);
    const Tensor tm = channel(h.tensor({channels}, Layout::RowMajor, m)),
                 ts = channel(h.tensor({channels}, Layout::RowMajor, s));
    const Fused<NormalizeRelu> relu("relu", shape, Layout::NHWC, {tx, tm, ts}, {y, v}, {});
    relu.run(h.session.compute, {tx, tm, ts}, {y, v}, {}, none);
    Numbers want(x.size()), wantRelu(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i / 45 % static_cast<size_t>(channels);
      want[i] = (static_cast<float>(x[i]) - static_cast<float>(m[c])) * static_cast<float>(s[c]);
      wantRelu[i] = std::max(0.0, want[i]);
    }
    EXPECT_EQ(h.read(v), want);
    EXPECT_EQ(h.read(y), wantRelu);
  }
}

void checkSums(Shape shape, Layout layout, bool scalars) {
  const Numbers dy = randomNumbers(shape.elements(), 1), x = randomNumbers(shape.elements(), 2);
  const bool nhwc = layout == Layout::NHWC;
  const int64_t length = scalars ? 1 : nhwc ? shape[1] : shape[shape.rank - 1], inner = nhwc ? shape[2] * shape[3] : 1;
  Numbers wantSum(static_cast<size_t>(length)), wantProduct(static_cast<size_t>(length)), wantDx(dy.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t to = scalars ? 0 : i / static_cast<size_t>(inner) % static_cast<size_t>(length);
    wantSum[to] += dy[i];
    wantProduct[to] += dy[i] * x[i];
    wantDx[i] = x[i] > 0 ? dy[i] : 0;
  }
  std::vector<Numbers> all;
  for (int count : {1, 2, 3}) {
    setThreads(count);
    Harness h;
    const Tensor tdy = h.tensor(shape, layout, dy), tx = h.tensor(shape, layout, x), sum = h.tensor({length}),
                 product = h.tensor({length});
    const Fused<Backward> backward("b", shape, layout, {tdy, tx}, {tdy}, {sum, product});
    backward.run(h.session.compute, {tdy, tx}, {tdy}, {sum, product}, h.workspace(backward));
    EXPECT_EQ(h.read(tdy), wantDx);
    EXPECT_CLOSE(h.read(sum), wantSum, 1e-4);
    EXPECT_CLOSE(h.read(product), wantProduct, 1e-4);
    all.push_back(h.read(sum));
    all.push_back(h.read(product));
  }
  setThreads(2);
  EXPECT_EQ(all[0], all[2]);
  EXPECT_EQ(all[1], all[5]);
}

TEST(Fused, Sums) {
  for (bool scalars : {false, true}) {
    checkSums({4, 64, 28, 28}, Layout::NHWC, scalars);
    checkSums({2, 3, 17, 19}, Layout::NHWC, scalars);
    checkSums({2, 17, 60, 60}, Layout::NHWC, scalars);
    checkSums({2, 600, 3, 3}, Layout::NHWC, scalars);
    checkSums({64, 1000}, Layout::RowMajor, scalars);
    checkSums({1, 7}, Layout::RowMajor, scalars);
  }
  checkSums({100003}, Layout::RowMajor, true);
}

/// The same sums with an operand that keeps rows from being grouped.
struct BackwardScaled {
  static constexpr int inputs = 3, outputs = 1, sums = 2;
  SLUICE_KERNEL Values<3> operator()(float dy, float x, float) const { return {{x > 0 ? dy : 0, dy, dy * x}}; }
};

TEST(Fused, OtherOperandsDoNotChangeSums) {
  for (int64_t channels : {3, 16, 64, 300}) {
    const Shape shape{3, channels, 13, 11};
    Harness h;
    const Tensor dy = h.tensor(shape, Layout::NHWC, randomNumbers(shape.elements(), 1)), dx = h.image(shape);
    const Tensor x = h.tensor(shape, Layout::NHWC, randomNumbers(shape.elements(), 2));
    const Tensor gate = h.tensor({3, channels, 1, 1}, Layout::NHWC, randomNumbers(3 * channels, 3));
    const Tensor sum = h.tensor({channels}), product = h.tensor({channels});
    const Fused<Backward> plain("b", shape, Layout::NHWC, {dy, x}, {dx}, {sum, product});
    const Fused<BackwardScaled> gated("b", shape, Layout::NHWC, {dy, x, gate}, {dx}, {sum, product});
    plain.run(h.session.compute, {dy, x}, {dx}, {sum, product}, h.workspace(plain));
    const Numbers first = h.read(sum), second = h.read(product);
    gated.run(h.session.compute, {dy, x, gate}, {dx}, {sum, product}, h.workspace(gated));
    EXPECT_EQ(h.read(sum), first);
    EXPECT_EQ(h.read(product), second);
  }
}

TEST(Fused, SumWithoutOutputs) {
  Harness h;
  const Numbers x = randomNumbers(5000, 1);
  const Tensor tx = h.tensor({5000}, Layout::RowMajor, x), sum = h.tensor({});
  const Fused<SumOnly> norm("n", {5000}, Layout::RowMajor, {tx}, {}, {sum});
  norm.run(h.session.compute, {tx}, {}, {sum}, h.workspace(norm));
  EXPECT_NEAR(h.read(sum)[0], dot(x, x), 1e-5 * dot(x, x));
}

TEST(Fused, DropoutIsAFunctionOfSeedAndStep) {
  auto draw = [](uint64_t seed, int64_t step, Shape shape) {
    Harness h;
    h.session.state.seed = seed;
    h.session.state.step = step;
    const Tensor x = h.tensor(shape, Layout::RowMajor, Numbers(static_cast<size_t>(shape.elements()), 1.0)),
                 y = h.tensor(shape);
    const Fused<Drop> drop("drop", shape, Layout::RowMajor, {x}, {y}, {});
    drop.run(h.session.compute, {x}, {y}, {}, none);
    return h.read(y);
  };
  const Numbers first = draw(1, 1, {100000});
  double kept = 0;
  for (double v : first)
    kept += v;
  EXPECT_NEAR(kept / 100000, 0.75, 0.01);
  EXPECT_EQ(first, draw(1, 1, {100000}));
  EXPECT_EQ(first, draw(1, 1, {1000, 100})) << "the shape of rows changed the mask";
  EXPECT_NE(first, draw(2, 1, {100000}));
  EXPECT_NE(first, draw(1, 2, {100000}));
}

} // namespace
} // namespace sluice
