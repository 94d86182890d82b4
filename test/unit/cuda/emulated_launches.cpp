// SPDX-License-Identifier: Apache-2.0
// What may not depend on how work is launched: sums do not on which block comes last, gathered kernels give the bits of
// single ones.
#include "test/unit/cuda/Halves.h"

#include <numeric>

namespace sluice {
namespace {

/// x, and the sums of x and x^2 over all but the channels.
template <DataType Type> struct Squares {
  static constexpr int inputs = 1, outputs = 1, sums = 2;
  static constexpr DataType types[] = {Type, Type};
  SLUICE_KERNEL Values<3> operator()(float x) const { return {{x, x, x * x}}; }
};

struct Sums {
  Numbers plain, squares, mean, rstd, columns, whole;
  bool operator==(const Sums &other) const {
    return plain == other.plain && squares == other.squares && mean == other.mean && rstd == other.rstd &&
           columns == other.columns && whole == other.whole;
  }
};

template <DataType Type> Sums sumsOf(const Shape &shape, bool lastBlockFirst) {
  emulator::lastBlockFirst = lastBlockFirst;
  Harness h;
  const Tensor x = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 1), Type), y = h.image(shape, Type);
  const Tensor a = h.tensor({shape[1]}), b = h.tensor({shape[1]}), mean = h.tensor({shape[1]}),
               rstd = h.tensor({shape[1]});
  const Fused<Squares<Type>> region("n", shape, Layout::NHWC, {x}, {y}, {a, b});
  const BatchNormStatistics statistics("n", shape, 1e-5f);
  const Tensor rows = as(x, {shape.elements() / shape[1], shape[1]}, Layout::RowMajor, Type),
               column = h.tensor({shape[1]}), scalar = h.tensor({1});
  const SumTo columnSum("n", rows, column, 1), sum("n", rows, scalar, 1);
  columnSum.run(h.session.compute, rows, column, h.workspace(columnSum));
  sum.run(h.session.compute, rows, scalar, h.workspace(sum));
  region.run(h.session.compute, {x}, {y}, {a, b}, h.workspace(region));
  statistics.run(h.session.compute, x, mean, rstd, h.workspace(statistics));
  emulator::lastBlockFirst = false;
  return {h.read(a), h.read(b), h.read(mean), h.read(rstd), h.read(column), h.read(scalar)};
}

// One chunk, one group of chunks, many groups, of which the last is not full; one tile and several; a ragged one.
TEST(Launches, SumsDoNotDependOnWhichBlockIsLast) {
  for (const Shape &shape : {Shape{2, 64, 3, 3}, Shape{4, 64, 32, 31}, Shape{1, 8, 200, 190}, Shape{1, 300, 24, 23},
                             Shape{1, 6, 110, 101}}) {
    const Sums wide = sumsOf<full>(shape, false), narrow = sumsOf<half>(shape, false);
    EXPECT_TRUE(wide == sumsOf<full>(shape, true));
    EXPECT_TRUE(narrow == sumsOf<half>(shape, true));
    const Numbers x = randomHalves(shape.elements(), 1);
    Numbers plain(static_cast<size_t>(shape[1])), squares = plain;
    const auto pixels = static_cast<size_t>(shape[2] * shape[3]);
    for (size_t i = 0; i < x.size(); ++i) {
      plain[i / pixels % plain.size()] += x[i];
      squares[i / pixels % plain.size()] += x[i] * x[i];
    }
    EXPECT_CLOSE(wide.plain, plain, 1e-5);
    EXPECT_CLOSE(narrow.plain, plain, 1e-5);
    EXPECT_CLOSE(narrow.squares, squares, 1e-5);
    EXPECT_CLOSE(wide.columns, plain, 1e-5);
    EXPECT_NEAR(narrow.whole[0], std::accumulate(plain.begin(), plain.end(), 0.0), 1e-2);
    Numbers mean = plain, rstd = plain;
    for (size_t c = 0; c < plain.size(); ++c) {
      const double count = static_cast<double>(x.size()) / static_cast<double>(plain.size());
      mean[c] = plain[c] / count;
      rstd[c] = 1 / std::sqrt(squares[c] / count - mean[c] * mean[c] + 1e-5);
    }
    EXPECT_CLOSE(narrow.mean, mean, 1e-5);
    EXPECT_CLOSE(wide.rstd, rstd, 1e-5);
  }
}

/// Weights, momenta, averages, running statistics and rounded weights after two steps on tensors of many sizes.
std::vector<Numbers> trained(bool gathers) {
  Harness h;
  h.session.state.learningRate = 0.1f, h.session.state.momentum = 0.9f, h.session.state.averageDecay = 0.9f;
  Stream &stream = h.session.compute;
  const Shape shapes[] = {{16, 8, 3, 3}, {7, 3, 3, 3}, {5, 1, 1, 1}, {64, 16, 1, 1}, {1, 9, 5, 5}};
  std::vector<Tensor> all;
  struct Parameter {
    Tensor w, dw, momentum, average, rounded, left, turned; ///< left: a gradient of halves, turned: in its floats
    Reorder cast, back;
  };
  std::vector<Parameter> parameters;
  for (unsigned i = 0; i < 60; ++i) { // more than one launch takes
    const Shape &shape = shapes[i % 5];
    const Numbers zero(static_cast<size_t>(shape.elements()));
    const Tensor w = h.tensor(shape, Layout::RowMajor, randomNumbers(shape.elements(), i)),
                 dw = h.tensor(shape, Layout::RowMajor, randomNumbers(shape.elements(), 100 + i)),
                 momentum = h.tensor(shape, Layout::RowMajor, zero), average = h.tensor(shape, Layout::RowMajor, zero),
                 rounded = h.tensor(shape, Layout::NHWC, zero, half),
                 left = h.tensor(shape, Layout::NHWC, randomHalves(shape.elements(), 200 + i), half),
                 turned = h.tensor(shape, Layout::RowMajor, zero);
    parameters.push_back({w, dw, momentum, average, rounded, left, turned, Reorder("n", w, rounded, {0, 1, 2, 3}),
                          Reorder("n", left, turned, {0, 1, 2, 3})});
    all.insert(all.end(), {w, momentum, average, rounded, turned});
  }
  const Tensor mean = h.tensor({5}, Layout::RowMajor, randomNumbers(5, 1)),
               rstd = h.tensor({5}, Layout::RowMajor, {1, 2, 3, 4, 5}),
               runningMean = h.tensor({5}, Layout::RowMajor, Numbers(5)),
               runningVar = h.tensor({5}, Layout::RowMajor, Numbers(5));
  const UpdateStatistics statistics("n", 5, 40, 0.1f, 1e-5f);
  all.insert(all.end(), {runningMean, runningVar});
  for (int step = 1; step <= 2; ++step) {
    h.session.state.step = step;
    if (gathers)
      gather(stream);
    for (const Parameter &p : parameters)
      updateSgd(stream, {}, p.w, p.dw, none, p.momentum, "n");
    for (const Parameter &p : parameters)
      averageWeights(stream, p.w, p.average, "n");
    for (const Parameter &p : parameters)
      p.cast.run(stream, p.w, p.rounded);
    for (const Parameter &p : parameters)
      p.back.run(stream, p.left, p.turned);
    statistics.run(stream, mean, rstd, runningMean, runningVar);
    if (gathers)
      launchGathered(stream);
  }
  std::vector<Numbers> values;
  for (const Tensor &tensor : all)
    values.push_back(h.read(tensor));
  return values;
}

TEST(Launches, GatheredKernelsGiveTheBitsOfSingleOnes) {
  EXPECT_EQ(trained(true), trained(false));
  EXPECT_EQ(trained(true)[4], randomHalves(16 * 8 * 3 * 3, 200)); // read in the tensor's own order
}

/// Everything else goes after what is kept.
TEST(Launches, WhatIsNotGatheredComesBehindWhatIs) {
  Harness h;
  h.session.state.learningRate = 1, h.session.state.step = 1;
  Stream &stream = h.session.compute;
  const Tensor w = h.tensor({4}, Layout::RowMajor, {1, 2, 3, 4}), dw = h.tensor({4}, Layout::RowMajor, {1, 1, 1, 1}),
               copy = h.tensor({4});
  const Reorder reorder("n", w, copy, {0});
  gather(stream);
  updateSgd(stream, {}, w, dw, none, none, "n");
  reorder.run(stream, w, copy); // f32 to f32
  launchGathered(stream);
  EXPECT_EQ(h.read(copy), (Numbers{0, 1, 2, 3}));
}

} // namespace
} // namespace sluice
