// SPDX-License-Identifier: Apache-2.0
// Convolutions against plain loops in double: strides, dilations, asymmetric pads, groups, depthwise, channels that
// fill no vector. Gradients are checked by the same loops; that those are gradients follows from <dy, conv(x, w)> being
// linear in x and in w.
#include "Harness.h"

namespace sluice {
namespace {

struct Case {
  const char *name;
  Shape x, w;
  int64_t strides[2], pads[4], dilations[2], groups;
  bool bias;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

class Convolution : public testing::TestWithParam<Case> {};

Window windowOf(const Case &c) {
  return {{c.w[2], c.w[3]},
          {c.strides[0], c.strides[1]},
          {c.pads[0], c.pads[1], c.pads[2], c.pads[3]},
          {c.dilations[0], c.dilations[1]}};
}

Shape outputOf(const Case &c) {
  Shape y{c.x[0], c.w[0], 0, 0};
  for (int i = 0; i < 2; ++i)
    y.dims[2 + i] = (c.x[2 + i] + c.pads[i] + c.pads[2 + i] - c.dilations[i] * (c.w[2 + i] - 1) - 1) / c.strides[i] + 1;
  return y;
}

/// Calls visit(index of y, index of x, index of w) for every product of the convolution.
template <typename Visit> void forProducts(const Case &c, Visit &&visit) {
  const Shape y = outputOf(c);
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t oy = 0; oy < y[2]; ++oy)
        for (int64_t ox = 0; ox < y[3]; ++ox)
          for (int64_t i = 0; i < c.w[1]; ++i)
            for (int64_t ky = 0; ky < c.w[2]; ++ky)
              for (int64_t kx = 0; kx < c.w[3]; ++kx) {
                const int64_t iy = oy * c.strides[0] - c.pads[0] + ky * c.dilations[0];
                const int64_t ix = ox * c.strides[1] - c.pads[1] + kx * c.dilations[1];
                if (iy < 0 || iy >= c.x[2] || ix < 0 || ix >= c.x[3])
                  continue;
                const int64_t channel = o / (c.w[0] / c.groups) * c.w[1] + i;
                visit(static_cast<size_t>(((n * y[1] + o) * y[2] + oy) * y[3] + ox),
                      static_cast<size_t>(((n * c.x[1] + channel) * c.x[2] + iy) * c.x[3] + ix),
                      static_cast<size_t>(((o * c.w[1] + i) * c.w[2] + ky) * c.w[3] + kx));
              }
}

TEST_P(Convolution, Forward) {
  const Case &c = GetParam();
  const Shape ys = outputOf(c);
  const Numbers x = randomNumbers(c.x.elements(), 1), w = randomNumbers(c.w.elements(), 2),
                b = randomNumbers(c.w[0], 3);
  Numbers want(static_cast<size_t>(ys.elements()));
  if (c.bias)
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = b[i / static_cast<size_t>(ys[2] * ys[3]) % static_cast<size_t>(ys[1])];
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[iy] += x[ix] * w[iw]; });
  Harness h;
  const Conv conv("conv", ConvPass::Forward, c.x, c.w, ys, windowOf(c), c.groups, c.bias);
  const Tensor y = h.image(ys);
  conv.forward(h.session.compute, h.tensor(c.x, Layout::NHWC, x), h.tensor(c.w, Layout::RowMajor, w),
               c.bias ? h.tensor({c.w[0]}, Layout::RowMajor, b) : none, y, h.workspace(conv));
  EXPECT_CLOSE(h.read(y), want, 1e-5);
}

TEST_P(Convolution, BackwardData) {
  const Case &c = GetParam();
  const Shape ys = outputOf(c);
  const Numbers dy = randomNumbers(ys.elements(), 1), w = randomNumbers(c.w.elements(), 2);
  Numbers want(static_cast<size_t>(c.x.elements()));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[ix] += dy[iy] * w[iw]; });
  Harness h;
  const Conv conv("conv", ConvPass::BackwardData, c.x, c.w, ys, windowOf(c), c.groups, c.bias);
  const Tensor dx = h.image(c.x);
  conv.backwardData(h.session.compute, h.tensor(ys, Layout::NHWC, dy), h.tensor(c.w, Layout::RowMajor, w), dx,
                    h.workspace(conv));
  EXPECT_CLOSE(h.read(dx), want, 1e-5);
}

TEST_P(Convolution, BackwardWeight) {
  const Case &c = GetParam();
  const Shape ys = outputOf(c);
  const Numbers dy = randomNumbers(ys.elements(), 1), x = randomNumbers(c.x.elements(), 2);
  Numbers want(static_cast<size_t>(c.w.elements())), wantBias(static_cast<size_t>(c.w[0]));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[iw] += dy[iy] * x[ix]; });
  for (size_t i = 0; i < dy.size(); ++i)
    wantBias[i / static_cast<size_t>(ys[2] * ys[3]) % static_cast<size_t>(ys[1])] += dy[i];
  Harness h;
  const Conv conv("conv", ConvPass::BackwardWeight, c.x, c.w, ys, windowOf(c), c.groups, c.bias);
  const Tensor dw = h.tensor(c.w), db = h.tensor({c.w[0]}), space = h.workspace(conv);
  const Tensor tdy = h.tensor(ys, Layout::NHWC, dy), tx = h.tensor(c.x, Layout::NHWC, x);
  conv.backwardWeight(h.session.compute, tdy, tx, dw, c.bias ? db : none, space);
  const Numbers first = h.read(dw);
  EXPECT_CLOSE(first, want, 1e-5);
  if (c.bias) {
    EXPECT_CLOSE(h.read(db), wantBias, 1e-5);
  }
  conv.backwardWeight(h.session.compute, tdy, tx, dw, c.bias ? db : none, space);
  EXPECT_EQ(h.read(dw), first) << "two runs differ";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Convolution,
    testing::Values(Case{"pointwise", {2, 16, 9, 7}, {32, 16, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, false},
                    Case{"square", {2, 16, 14, 14}, {16, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, false},
                    Case{"strided_bias", {2, 8, 15, 11}, {12, 8, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, true},
                    Case{"stem", {2, 3, 32, 32}, {16, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1, false},
                    Case{"odd_channels", {1, 5, 9, 8}, {7, 5, 3, 2}, {1, 2}, {1, 0, 2, 1}, {1, 1}, 1, true},
                    Case{"asymmetric_pads", {3, 4, 10, 10}, {6, 4, 3, 3}, {2, 2}, {0, 0, 1, 1}, {1, 1}, 1, false},
                    Case{"dilated", {2, 6, 13, 12}, {10, 6, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 1, true},
                    Case{"dilated_strided", {2, 6, 13, 12}, {10, 6, 3, 3}, {2, 1}, {2, 3, 2, 3}, {2, 3}, 1, false},
                    Case{"grouped", {2, 12, 8, 8}, {18, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3, true},
                    Case{"grouped_aligned", {2, 64, 8, 8}, {64, 16, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4, false},
                    Case{"depthwise", {2, 24, 11, 11}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24, false},
                    Case{"depthwise_strided", {2, 32, 12, 12}, {32, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 32, true},
                    Case{"depthwise_multiplier", {1, 6, 7, 7}, {12, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 6, true},
                    Case{"rectangular", {1, 10, 5, 9}, {9, 10, 1, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}, 1, false},
                    Case{"one_pixel", {1, 17, 1, 1}, {33, 17, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, true},
                    Case{"turned", {1, 256, 19, 21}, {24, 256, 3, 2}, {1, 1}, {1, 0, 2, 1}, {1, 1}, 1, false},
                    Case{"turned_dilated", {1, 260, 18, 20}, {9, 260, 3, 3}, {1, 1}, {2, 1, 0, 2}, {2, 1}, 1, false},
                    Case{
                        "windows_in_padding", {1, 260, 18, 20}, {9, 260, 3, 3}, {1, 1}, {2, 1, 0, 3}, {2, 1}, 1, false},
                    Case{"batch_one_wide", {1, 48, 20, 20}, {80, 48, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, false}),
    [](const auto &info) { return std::string(info.param.name); });

/// GCC 12.2 turned these constants into {1, 1, 1, 1, 1, 1, 1, 1} with AVX-512, see runtime/Tensor.h.
__attribute__((noinline)) int64_t sumOfPads(const Window &w) { return w.pads[0] + w.pads[1] + w.pads[2] + w.pads[3]; }
TEST(Conv, WindowConstantsSurviveTheCompiler) { EXPECT_EQ(sumOfPads({{1, 1}, {1, 1}, {0, 0, 0, 0}}), 0); }

TEST(Conv, RejectsWrongExtents) {
  try {
    Conv("/conv1/Conv", ConvPass::Forward, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 4, 8, 8}, {{3, 3}, {1, 1}, {0, 0, 0, 0}}, 1,
         false);
    FAIL();
  } catch (const std::invalid_argument &error) {
    EXPECT_STREQ(error.what(), "convolution '/conv1/Conv': output extent 8, expected 6");
  }
}

TEST(Conv, WorkspaceThatOutgrewItsSlot) {
  const Conv conv("c", ConvPass::Forward, {1, 16, 8, 8}, {32, 16, 3, 3}, {1, 32, 6, 6}, {{3, 3}, {1, 1}, {0, 0, 0, 0}},
                  1, false);
  ASSERT_GT(conv.workspaceBytes(), 0u);
  EXPECT_NO_THROW(conv.checkWorkspace(scratch(0, static_cast<int64_t>(conv.workspaceBytes()))));
  EXPECT_THROW(conv.checkWorkspace(scratch(0, static_cast<int64_t>(conv.workspaceBytes()) - 1)), MemoryNotAvailable);
}

} // namespace
} // namespace sluice
