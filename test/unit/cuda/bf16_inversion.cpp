// SPDX-License-Identifier: Apache-2.0
// Inversions of halves: what a BatchNorm read comes back within its bound, guarded channels as they were, and sums end
// the step where fewer than six bits are left of an addend.
#include "runtime/Codec.h"
#include "test/unit/cuda/Halves.h"

namespace sluice {
namespace {

constexpr double bound = half == DataType::F16 ? 1e-2 : 2e-2; ///< of what has unit variance
constexpr double unit = half == DataType::F16 ? 0x1p-11 : 0x1p-8;

/// What is rebuilt of 4 channels, normalized with these scales and biases, after a leaky ReLU of slope 0.1.
struct Rebuilt {
  const Shape shape{3, 4, 4, 5};
  const Numbers x = halves(randomNumbers(shape.elements(), 5, 2, 1)), mean = {1, 0.5, 2, 1}, rstd = {0.5, 1, 2, 0.4};
  Numbers back;

  Rebuilt(const Numbers &scale, const Numbers &bias) {
    const BatchNormInversion inversion("bn", shape, 2, 0.1f, half);
    Harness h;
    const Tensor tx = h.tensor(shape, Layout::NHWC, x, half), tBack = h.image(shape, half),
                 saved = h.tensor({2, 60}, Layout::RowMajor, half);
    Numbers z = x;
    for (size_t i = 0; i < z.size(); ++i) {
      const size_t c = i / 20 % 4;
      const double u = (x[i] - mean[c]) * rstd[c] * scale[c] + bias[c];
      z[i] = u > 0 ? u : u * 0.1;
    }
    const Tensor tz = h.tensor(shape, Layout::NHWC, z, half);
    const auto vector = [&](const Numbers &numbers) { return h.tensor({4}, Layout::RowMajor, numbers); };
    const Tensor tScale = vector(scale), tBias = vector(bias), tMean = vector(mean), tRstd = vector(rstd);
    inversion.save(h.session.compute, tx, tScale, tBias, saved);
    inversion.invert(h.session.compute, tz, tMean, tRstd, tScale, tBias, saved, tBack);
    back = h.read(tBack);
  }
  /// The largest error of a channel's normalized values, its own rounding to x's format left out.
  double error(size_t channel) const {
    double largest = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (i / 20 % 4 == channel)
        largest = std::max(largest, (std::fabs(back[i] - x[i]) - unit * std::fabs(x[i])) * rstd[channel] /
                                        std::max(1.0, std::fabs(x[i] - mean[channel]) * rstd[channel]));
    return largest;
  }
};

TEST(HALF(Inversion), RebuildsWithinTheBound) {
  const double most = bound / unit - 1.1; // of |bias / scale|
  const Rebuilt rebuilt({1, -0.5, 2, 0.25}, {0, 0.3, -2 * most, 0.25 * most});
  for (size_t channel = 0; channel < 4; ++channel) {
    EXPECT_LE(rebuilt.error(channel), bound) << channel;
    EXPECT_GT(rebuilt.error(channel), 0) << channel << " was saved";
  }
}

TEST(HALF(Inversion), GuardedChannelsComeBackAsTheyWere) {
  const double most = bound / unit - 0.9;
  const Rebuilt rebuilt({1, 0, 2, 0.25}, {0, 0.3, -1, 0.25 * most});
  for (size_t i = 0; i < rebuilt.x.size(); ++i)
    if (i / 20 % 2 == 1) {
      ASSERT_EQ(rebuilt.back[i], rebuilt.x[i]) << i;
    }
}

/// What is said of a sum this many times as large as what is left of its addend.
std::string checkOf(double times) {
  const CancellationCheck check("sum", 100, 7);
  Harness h;
  Numbers x(100), y(100);
  x[40] = -1, y[71] = times;
  const Tensor tx = h.tensor({100}, Layout::RowMajor, x, half), ty = h.tensor({100}, Layout::RowMajor, y, half),
               maxima = h.tensor({7, 2}, Layout::RowMajor, Numbers(14, 1e30));
  check.run(h.session.compute, tx, ty, maxima);
  try {
    h.session.synchronize();
  } catch (const ValueNotStorable &error) {
    return error.what();
  }
  return "";
}

TEST(HALF(Cancellation), LeavesSixBits) {
  const double most = half == DataType::F16 ? 32 : 4;
  EXPECT_EQ(checkOf(most), "");
  EXPECT_NE(checkOf(most * 1.0625).find("fewer than 6 bits are left of it"), std::string::npos);
}

} // namespace
} // namespace sluice
