// SPDX-License-Identifier: Apache-2.0
// Pooling against plain loops: overlapping windows, pads, dilations, windows that reach over the edge (ceil mode),
// ties, NaN, both kinds of indices. All cases as volumes: images have one slice.
#include "runtime/kernels/Windows.h"
#include "test/unit/runtime/Harness.h"

#include <limits>

namespace sluice {
namespace {

struct Case {
  const char *name;
  Shape x, y;
  Window window;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

class Pooling : public testing::TestWithParam<Case> {};

struct Place {
  int64_t z, y, x;
};

/// Calls visit(index of x) for all taps of one window; the number of taps inside the padded image is returned.
template <typename Visit> int64_t forTaps(const Case &c, int64_t plane, Place o, Visit &&visit) {
  const Shape x = asVolume(c.x);
  const Window w = asVolume(c.window, c.x.rank);
  int64_t padded = 0;
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky)
      for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
        const int64_t iz = o.z * w.strides[0] - w.pads[0] + kz * w.dilations[0],
                      iy = o.y * w.strides[1] - w.pads[1] + ky * w.dilations[1],
                      ix = o.x * w.strides[2] - w.pads[2] + kx * w.dilations[2];
        padded += iz < x[2] + w.pads[3] && iy < x[3] + w.pads[4] && ix < x[4] + w.pads[5];
        if (iz >= 0 && iz < x[2] && iy >= 0 && iy < x[3] && ix >= 0 && ix < x[4])
          visit(static_cast<size_t>(((plane * x[2] + iz) * x[3] + iy) * x[4] + ix));
      }
  return padded;
}

/// Calls visit(plane, place) for all results, in order.
template <typename Visit> void forResults(const Case &c, Visit &&visit) {
  const Shape y = asVolume(c.y);
  for (int64_t plane = 0; plane < y[0] * y[1]; ++plane)
    for (int64_t z = 0; z < y[2]; ++z)
      for (int64_t row = 0; row < y[3]; ++row)
        for (int64_t column = 0; column < y[4]; ++column)
          visit(plane, Place{z, row, column});
}

/// For each output: the input that won.
std::vector<size_t> winners(const Case &c, const Numbers &x) {
  std::vector<size_t> result;
  forResults(c, [&](int64_t plane, Place o) {
    bool first = true;
    size_t best = 0;
    forTaps(c, plane, o, [&](size_t at) {
      if (first || x[at] > x[best])
        best = at;
      first = false;
    });
    result.push_back(best);
  });
  return result;
}

TEST_P(Pooling, Max) {
  const Case &c = GetParam();
  Numbers x = randomNumbers(c.x.elements(), 1);
  for (double &v : x)
    v = std::round(2 * v); // many ties
  const Numbers dy = randomNumbers(c.y.elements(), 2);
  const std::vector<size_t> from = winners(c, x);
  Numbers want(from.size()), wantGradient(x.size());
  for (size_t i = 0; i < from.size(); ++i) {
    want[i] = x[from[i]];
    wantGradient[from[i]] += dy[i];
  }
  for (DataType type : {DataType::U8, DataType::I32}) {
    if (type == DataType::U8 && c.window.kernel[0] * c.window.kernel[1] > 255) // volumes have small ones
      continue;
    Harness h;
    const MaxPool pool("pool", c.x, c.y, c.window);
    const Tensor y = h.image(c.y), dx = h.image(c.x), indices = h.tensor(c.y, Layout::NHWC, type),
                 space = h.workspace(pool);
    pool.forward(h.session.compute, h.tensor(c.x, Layout::NHWC, x), y, indices, space);
    EXPECT_EQ(h.read(y), want);
    pool.backward(h.session.compute, h.tensor(c.y, Layout::NHWC, dy), indices, dx, space);
    EXPECT_CLOSE(h.read(dx), wantGradient, 1e-6);
  }
}

TEST_P(Pooling, Average) {
  const Case &c = GetParam();
  const Numbers x = randomNumbers(c.x.elements(), 1), dy = randomNumbers(c.y.elements(), 2);
  for (bool includePad : {false, true}) {
    Numbers want, wantGradient(x.size());
    forResults(c, [&](int64_t plane, Place o) {
      double sum = 0;
      int64_t inside = 0;
      const int64_t padded = forTaps(c, plane, o, [&](size_t at) { sum += x[at], ++inside; });
      const double count = static_cast<double>(includePad ? padded : inside);
      forTaps(c, plane, o, [&](size_t at) { wantGradient[at] += dy[want.size()] / count; });
      want.push_back(sum / count);
    });
    Harness h;
    const AveragePool pool("pool", c.x, c.y, c.window, includePad);
    const Tensor y = h.image(c.y), dx = h.image(c.x), space = h.workspace(pool);
    pool.forward(h.session.compute, h.tensor(c.x, Layout::NHWC, x), y, space);
    EXPECT_CLOSE(h.read(y), want, 1e-6);
    pool.backward(h.session.compute, h.tensor(c.y, Layout::NHWC, dy), dx, space);
    EXPECT_CLOSE(h.read(dx), wantGradient, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Pooling,
    testing::Values(
        Case{"resnet", {2, 64, 14, 14}, {2, 64, 7, 7}, {{3, 3}, {2, 2}, {1, 1, 1, 1}}},
        Case{"many_channels", {1, 83, 6, 5}, {1, 83, 3, 3}, {{3, 3}, {2, 2}, {1, 1, 1, 1}}},
        Case{"halving", {2, 5, 8, 6}, {2, 5, 4, 3}, {{2, 2}, {2, 2}, {0, 0, 0, 0}}},
        Case{"ceil_mode", {1, 70, 8, 8}, {1, 70, 4, 4}, {{3, 3}, {2, 2}, {0, 0, 0, 0}}},
        Case{"asymmetric", {2, 3, 9, 7}, {2, 3, 9, 4}, {{3, 2}, {1, 2}, {0, 1, 2, 0}}},
        Case{"dilated", {1, 4, 12, 12}, {1, 4, 5, 10}, {{3, 3}, {2, 1}, {0, 1, 0, 1}, {2, 2}}},
        Case{"gaps", {1, 4, 9, 9}, {1, 4, 3, 3}, {{2, 2}, {4, 4}, {0, 0, 1, 1}}},
        Case{"global", {3, 130, 7, 7}, {3, 130, 1, 1}, {{7, 7}, {1, 1}, {0, 0, 0, 0}}},
        Case{"volume", {2, 6, 5, 7, 6}, {2, 6, 3, 4, 3}, {{3, 3, 2}, {2, 2, 2}, {1, 1, 0, 1, 1, 0}}},
        Case{"dilated_volume", {1, 5, 9, 8, 7}, {1, 5, 5, 3, 7}, {{3, 2, 3}, {1, 2, 1}, {0, 1, 1, 0, 0, 1}, {2, 3, 1}}},
        Case{"ceil_mode_volume", {1, 68, 4, 6, 5}, {1, 68, 2, 3, 2}, {{3, 3, 3}, {2, 2, 2}, {0, 0, 0, 0, 0, 0}}},
        Case{"signal", {2, 3, 1, 9000}, {2, 3, 1, 4500}, {{1, 3}, {1, 2}, {0, 1, 0, 1}}},
        Case{"large_window", {1, 3, 20, 18}, {1, 3, 1, 2}, {{20, 17}, {1, 1}, {0, 0, 0, 0}}}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(MaxPool, NaNWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const Numbers image{1, nan, -infinity, -infinity, 3, 2, -infinity, -infinity};
  for (int64_t channels : {1, 83}) {
    Harness h;
    const Shape x{1, channels, 2, 4}, y{1, channels, 1, 2};
    const MaxPool pool("pool", x, y, {{2, 2}, {2, 2}, {0, 0, 0, 0}});
    const Tensor results = h.image(y), indices = h.tensor(y, Layout::NHWC, DataType::U8);
    Numbers images;
    for (int64_t c = 0; c < channels; ++c)
      images.insert(images.end(), image.begin(), image.end());
    pool.forward(h.session.compute, h.tensor(x, Layout::NHWC, images), results, indices, none);
    std::vector<uint8_t> where(static_cast<size_t>(y.elements()));
    h.session.read(indices, where.data());
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      EXPECT_TRUE(std::isnan(h.read(results)[2 * c]));
      EXPECT_EQ(h.read(results)[2 * c + 1], -infinity);
      EXPECT_EQ(where[c], 1); // channels last
      EXPECT_EQ(where[static_cast<size_t>(channels) + c], 0);
    }
  }
}

} // namespace
} // namespace sluice
