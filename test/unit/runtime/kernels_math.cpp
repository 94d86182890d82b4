// SPDX-License-Identifier: Apache-2.0
// Our exponential, logarithm, tanh and erf against double precision over their whole range, and at the edges.
#include "runtime/Math.h"

#include "test/unit/runtime/Harness.h"

#include <limits>

namespace sluice {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Distance in units in the last place of the reference.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  const double unit =
      static_cast<double>(std::nextafter(std::fabs(rounded), infinity)) - static_cast<double>(std::fabs(rounded));
  return std::fabs(static_cast<double>(got) - want) / unit;
}

TEST(Math, Exponential) {
  double worst = 0;
  for (int i = -869000; i <= 887000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(89), infinity);
  EXPECT_EQ(exponential(infinity), infinity);
  EXPECT_LE(exponential(-87.1f), 1.5e-38f);
  EXPECT_EQ(exponential(-88), 0);
  EXPECT_EQ(exponential(-200), 0);
  EXPECT_EQ(exponential(-infinity), 0);
  EXPECT_TRUE(std::isnan(exponential(std::nanf(""))));
}

TEST(Math, Logistic) {
  double worst = 0;
  for (int i = -860000; i <= 1000000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    worst = std::max(worst, ulps(logistic(x), 1 / (1 + std::exp(-static_cast<double>(x)))));
  }
  EXPECT_LE(worst, 3);
  EXPECT_EQ(logistic(0), 0.5f);
  EXPECT_EQ(logistic(infinity), 1);
  EXPECT_EQ(logistic(-infinity), 0);
  EXPECT_EQ(logistic(-100), 0);
  EXPECT_TRUE(std::isnan(logistic(std::nanf(""))));
}

/// What kernels of the target compute, which on a GPU are other instructions than the host's.
struct ExponentialLogisticTangent {
  static constexpr int inputs = 1, outputs = 3, sums = 0;
  SLUICE_KERNEL Values<3> operator()(float x) const { return {{exponential(x), logistic(x), hyperbolicTangent(x)}}; }
};
TEST(Math, AsKernelsComputeIt) {
  Harness h;
  Numbers values = {-infinity, -1e30, -150, -104, -88, -87.5, 0, 88.72, 89, 1e30, infinity, std::nan("")};
  for (int i = -86900; i <= 88700; ++i)
    values.push_back(i * 1e-3);
  const Shape shape{static_cast<int64_t>(values.size())};
  const Tensor x = h.tensor(shape, Layout::RowMajor, values);
  const Tensor y[3] = {h.tensor(shape), h.tensor(shape), h.tensor(shape)};
  const Fused<ExponentialLogisticTangent> f("f", shape, Layout::RowMajor, {x}, {y[0], y[1], y[2]}, {});
  f.run(h.session.compute, {x}, {y[0], y[1], y[2]}, {}, none);
  const Numbers exponentials = h.read(y[0]), logistics = h.read(y[1]), tangents = h.read(y[2]);
  double worst[3] = {};
  for (size_t i = 12; i < values.size(); ++i) {
    const auto at = static_cast<double>(static_cast<float>(values[i]));
    worst[0] = std::max(worst[0], ulps(static_cast<float>(exponentials[i]), std::exp(at)));
    worst[1] = std::max(worst[1], at < -86 ? 0 : ulps(static_cast<float>(logistics[i]), 1 / (1 + std::exp(-at))));
    worst[2] = std::max(worst[2], at == 0 ? 0 : ulps(static_cast<float>(tangents[i]), std::tanh(at)));
  }
  EXPECT_LE(worst[0], 6);
  EXPECT_LE(worst[1], 8);
  EXPECT_LE(worst[2], 6);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(exponentials[i], 0) << values[i];
  EXPECT_EQ(exponentials[6], 1);
  EXPECT_NEAR(exponentials[7] / std::exp(static_cast<double>(88.72f)), 1, 1e-6);
  EXPECT_EQ(exponentials[8], infinity);
  EXPECT_EQ(exponentials[10], infinity);
  EXPECT_EQ(logistics[0], 0);
  EXPECT_EQ(logistics[6], 0.5);
  EXPECT_EQ(logistics[10], 1);
  EXPECT_EQ(tangents[0], -1);
  EXPECT_EQ(tangents[6], 0);
  EXPECT_EQ(tangents[10], 1);
  for (const Numbers &results : {exponentials, logistics, tangents})
    EXPECT_TRUE(std::isnan(results[11]));
}

TEST(Math, HyperbolicTangent) {
  double worst = 0;
  for (int i = -120000; i <= 120000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    if (i)
      worst = std::max(worst, ulps(hyperbolicTangent(x), std::tanh(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(hyperbolicTangent(0), 0);
  EXPECT_EQ(hyperbolicTangent(infinity), 1);
  EXPECT_EQ(hyperbolicTangent(-infinity), -1);
  EXPECT_TRUE(std::isnan(hyperbolicTangent(std::nanf(""))));
}

TEST(Math, Logarithm) {
  double worst = 0;
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 1009) {
    const float x = floatOfBits(bits);
    if (x != 1)
      worst = std::max(worst, ulps(logarithm(x), std::log(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(logarithm(1), 0);
  EXPECT_EQ(logarithm(0), -infinity);
  EXPECT_EQ(logarithm(infinity), infinity);
  EXPECT_TRUE(std::isnan(logarithm(-1)));
  EXPECT_TRUE(std::isnan(logarithm(std::nanf(""))));
}

TEST(Math, SineAndCosine) {
  double worst = 0;
  for (int i = -300000; i <= 300000; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    const auto wide = static_cast<double>(x);
    worst = std::max(worst, i ? ulps(sine(x), std::sin(wide)) : 0);
    worst = std::max(worst, ulps(cosine(x), std::cos(wide)));
  }
  EXPECT_LE(worst, 2);
  for (float x : {1e5f, -3e6f, 5e8f})
    EXPECT_NEAR(sine(x), std::sin(static_cast<double>(x)), 1e-6);
  EXPECT_LE(std::fabs(sine(1e30f)), 1); // no digit is right, but it is a sine
  EXPECT_EQ(sine(0), 0);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_TRUE(std::isnan(sine(infinity)));
  EXPECT_TRUE(std::isnan(cosine(-infinity)));
  EXPECT_TRUE(std::isnan(sine(std::nanf(""))));
}

TEST(Math, ArcTangent) {
  double worst = 0;
  for (int i = -120000; i <= 120000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    if (i)
      worst = std::max(worst, ulps(arcTangent(x), std::atan(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 3);
  EXPECT_EQ(arcTangent(0), 0);
  EXPECT_FLOAT_EQ(arcTangent(1e30f), 1.57079633f);
  EXPECT_FLOAT_EQ(arcTangent(-infinity), -1.57079633f);
  EXPECT_TRUE(std::isnan(arcTangent(std::nanf(""))));
}

TEST(Math, ErrorFunction) {
  double worst = 0;
  for (int i = -50000; i <= 50000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    if (i)
      worst = std::max(worst, ulps(errorFunction(x), std::erf(static_cast<double>(x))));
  }
#ifdef __FMA__
  EXPECT_LE(worst, 5);
#else
  EXPECT_LE(worst, 7);
#endif
  EXPECT_EQ(errorFunction(0), 0);
  EXPECT_FLOAT_EQ(errorFunction(1e-30f), 1.1283792e-30f);
  EXPECT_EQ(errorFunction(infinity), 1);
  EXPECT_EQ(errorFunction(-infinity), -1);
  EXPECT_TRUE(std::isnan(errorFunction(std::nanf(""))));
}

TEST(Math, VectorsAndScalarsAgree) {
  std::vector<float> x(1003), all(1003);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i) * 0.1f - 50;
  for (size_t i = 0; i < x.size(); ++i)
    all[i] = exponential(x[i]) + hyperbolicTangent(x[i]) + errorFunction(x[i]) + logarithm(x[i] * x[i]);
  for (size_t i = 0; i < x.size(); ++i) {
    volatile float alone = x[i];
    const float value = alone;
    EXPECT_EQ(all[i], exponential(value) + hyperbolicTangent(value) + errorFunction(value) + logarithm(value * value));
  }
}

} // namespace
} // namespace sluice
