// SPDX-License-Identifier: Apache-2.0
// Zeros that casts add to images, weights, matrices and rows; those in channels change no bit of what convolutions make
// of them.
#include "test/unit/cuda/Halves.h"

namespace sluice {
namespace {

/// Of images, and of weights, which change their order too; by itself and among others of a launch.
TEST(HALF(Cast), AddsChannelsOfZeros) {
  for (const int64_t more : {8, 5})
    for (const Layout layout : {Layout::NHWC, Layout::RowMajor})
      for (const bool gathers : {false, true}) {
        Harness h;
        const Numbers values = randomNumbers(3 * 3 * 5 * 7, 1);
        const Tensor x = h.tensor({3, 3, 5, 7}, layout, values), y = h.image({3, more, 5, 7}, half);
        if (gathers)
          gather(h.session.compute);
        const Reorder reorder("x", x, y, {});
        reorder.run(h.session.compute, x, y);
        if (gathers)
          launchGathered(h.session.compute);
        Numbers want(static_cast<size_t>(y.shape.elements()));
        for (size_t i = 0; i < values.size(); ++i)
          want[i / 105 * static_cast<size_t>(more) * 35 + i % 105] = values[i];
        EXPECT_EQ(h.read(y), halves(want));
      }
}

/// Of a matrix's rows or columns, and of a row, alone and among others of a launch; runs of eight begin where slots do,
/// or not.
TEST(HALF(Cast), AddsRowsAndColumnsOfZeros) {
  const auto check = [](const Shape &from, const Shape &to) {
    for (const bool gathers : {false, true}) {
      Harness h;
      const Numbers values = randomNumbers(from.elements(), 1);
      const Tensor x = h.tensor(from, Layout::RowMajor, values), y = h.tensor(to, Layout::RowMajor, half);
      if (gathers)
        gather(h.session.compute);
      const Reorder reorder("w", x, y, {});
      reorder.run(h.session.compute, x, y);
      if (gathers)
        launchGathered(h.session.compute);
      const auto own = static_cast<size_t>(from[from.rank - 1]), wide = static_cast<size_t>(to[to.rank - 1]);
      Numbers want(static_cast<size_t>(to.elements()));
      for (size_t i = 0; i < values.size(); ++i)
        want[i / own * wide + i % own] = values[i];
      EXPECT_EQ(h.read(y), halves(want));
    }
  };
  check({21, 32}, {64, 32});
  check({21, 5}, {64, 5});
  check({3, 7}, {5, 7});
  check({32, 21}, {32, 64});
  check({7, 24}, {7, 64});
  check({5, 3}, {5, 7});
  check({521}, {576});
}

Numbers withZeros(const Numbers &values, const Shape &shape, int64_t channels) {
  const auto outer = static_cast<size_t>(shape[0]), given = values.size() / outer,
             wide = given / static_cast<size_t>(shape[1]) * static_cast<size_t>(channels);
  Numbers all(outer * wide);
  for (size_t i = 0; i < values.size(); ++i)
    all[i / given * wide + i % given] = values[i];
  return all;
}

/// As assign-precision has them: channels of zeros change no bit of what is left.
TEST(HALF(Padding), ChangesNoBit) {
  const Shape x{2, 3, 11, 9}, w{6, 3, 3, 3}, wideX{2, 8, 11, 9}, wideW{6, 8, 3, 3}, y{2, 6, 6, 5};
  const Window window{{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}};
  const Numbers image = randomHalves(x.elements(), 1), weights = randomHalves(w.elements(), 2),
                slope = randomHalves(y.elements(), 3);
  auto run = [&](const Shape &sx, const Shape &sw, Numbers &forward, Numbers &gradient) {
    Harness h;
    const Tensor tx = h.tensor(sx, Layout::NHWC, withZeros(image, x, sx[1]), half),
                 tw = h.tensor(sw, Layout::NHWC, withZeros(weights, w, sw[1]), half),
                 tdy = h.tensor(y, Layout::NHWC, slope, half), ty = h.image(y, half), tdw = h.tensor(sw);
    const Conv conv("conv", ConvPass::Forward, sx, sw, y, window, ConvOptions().withType(half)),
        back("conv", ConvPass::BackwardWeight, sx, sw, y, window, ConvOptions().withType(half));
    conv.forward(h.session.compute, tx, tw, none, ty, h.workspace(conv));
    back.backwardWeight(h.session.compute, tdy, tx, tdw, none, h.workspace(back));
    forward = h.read(ty), gradient = h.read(tdw);
  };
  Numbers narrow, wide, gradient, wideGradient;
  run(x, w, narrow, gradient);
  run(wideX, wideW, wide, wideGradient);
  EXPECT_EQ(narrow, wide);
  EXPECT_EQ(withZeros(gradient, w, 8), wideGradient);
}

} // namespace
} // namespace sluice
