// SPDX-License-Identifier: Apache-2.0
// Our exponential, logarithm, tanh and erf against double precision over their whole range, and at the edges.
#include "runtime/Math.h"

#include <gtest/gtest.h>
#include <limits>
#include <vector>

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
