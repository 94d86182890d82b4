// SPDX-License-Identifier: Apache-2.0
// Regions that take means of their rows: the bits of the kernels that they stand for, in place as well.
#include "test/unit/cuda/Halves.h"

namespace sluice {
namespace {

/// LayerNorm's gradient as fuse leaves it, with another gradient that is added, a second result of it and the sums of
/// parameters and of that result.
template <DataType Type> struct NormGradient {
  static constexpr int inputs = 6, outputs = 2, sums = 3, means = 2;
  static constexpr bool steps[] = {true, true, true, false, false, true};
  static constexpr DataType types[] = {Type, Type, full, full, full, Type, Type, Type};
  SLUICE_KERNEL Values<2> rowTerms(float dy, float x, float scale, float mean, float rstd, float) const {
    const float scaled = dy * scale;
    return {{scaled, scaled * ((x - mean) * rstd)}};
  }
  SLUICE_KERNEL Values<5> operator()(Values<2> row, float dy, float x, float scale, float mean, float rstd,
                                     float other) const {
    const float xhat = (x - mean) * rstd, dx = rstd * (dy * scale - row.v[0] - xhat * row.v[1]) + other;
    return {{dx, dx * 0.5f, dy * xhat, dy, dx * 0.5f}};
  }
};
/// The same without anything else, whose one result is LayerNorm::backward()'s.
template <DataType Type> struct PlainGradient {
  static constexpr int inputs = 5, outputs = 1, sums = 0, means = 2;
  static constexpr bool steps[] = {true, true, true, false, false};
  static constexpr DataType types[] = {Type, Type, full, full, full, Type};
  SLUICE_KERNEL Values<2> rowTerms(float dy, float x, float scale, float mean, float rstd) const {
    const float scaled = dy * scale;
    return {{scaled, scaled * ((x - mean) * rstd)}};
  }
  SLUICE_KERNEL Values<1> operator()(Values<2> row, float dy, float x, float scale, float mean, float rstd) const {
    const float xhat = (x - mean) * rstd;
    return {{rstd * (dy * scale - row.v[0] - xhat * row.v[1])}};
  }
};

struct Rows {
  Tensor dy, x, scale, mean, rstd, other;

  Rows(Harness &h, const Shape &shape, DataType type)
      : dy(h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), 1), type)),
        x(h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), 2), type)),
        scale(h.tensor({shape[1]}, Layout::RowMajor, randomNumbers(shape[1], 3))),
        mean(h.tensor({shape[0], 1}, Layout::RowMajor, randomNumbers(shape[0], 4))),
        rstd(h.tensor({shape[0], 1}, Layout::RowMajor, randomNumbers(shape[0], 5))),
        other(h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), 6), type)) {}
};

/// Rows of several warps and chunks, whole groups of eight and of four, odd ones, the longest.
const Shape shapes[] = {{2, 5}, {37, 100}, {9, 768}, {1030, 72}, {4200, 12}, {3, 2048}, {5, 1023}};

template <DataType Type> Numbers plain(const Shape &shape, bool region) {
  Harness h;
  const Rows r(h, shape, Type);
  if (region) {
    const Fused<PlainGradient<Type>> kernel("n", shape, Layout::RowMajor, {r.dy, r.x, r.scale, r.mean, r.rstd}, {r.dy},
                                            {});
    kernel.run(h.session.compute, {r.dy, r.x, r.scale, r.mean, r.rstd}, {r.dy}, {}, none);
  } else {
    LayerNorm("n", shape, 0).backward(h.session.compute, r.dy, r.x, r.scale, r.mean, r.rstd, r.dy);
  }
  return h.read(r.dy);
}

TEST(HALF(Rows), AreThoseOfLayerNorm) {
  for (const Shape &shape : shapes) {
    const Numbers narrow = plain<half>(shape, true), wide = plain<full>(shape, true),
                  wanted = plain<half>(shape, false);
    if (shape[1] % 8 == 0) { // else LayerNorm adds each element to a double, the region eight
      EXPECT_EQ(narrow, wanted) << shape[0] << "x" << shape[1];
    }
    EXPECT_CLOSE(narrow, wanted, 0.01);
    EXPECT_CLOSE(wide, plain<full>(shape, false), 1e-5);
  }
}

struct Results {
  Numbers dx, halved, scale, bias, sum;
};
template <DataType Type> Results gradients(const Shape &shape, bool inPlace) {
  Harness h;
  const Rows r(h, shape, Type);
  const Tensor dx = inPlace ? r.dy : h.tensor(shape, Layout::RowMajor, Type),
               halved = inPlace ? r.other : h.tensor(shape, Layout::RowMajor, Type);
  const Tensor scale = h.tensor({shape[1]}), bias = h.tensor({shape[1]}), sum = h.tensor({shape[1]});
  const Fused<NormGradient<Type>> kernel("n", shape, Layout::RowMajor, {r.dy, r.x, r.scale, r.mean, r.rstd, r.other},
                                         {dx, halved}, {scale, bias, sum});
  kernel.run(h.session.compute, {r.dy, r.x, r.scale, r.mean, r.rstd, r.other}, {dx, halved}, {scale, bias, sum},
             h.workspace(kernel));
  return {h.read(dx), h.read(halved), h.read(scale), h.read(bias), h.read(sum)};
}

/// The sums of a matrix's rows, in the order that they come.
Numbers columnsOf(const Shape &shape, const std::function<double(int64_t, int64_t)> &value) {
  Numbers sums(static_cast<size_t>(shape[1]));
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column)
      sums[static_cast<size_t>(column)] += value(row, column);
  return sums;
}

TEST(HALF(Rows), SumOverRowsAsWell) {
  for (const Shape &shape : shapes) {
    const Results narrow = gradients<half>(shape, false), wide = gradients<full>(shape, false),
                  inPlace = gradients<half>(shape, true);
    EXPECT_CLOSE(narrow.dx, wide.dx, 0.01);
    EXPECT_CLOSE(narrow.scale, wide.scale, 1e-5);
    EXPECT_CLOSE(narrow.sum, wide.sum, 1e-4);
    const Numbers dy = randomHalves(shape.elements(), 1);
    EXPECT_CLOSE(wide.bias,
                 columnsOf(shape, [&](int64_t row, int64_t c) { return dy[static_cast<size_t>(row * shape[1] + c)]; }),
                 1e-5);
    for (const auto member : {&Results::dx, &Results::halved, &Results::scale, &Results::bias, &Results::sum})
      EXPECT_EQ(inPlace.*member, narrow.*member);
  }
}

TEST(HALF(Rows), AreWhole) {
  Harness h;
  const Shape shape{2, 2056};
  const Rows r(h, shape, half);
  EXPECT_THROW(
      (Fused<PlainGradient<half>>("n", shape, Layout::RowMajor, {r.dy, r.x, r.scale, r.mean, r.rstd}, {r.dy}, {})),
      std::invalid_argument);
}

} // namespace
} // namespace sluice
