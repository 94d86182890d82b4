// SPDX-License-Identifier: Apache-2.0
// Convolutions against plain loops in double. Gradients are checked by the same loops; that those are gradients follows
// from <dy, conv(x, w)> being linear in x and in w.
#include "test/unit/runtime/ConvCases.h"

namespace sluice {
namespace {

class Convolution : public testing::TestWithParam<ConvCase> {};

TEST_P(Convolution, Forward) {
  const ConvCase &c = GetParam();
  const Shape ys = outputOf(c);
  const Numbers x = randomNumbers(c.x.elements(), 1), w = randomNumbers(c.w.elements(), 2),
                b = randomNumbers(c.w[0], 3);
  Numbers want(static_cast<size_t>(ys.elements()));
  if (c.bias)
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = b[i / static_cast<size_t>(ys.elements() / ys[0] / ys[1]) % static_cast<size_t>(ys[1])];
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[iy] += x[ix] * w[iw]; });
  Harness h;
  const Conv conv("conv", ConvPass::Forward, c.x, c.w, ys, windowOf(c),
                  ConvOptions().withGroups(c.groups).withBias(c.bias));
  const Tensor y = h.image(ys);
  conv.forward(h.session.compute, h.tensor(c.x, Layout::NHWC, x), h.tensor(c.w, Layout::RowMajor, w),
               c.bias ? h.tensor({c.w[0]}, Layout::RowMajor, b) : none, y, h.workspace(conv));
  EXPECT_CLOSE(h.read(y), want, 1e-5);
}

TEST_P(Convolution, BackwardData) {
  const ConvCase &c = GetParam();
  const Shape ys = outputOf(c);
  const Numbers dy = randomNumbers(ys.elements(), 1), w = randomNumbers(c.w.elements(), 2);
  Numbers want(static_cast<size_t>(c.x.elements()));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[ix] += dy[iy] * w[iw]; });
  Harness h;
  const Conv conv("conv", ConvPass::BackwardData, c.x, c.w, ys, windowOf(c),
                  ConvOptions().withGroups(c.groups).withBias(c.bias));
  const Tensor dx = h.image(c.x);
  conv.backwardData(h.session.compute, h.tensor(ys, Layout::NHWC, dy), h.tensor(c.w, Layout::RowMajor, w), dx,
                    h.workspace(conv));
  EXPECT_CLOSE(h.read(dx), want, 1e-5);
}

TEST_P(Convolution, BackwardWeight) {
  const ConvCase &c = GetParam();
  const Shape ys = outputOf(c);
  const Numbers dy = randomNumbers(ys.elements(), 1), x = randomNumbers(c.x.elements(), 2);
  Numbers want(static_cast<size_t>(c.w.elements())), wantBias(static_cast<size_t>(c.w[0]));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { want[iw] += dy[iy] * x[ix]; });
  for (size_t i = 0; i < dy.size(); ++i)
    wantBias[i / static_cast<size_t>(ys.elements() / ys[0] / ys[1]) % static_cast<size_t>(ys[1])] += dy[i];
  Harness h;
  const Conv conv("conv", ConvPass::BackwardWeight, c.x, c.w, ys, windowOf(c),
                  ConvOptions().withGroups(c.groups).withBias(c.bias));
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

INSTANTIATE_TEST_SUITE_P(Shapes, Convolution, testing::ValuesIn(convCases()),
                         [](const auto &info) { return std::string(info.param.name); });

/// GCC 12.2 turned these constants into {1, 1, 1, 1, 1, 1, 1, 1} with AVX-512, see runtime/Tensor.h.
__attribute__((noinline)) int64_t sumOfPads(const Window &w) { return w.pads[0] + w.pads[1] + w.pads[2] + w.pads[3]; }
TEST(Conv, WindowConstantsSurviveTheCompiler) { EXPECT_EQ(sumOfPads({{1, 1}, {1, 1}, {0, 0, 0, 0}}), 0); }

TEST(Conv, RejectsWrongExtents) {
  try {
    Conv("/conv1/Conv", ConvPass::Forward, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 4, 8, 8}, {{3, 3}, {1, 1}, {0, 0, 0, 0}});
    FAIL();
  } catch (const std::invalid_argument &error) {
    EXPECT_STREQ(error.what(), "convolution '/conv1/Conv': output extent 8, expected 6");
  }
}

TEST(Conv, WorkspaceThatOutgrewItsSlot) {
  const Conv conv("c", ConvPass::Forward, {1, 16, 8, 8}, {32, 16, 3, 3}, {1, 32, 6, 6}, {{3, 3}, {1, 1}, {0, 0, 0, 0}});
  ASSERT_GT(conv.workspaceBytes(), 0u);
  EXPECT_NO_THROW(conv.checkWorkspace(scratch(0, static_cast<int64_t>(conv.workspaceBytes()))));
  EXPECT_THROW(conv.checkWorkspace(scratch(0, static_cast<int64_t>(conv.workspaceBytes()) - 1)), MemoryNotAvailable);
}

} // namespace
} // namespace sluice
