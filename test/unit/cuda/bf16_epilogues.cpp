// SPDX-License-Identifier: Apache-2.0
// Convolutions with BatchNorm's sums, against their definition in double; where no engine has such an epilogue, to the
// bit what the kernels by themselves give.
#include "runtime/ConvNorm.h"
#include "test/unit/cuda/Halves.h"
#include "test/unit/runtime/ConvCases.h"

namespace sluice {
namespace {

/// Channels in eights, for which there are engines, and others, for which there are none.
constexpr ConvCase aligned = {"aligned", {3, 16, 9, 7}, {24, 16, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, false},
                   square = {"square", {2, 8, 6, 5}, {16, 8, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, false},
                   strided = {"strided", {3, 16, 8, 6}, {8, 16, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1, false},
                   odd = {"odd", {3, 13, 9, 7}, {21, 13, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, false};

class HALF(ConvNorms) : public testing::TestWithParam<ConvCase> {
protected:
  void SetUp() override { setKernelPolicy(size_t(1) << 20, halfPrecision); }
  void TearDown() override { setKernelPolicy(size_t(64) << 20, Precision::FP32); }

  ConvNorm kernel(ConvPass pass, bool addend = false) const {
    return ConvNorm("conv", pass, c.x, c.w, ys, windowOf(c), {1, addend, {}, half, 1e-5f});
  }
  Tensor image(const Shape &shape, unsigned seed) {
    return h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), seed), half);
  }
  Tensor vector(int64_t channels) { return h.tensor({channels}); }
  /// Of row-major [N,C,H,W], `f(index)` added up for each channel.
  template <typename F> Numbers sums(const Shape &shape, F &&f) const {
    Numbers result(static_cast<size_t>(shape[1]));
    for (int64_t i = 0; i < shape.elements(); ++i)
      result[static_cast<size_t>(i / (shape[2] * shape[3]) % shape[1])] += f(static_cast<size_t>(i));
    return result;
  }

  const ConvCase &c = GetParam();
  const Shape ys = outputOf(c);
  Harness h;
};

TEST_P(HALF(ConvNorms), MakeStatisticsOfTheirResult) {
  const ConvNorm conv = kernel(ConvPass::Forward);
  const Tensor x = image(c.x, 1), w = image(c.w, 2), y = h.image(ys, half), mean = vector(ys[1]), rstd = vector(ys[1]);
  conv.statistics(h.session.compute, x, w, y, mean, rstd, h.workspace(conv));
  Numbers wanted(static_cast<size_t>(ys.elements()));
  const Numbers vx = h.read(x), vw = h.read(w);
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) { wanted[iy] += vx[ix] * vw[iw]; });
  EXPECT_CLOSE(h.read(y), wanted, 4e-3);
  const double count = static_cast<double>(ys.elements() / ys[1]);
  Numbers m = sums(ys, [&](size_t i) { return wanted[i]; }),
          r = sums(ys, [&](size_t i) { return wanted[i] * wanted[i]; });
  for (size_t i = 0; i < m.size(); ++i) {
    m[i] /= count;
    r[i] = 1 / std::sqrt(r[i] / count - m[i] * m[i] + 1e-5);
  }
  EXPECT_CLOSE(h.read(mean), m, 4e-3);
  EXPECT_CLOSE(h.read(rstd), r, 4e-3);
}

TEST_P(HALF(ConvNorms), MaskTheirGradientAndAddItUp) {
  for (bool addend : {false, true}) {
    const ConvNorm conv = kernel(ConvPass::BackwardData, addend);
    const Tensor dy = image(ys, 1), w = image(c.w, 2), z = image(c.x, 3), x = image(c.x, 4),
                 mean = h.tensor({c.x[1]}, Layout::RowMajor, randomNumbers(c.x[1], 5)),
                 rstd = h.tensor({c.x[1]}, Layout::RowMajor, randomNumbers(c.x[1], 6)),
                 other = addend ? image(c.x, 7) : none, dz = h.image(c.x, half), dscale = vector(c.x[1]),
                 dbias = vector(c.x[1]);
    conv.gradient(h.session.compute, dy, w, z, x, mean, rstd, other, dz, dscale, dbias, h.workspace(conv));
    Numbers wanted = addend ? h.read(other) : Numbers(static_cast<size_t>(c.x.elements()));
    const Numbers vdy = h.read(dy), vw = h.read(w), vz = h.read(z), vx = h.read(x), vm = h.read(mean),
                  vr = h.read(rstd);
    forProducts(c, [&](size_t iy, size_t ix, size_t iw) { wanted[ix] += vdy[iy] * vw[iw]; });
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = vz[i] > 0 ? wanted[i] : 0;
    EXPECT_CLOSE(h.read(dz), wanted, 6e-3);
    const size_t plane = static_cast<size_t>(c.x[2] * c.x[3]), channels = static_cast<size_t>(c.x[1]);
    EXPECT_CLOSE(h.read(dbias), sums(c.x, [&](size_t i) { return wanted[i]; }), 1e-2);
    EXPECT_CLOSE(h.read(dscale),
                 sums(c.x,
                      [&](size_t i) {
                        const size_t channel = i / plane % channels;
                        return wanted[i] * (vx[i] - vm[channel]) * vr[channel];
                      }),
                 1e-2);
  }
}

INSTANTIATE_HALVES(HALF(ConvNorms), testing::Values(aligned, square, strided, odd),
                   [](const auto &info) { return info.param.name; });

TEST(HALF(ConvNorm), IsTwoKernelsWhereNoEngineHasTheEpilogue) {
  setKernelPolicy(size_t(1) << 20, halfPrecision);
  const ConvCase &c = odd;
  const Shape ys = outputOf(c);
  Harness h;
  const ConvNorm both("conv", ConvPass::Forward, c.x, c.w, ys, windowOf(c),
                      ConvNormOptions().withType(half).withEpsilon(1e-5f));
  const Conv conv("conv", ConvPass::Forward, c.x, c.w, ys, windowOf(c), ConvOptions().withType(half));
  const BatchNormStatistics statistics("norm", ys, 1e-5f);
  const Tensor x = h.tensor(c.x, Layout::NHWC, randomHalves(c.x.elements(), 1), half),
               w = h.tensor(c.w, Layout::NHWC, randomHalves(c.w.elements(), 2), half), y = h.image(ys, half),
               mean = h.tensor({ys[1]}), rstd = h.tensor({ys[1]}), one = h.image(ys, half), m = h.tensor({ys[1]}),
               r = h.tensor({ys[1]});
  both.statistics(h.session.compute, x, w, y, mean, rstd, h.workspace(both));
  conv.forward(h.session.compute, x, w, none, one, h.workspace(conv));
  statistics.run(h.session.compute, one, m, r, h.workspace(statistics));
  EXPECT_EQ(h.read(y), h.read(one));
  EXPECT_EQ(h.read(mean), h.read(m));
  EXPECT_EQ(h.read(rstd), h.read(r));
  setKernelPolicy(size_t(64) << 20, Precision::FP32);
}

} // namespace
} // namespace sluice
