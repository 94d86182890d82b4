// SPDX-License-Identifier: Apache-2.0
// Random numbers: fixed bits for ever (checkpoints and published losses depend on them), and the right distributions.
#include "runtime/Random.h"

#include <gtest/gtest.h>

using namespace sluice;

TEST(Random, BitsNeverChange) {
  uint64_t key = randomKey(1, nameKey("conv1.weight"), 2);
  EXPECT_EQ(key, 18028295878788130010u);
  EXPECT_EQ(randomBits64(key, 3), 13725521431254699587u);
  EXPECT_EQ(uniform(key, 4), 0.742659032f);
  EXPECT_EQ(normal(key, 5), 0.594274044f);
}

TEST(Random, EveryPartOfTheKeyMatters) {
  uint64_t key = randomKey(1, nameKey("a"), 1);
  EXPECT_NE(key, randomKey(2, nameKey("a"), 1));
  EXPECT_NE(key, randomKey(1, nameKey("b"), 1));
  EXPECT_NE(key, randomKey(1, nameKey("a"), 2));
}

TEST(Random, Distributions) {
  const int n = 1000000;
  uint64_t key = randomKey(0, nameKey("x"), 0);
  double mean = 0, square = 0, fourth = 0, flat = 0, flatSquare = 0, serial = 0;
  float before = 0.5f;
  int below = 0;
  for (int i = 0; i < n; ++i) {
    double x = normal(key, static_cast<uint64_t>(i));
    float u = uniform(key, static_cast<uint64_t>(i));
    ASSERT_TRUE(u >= 0 && u < 1);
    mean += x / n, square += x * x / n, fourth += x * x * x * x / n;
    below += x < -1.959964;
    flat += u / n, flatSquare += double(u) * u / n;
    serial += (u - 0.5) * (before - 0.5) * 12 / n;
    before = u;
  }
  // Four standard errors of each mean.
  EXPECT_NEAR(mean, 0, 4e-3);
  EXPECT_NEAR(square, 1, 6e-3);
  EXPECT_NEAR(fourth, 3, 4e-2);
  EXPECT_NEAR(double(below) / n, 0.025, 7e-4);
  EXPECT_NEAR(flat, 0.5, 1.2e-3);
  EXPECT_NEAR(flatSquare, 1.0 / 3, 1.2e-3);
  EXPECT_NEAR(serial, 0, 4e-3);
}

TEST(Random, LogarithmIsAccurate) {
  for (double x = 1e-17; x < 1; x *= 1.37)
    EXPECT_NEAR(portableLog(x) / std::log(x), 1, 1e-15);
}
