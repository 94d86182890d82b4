// SPDX-License-Identifier: Apache-2.0
// Kernels that move, sum or repeat elements, and Resize, against plain index arithmetic.
#include "test/unit/runtime/Harness.h"

#include <numeric>

namespace sluice {
namespace {

Numbers counting(int64_t count) {
  Numbers values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

/// x of this shape with its dimension permutation[d] in the place of d.
Numbers permuted(const Numbers &x, Shape shape, Shape target, std::initializer_list<int> permutation) {
  Numbers result;
  for (int64_t i = 0; i < target.elements(); ++i) {
    int64_t rest = i, position[Shape::maxRank] = {}, index = 0;
    for (int d = target.rank - 1; d >= 0; --d) {
      position[permutation.begin()[d]] = rest % target[d];
      rest /= target[d];
    }
    for (int d = 0; d < shape.rank; ++d)
      index = index * shape[d] + position[d];
    result.push_back(x[static_cast<size_t>(index)]);
  }
  return result;
}

void checkPermutation(Shape shape, Layout from, Layout to, std::initializer_list<int> permutation) {
  Harness h;
  Shape target;
  for (int p : permutation)
    target.dims[target.rank++] = shape[p];
  const Numbers x = counting(shape.elements());
  const Tensor tx = h.tensor(shape, from, x), y = h.tensor(target, to);
  Reorder reorder("t", tx, y, permutation);
  reorder.run(h.session.compute, tx, y);
  EXPECT_EQ(h.read(y), permuted(x, shape, target, permutation));
}

TEST(Reorder, Permutes) {
  checkPermutation({2, 3, 4, 5}, Layout::RowMajor, Layout::RowMajor, {0, 2, 3, 1});
  checkPermutation({2, 3, 4, 5}, Layout::RowMajor, Layout::NHWC, {0, 1, 2, 3});
  checkPermutation({2, 3, 4, 5}, Layout::NHWC, Layout::RowMajor, {0, 1, 2, 3});
  checkPermutation({2, 3, 4, 5}, Layout::NHWC, Layout::NHWC, {0, 1, 3, 2});
  checkPermutation({2, 3, 4, 5}, Layout::NHWC, Layout::RowMajor, {3, 2, 1, 0});
  checkPermutation({100, 70}, Layout::RowMajor, Layout::RowMajor, {1, 0});
  checkPermutation({16, 64, 28, 28}, Layout::RowMajor, Layout::NHWC, {0, 1, 2, 3});
  checkPermutation({16, 64, 28, 28}, Layout::NHWC, Layout::RowMajor, {0, 1, 2, 3});
  checkPermutation({2, 3, 2, 3, 2, 3}, Layout::RowMajor, Layout::RowMajor, {5, 3, 1, 0, 2, 4});
  checkPermutation({7}, Layout::RowMajor, Layout::RowMajor, {0});
  checkPermutation({1, 1, 1, 1}, Layout::NHWC, Layout::RowMajor, {0, 1, 2, 3});
}

void checkReshape(Shape from, Layout fromLayout, Shape to, Layout toLayout) {
  Harness h;
  const Numbers x = counting(from.elements());
  const Tensor tx = h.tensor(from, fromLayout, x), y = h.tensor(to, toLayout);
  Reorder reorder("r", tx, y, {});
  reorder.run(h.session.compute, tx, y);
  EXPECT_EQ(h.read(y), x);
}

TEST(Reorder, Reshapes) {
  checkReshape({2, 6, 4, 5}, Layout::NHWC, {2, 120}, Layout::RowMajor);
  checkReshape({2, 120}, Layout::RowMajor, {2, 6, 4, 5}, Layout::NHWC);
  checkReshape({2, 6, 4, 5}, Layout::NHWC, {4, 3, 2, 10}, Layout::NHWC);
  checkReshape({2, 6, 4, 5}, Layout::NHWC, {2, 2, 3, 4, 5}, Layout::RowMajor);
  checkReshape({2, 1, 1, 3}, Layout::NHWC, {6, 1}, Layout::RowMajor);
  checkReshape({3, 4}, Layout::RowMajor, {12}, Layout::RowMajor);
  checkReshape({1}, Layout::RowMajor, {}, Layout::RowMajor);
  const Tensor x = device(0, {2, 6, 5, 1}, Layout::NHWC), y = device(0, {4, 15}), z = device(0, {61});
  EXPECT_THROW(Reorder("r", x, z, {}), std::invalid_argument);
  EXPECT_NO_THROW(Reorder("r", x, x, {}));
  EXPECT_NO_THROW(Reorder("r", device(0, {4, 15}), y, {}));
}

TEST(Slab, InsertsAndExtracts) {
  struct Case {
    Layout layout;
    int axis;
  };
  for (Case c : {Case{Layout::NHWC, 1}, Case{Layout::NHWC, 0}, Case{Layout::NHWC, 2}, Case{Layout::RowMajor, 1},
                 Case{Layout::RowMajor, 3}}) {
    Harness h;
    Shape large{3, 7, 4, 5}, small = large;
    small.dims[c.axis] = 2;
    const Tensor tl = h.tensor(large, c.layout, counting(large.elements())), ts = h.tensor(small, c.layout);
    Slab slab("concat", tl, ts, c.axis, 1);
    slab.extract(h.session.compute, tl, ts);
    Numbers want, after = counting(large.elements());
    for (int64_t i = 0; i < large.elements(); ++i) {
      int64_t inner = 1;
      for (int d = c.axis + 1; d < 4; ++d)
        inner *= large[d];
      const int64_t position = i / inner % large[c.axis];
      if (position >= 1 && position < 3) {
        want.push_back(after[static_cast<size_t>(i)]);
        after[static_cast<size_t>(i)] *= -1;
      }
    }
    EXPECT_EQ(h.read(ts), want);
    for (double &v : want)
      v = -v;
    h.write(ts, want);
    slab.insert(h.session.compute, ts, tl);
    EXPECT_EQ(h.read(tl), after);
  }
  EXPECT_THROW(Slab("s", device(0, {3, 4}), device(0, {3, 2}), 1, 3), std::invalid_argument);
}

/// Three tensors with 2, 1 and the rest of a dimension, side by side: each has the numbers that its places in y count.
void checkJoin(Shape whole, Layout layout, int axis, DataType type) {
  Harness h;
  Numbers all(static_cast<size_t>(whole.elements()));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<double>(i % 251); // exact in 16 bits, too
  int64_t inner = 1, first = 0;
  for (int d = axis + 1; d < whole.rank; ++d)
    inner *= whole[d];
  std::vector<Tensor> xs;
  for (int64_t extent : {int64_t(2), int64_t(1), whole[axis] - 3}) {
    Numbers own;
    for (size_t i = 0; i < all.size(); ++i)
      if (const int64_t at = static_cast<int64_t>(i) / inner % whole[axis]; at >= first && at < first + extent)
        own.push_back(all[i]);
    Shape part = whole;
    part.dims[axis] = extent;
    xs.push_back(h.tensor(part, layout, own, type));
    first += extent;
  }
  const Tensor y = h.tensor(whole, layout, type);
  join(h.session.compute, y, {xs.data(), xs.size()}, axis, "j");
  EXPECT_EQ(h.read(y), all) << "dimension " << axis << " of " << whole.elements();
}

TEST(Join, PutsTensorsSideBySide) {
  for (const DataType type : {DataType::F32, DataType::BF16}) {
    for (int axis : {0, 1, 3})
      checkJoin({5, 7, 4, 6}, Layout::RowMajor, axis, type);
    for (int axis : {0, 1, 2})
      checkJoin({5, 37, 40, 6}, Layout::NHWC, axis, type);
    checkJoin({7}, Layout::RowMajor, 0, type);
    checkJoin({2, 9, 33, 700}, Layout::RowMajor, 1, type); // rows that are cut
  }
  Harness h;
  const Tensor y = h.tensor({4, 6}), two = h.tensor({4, 2}), four = h.tensor({4, 4}), other = h.tensor({3, 4});
  EXPECT_THROW(join(h.session.compute, y, {two, two}, 1, "j"), std::invalid_argument);
  EXPECT_THROW(join(h.session.compute, y, {two, other}, 1, "j"), std::invalid_argument);
  EXPECT_THROW(join(h.session.compute, y, {two, four}, 2, "j"), std::invalid_argument);
  EXPECT_NO_THROW(join(h.session.compute, y, {two, four}, 1, "j"));
}

void checkSumAndBroadcast(Shape large, Layout layout, Shape small, float scale) {
  Harness h;
  const Numbers x = randomNumbers(large.elements(), 1);
  Numbers sum(static_cast<size_t>(small.elements())), broadcast;
  const Numbers y = randomNumbers(small.elements(), 2);
  for (int64_t i = 0; i < large.elements(); ++i) {
    int64_t rest = i, to = 0, factor = 1;
    for (int d = 1; d <= large.rank; ++d) {
      const int64_t position = rest % large[large.rank - d];
      rest /= large[large.rank - d];
      if (d > small.rank)
        continue;
      to += (small[small.rank - d] == 1 ? 0 : position) * factor;
      factor *= small[small.rank - d];
    }
    sum[static_cast<size_t>(to)] += scale * x[static_cast<size_t>(i)];
    broadcast.push_back(static_cast<float>(scale * static_cast<float>(y[static_cast<size_t>(to)])));
  }
  const Tensor tx = h.tensor(large, layout, x), ty = h.tensor(small, small.rank == 4 ? layout : Layout::RowMajor);
  const SumTo sumTo("s", tx, ty, scale);
  sumTo.run(h.session.compute, tx, ty, h.workspace(sumTo));
  EXPECT_CLOSE(h.read(ty), sum, 1e-5);
  h.write(ty, y);
  BroadcastTo broadcastTo("b", ty, tx, scale);
  broadcastTo.run(h.session.compute, ty, tx);
  EXPECT_EQ(h.read(tx), broadcast);
}

TEST(SumToAndBroadcastTo, EveryPosition) {
  for (Layout layout : {Layout::NHWC, Layout::RowMajor}) {
    for (Shape small :
         {Shape{1, 5, 1, 1}, Shape{5, 1, 1}, Shape{6, 5, 1, 1}, Shape{7}, Shape{6, 1, 1, 1}, Shape{1}, Shape{},
          Shape{6, 1, 9, 7}, Shape{1, 5, 9, 7}, Shape{6, 5, 9, 7}, Shape{6, 5, 1, 7}, Shape{9, 1}})
      checkSumAndBroadcast({6, 5, 9, 7}, layout, small, 0.5f);
    checkSumAndBroadcast({4, 64, 40, 40}, layout, {64, 1, 1}, 1);
    checkSumAndBroadcast({4, 600, 4, 4}, layout, {1, 600, 1, 1}, 1);
  }
  checkSumAndBroadcast({64, 1000}, Layout::RowMajor, {1000}, 1);
  checkSumAndBroadcast({64, 1000}, Layout::RowMajor, {64, 1}, 1.0f / 1024);
  checkSumAndBroadcast({8, 50, 300}, Layout::RowMajor, {8, 50, 1}, 1);
  checkSumAndBroadcast({100352}, Layout::RowMajor, {1}, 1);
  checkSumAndBroadcast({100003}, Layout::RowMajor, {}, 1);
  checkSumAndBroadcast({2, 3, 2, 3, 2, 3}, Layout::RowMajor, {3, 1, 3, 1, 3}, 1);
}

/// One axis of ONNX's formulas: taps (position, weight) of output o.
std::vector<std::pair<int64_t, double>> taps(int64_t o, int64_t in, int64_t out, ResizeMode mode,
                                             ResizeCoordinates coordinates) {
  const double scale = static_cast<double>(out) / static_cast<double>(in), p = static_cast<double>(o);
  double x = (p + 0.5) / scale - 0.5;
  if (coordinates == ResizeCoordinates::AlignCorners)
    x = out == 1 ? 0 : p * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  if (coordinates == ResizeCoordinates::Asymmetric)
    x = p / scale;
  if (mode == ResizeMode::Nearest)
    return {{std::min(in - 1, std::max<int64_t>(0, static_cast<int64_t>(std::floor(x)))), 1.0}};
  x = std::min(static_cast<double>(in - 1), std::max(0.0, x));
  const auto low = static_cast<int64_t>(x);
  return {{low, 1 - (x - static_cast<double>(low))}, {std::min(low + 1, in - 1), x - static_cast<double>(low)}};
}

TEST(Resize, ForwardAndBackward) {
  for (ResizeMode mode : {ResizeMode::Nearest, ResizeMode::Linear})
    for (ResizeCoordinates coordinates :
         {ResizeCoordinates::HalfPixel, ResizeCoordinates::AlignCorners, ResizeCoordinates::Asymmetric})
      for (Shape ys : {Shape{2, 5, 8, 10}, Shape{2, 5, 6, 3}, Shape{2, 5, 4, 5}, Shape{2, 5, 1, 13}}) {
        const Shape xs{2, 5, 4, 5};
        const Numbers x = randomNumbers(xs.elements(), 1), dy = randomNumbers(ys.elements(), 2);
        Numbers want(dy.size()), wantGradient(x.size());
        for (int64_t i = 0; i < ys.elements(); ++i)
          for (auto [row, a] : taps(i / ys[3] % ys[2], xs[2], ys[2], mode, coordinates))
            for (auto [column, b] : taps(i % ys[3], xs[3], ys[3], mode, coordinates)) {
              const auto from = static_cast<size_t>((i / (ys[2] * ys[3]) * xs[2] + row) * xs[3] + column);
              want[static_cast<size_t>(i)] += a * b * x[from];
              wantGradient[from] += a * b * dy[static_cast<size_t>(i)];
            }
        Harness h;
        Resize resize("up", xs, ys, 0, 0, mode, coordinates, NearestRounding::Floor);
        const Tensor y = h.image(ys), dx = h.image(xs);
        resize.forward(h.session.compute, h.tensor(xs, Layout::NHWC, x), y);
        EXPECT_CLOSE(h.read(y), want, 1e-6);
        resize.backward(h.session.compute, h.tensor(ys, Layout::NHWC, dy), dx);
        EXPECT_CLOSE(h.read(dx), wantGradient, 1e-6);
      }
}

TEST(Resize, Rounding) {
  // x at 0.5, 1.5: the four ways to round a tie, from 4 to 2 columns by half pixels.
  const double want[4][2] = {{1, 3}, {2, 4}, {1, 3}, {2, 4}};
  int i = 0;
  for (NearestRounding rounding : {NearestRounding::RoundPreferFloor, NearestRounding::RoundPreferCeil,
                                   NearestRounding::Floor, NearestRounding::Ceil}) {
    Harness h;
    Resize resize("down", {1, 1, 1, 4}, {1, 1, 1, 2}, 1, 0.5f, ResizeMode::Nearest, ResizeCoordinates::HalfPixel,
                  rounding);
    const Tensor y = h.image({1, 1, 1, 2});
    resize.forward(h.session.compute, h.tensor({1, 1, 1, 4}, Layout::NHWC, {1, 2, 3, 4}), y);
    EXPECT_EQ(h.read(y), (Numbers{want[i][0], want[i][1]}));
    ++i;
  }
}

} // namespace
} // namespace sluice
