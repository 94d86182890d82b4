// SPDX-License-Identifier: Apache-2.0
// What a BatchNorm read, rebuilt from what the leaky ReLU after it wrote; sums whose addend has lost its digits.
#include "test/unit/runtime/Harness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace sluice {
namespace {

/// z of a BatchNorm with these scales and biases and a leaky ReLU of slope 0.1 over x of 6 channels, and what inversion
/// makes of it.
class Inversion : public testing::Test {
protected:
  static constexpr float alpha = 0.1f;
  const Shape shape{3, 6, 4, 5};
  const BatchNormInversion full{"bn", shape, 2, alpha, DataType::F32}, half{"bn", shape, 2, alpha, DataType::F16};
  Harness h; // after the kernels, which outlive what streams run
  const Numbers x = randomNumbers(shape.elements(), 5, 2, 1), mean = {1, 0.5, 2, 1, 0, 3},
                rstd = {0.5, 1, 2, 0.4, 1, 1};
  const Tensor tx = h.tensor(shape, Layout::NHWC, x), tz = h.image(shape), back = h.image(shape),
               tMean = h.tensor({6}, Layout::RowMajor, mean), tRstd = h.tensor({6}, Layout::RowMajor, rstd),
               saved = h.tensor({2, 60});

  void run(const Numbers &scale, const Numbers &bias, bool halved = false) {
    const Tensor tScale = h.tensor({6}, Layout::RowMajor, scale), tBias = h.tensor({6}, Layout::RowMajor, bias);
    Numbers z(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i / 20 % 6;
      const float xhat = (static_cast<float>(x[i]) - static_cast<float>(mean[c])) * static_cast<float>(rstd[c]);
      const float u = xhat * static_cast<float>(scale[c]) + static_cast<float>(bias[c]);
      const float value = u > 0 ? u : u * alpha;
      z[i] = halved ? static_cast<float>(std::ldexp(std::rint(std::ldexp(value, 11 - std::ilogb(value))),
                                                    std::ilogb(value) - 11)) // 12 bits: at least as coarse as a half
                    : value;
    }
    h.write(tz, z);
    h.write(saved, Numbers(120, 7));
    const BatchNormInversion &inversion = halved ? half : full;
    inversion.save(h.session.compute, tx, tScale, tBias, saved);
    inversion.invert(h.session.compute, tz, tMean, tRstd, tScale, tBias, saved, back);
  }
  /// Which channels came back bit for bit.
  std::vector<bool> exact() {
    const Numbers found = h.read(back);
    std::vector<bool> result(6, true);
    for (size_t i = 0; i < x.size(); ++i)
      result[i / 20 % 6] = result[i / 20 % 6] && found[i] == static_cast<float>(x[i]);
    return result;
  }
};

TEST_F(Inversion, RebuildsTheInput) {
  run({1, -0.5, 2, 0.1, 1, 3}, {0, 0.3, -1, 0.2, 0, 0.5});
  EXPECT_CLOSE(h.read(back), x, 1e-6);
  EXPECT_EQ(h.read(saved), Numbers(120, 7)); // nothing was saved
}

TEST_F(Inversion, GuardedChannelsComeBackAsTheyWere) {
  // 1 + |bias / scale| above 168 costs more digits than fp32 has to spare.
  run({1, 0, 2, 0.1, 1e-3, 3}, {0, 0.3, -1, 0.2, 0.9, 0.5});
  EXPECT_CLOSE(h.read(back), x, 1e-6);
  const std::vector<bool> saved = exact();
  EXPECT_TRUE(saved[1]);
  EXPECT_TRUE(saved[4]);
  EXPECT_FALSE(saved[3]);
}

TEST_F(Inversion, HalfPrecisionGuardsEarlier) {
  // 1 + |bias / scale| is 31 and 11; a half spares 20.
  run({1, -0.5, 2, 0.02, 0.1, 3}, {0, 0.3, -1, 0.6, 1, 0.5}, true);
  EXPECT_CLOSE(h.read(back), x, 1e-2);
  const std::vector<bool> saved = exact();
  EXPECT_TRUE(saved[3]);
  EXPECT_FALSE(saved[4]);
  run({1, -0.5, 2, 0.02, 0.1, 3}, {0, 0.3, -1, 0.6, 1, 0.5}, false);
  EXPECT_FALSE(exact()[3]);
}

TEST_F(Inversion, SubnormalHalvesAreGuarded) {
  run({1, 2e-3, 2, 1, 4e-3, 3}, {0, 0, -1, 0, 0, 0.5}, true);
  EXPECT_TRUE(exact()[1]);
  EXPECT_FALSE(exact()[4]);
  run({1, 2e-3, 2, 1, 1e-36, 3}, {0, 0, -1, 0, 0, 0.5}, false);
  EXPECT_FALSE(exact()[1]);
  EXPECT_TRUE(exact()[4]);
}

TEST_F(Inversion, WhatIsNotFiniteStaysSo) {
  const Numbers one(6, 1), zero(6, 0);
  const Tensor tScale = h.tensor({6}, Layout::RowMajor, one), tBias = h.tensor({6}, Layout::RowMajor, zero);
  const double inf = std::numeric_limits<double>::infinity();
  Numbers z(x.size(), 1);
  z[3] = std::nan(""), z[4] = inf, z[5] = -inf, z[6] = 0, z[7] = -1e-40;
  h.write(tz, z);
  full.invert(h.session.compute, tz, tMean, tRstd, tScale, tBias, saved, back);
  const Numbers found = h.read(back); // of channel 0: 2 u + 1
  EXPECT_TRUE(std::isnan(found[3]));
  EXPECT_EQ(found[4], inf);
  EXPECT_EQ(found[5], -inf);
  EXPECT_EQ(found[6], 1);
  EXPECT_EQ(found[7], 1);
  EXPECT_EQ(found[8], 3);
}

TEST_F(Inversion, MoreGuardedChannelsThanSlotsStop) {
  run({1, 0, 0, 0.1, std::nan(""), 3}, {0, 0.3, -1, 0.2, 0.9, 0.5});
  try {
    h.session.synchronize();
    FAIL();
  } catch (const MemoryNotAvailable &error) {
    EXPECT_STREQ(error.what(),
                 "node 'bn': 3 of 6 channels have a scale too small to be inverted, and the plan has room for 2; "
                 "compile without --allow-lossy=invert");
  }
}

/// What a check says of x and y of which a few values are given; the rest is 0.
std::string checkOf(const Numbers &x, const Numbers &y, int64_t elements, int64_t parts) {
  const CancellationCheck check("sum", elements, parts);
  Harness h;
  Numbers full[2] = {x, y};
  Tensor tensors[2];
  for (int k = 0; k < 2; ++k) {
    full[k].resize(static_cast<size_t>(elements));
    std::rotate(full[k].begin(), full[k].begin() + static_cast<long>(x.size()), full[k].end()); // the last ones
    tensors[k] = h.tensor({elements}, Layout::RowMajor, full[k]);
  }
  const Tensor maxima = h.tensor({parts, 2}, Layout::RowMajor, Numbers(static_cast<size_t>(2 * parts), 1e30));
  check.run(h.session.compute, tensors[0], tensors[1], maxima);
  try {
    h.session.synchronize();
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

TEST(Cancellation, EndsTheStepBelowAThousandthOfTheSum) {
  EXPECT_EQ(checkOf({-1, 0.5}, {3, -1023}, 1000, 7), "");
  EXPECT_EQ(
      checkOf({-1, 0.5}, {3, -1025}, 1000, 7),
      "node 'sum': what is rebuilt from the sum is at most 1, the sum 1.02e+03: fewer than 14 bits are left of it; "
      "compile without --allow-lossy=invert");
  EXPECT_NE(checkOf({0}, {1e-20}, 3, 512), "") << "nothing is left";
  EXPECT_EQ(checkOf({0}, {0}, 3, 512), "");
}

TEST(Cancellation, WhatIsNotFiniteIsLeftToTheLoss) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(checkOf({1}, {-inf}, 5, 2), "");
  EXPECT_EQ(checkOf({-inf}, {1}, 5, 2), "");
  EXPECT_EQ(checkOf({std::nan("")}, {std::nan("")}, 5, 2), "");
  EXPECT_NE(checkOf({std::nan(""), 1}, {std::nan(""), 1e6}, 5, 2), "") << "the finite values are compared";
}

} // namespace
} // namespace sluice
