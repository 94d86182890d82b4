// SPDX-License-Identifier: Apache-2.0
// The best elements of rows against a sort, elements by their ids and their gradients against plain loops, ids out of
// range, numbers that become integers.
#include "test/unit/runtime/Harness.h"

#include "runtime/Errors.h"

#include <numeric>

namespace sluice {
namespace {

struct Rows {
  int64_t rows, columns, count;
};
const Rows cases[] = {{1, 1, 1}, {3, 7, 2}, {5, 300, 300}, {2, 900, 40}, {700, 3, 1}};

std::vector<int64_t> readIds(Harness &h, const Tensor &ids) {
  std::vector<int64_t> values(static_cast<size_t>(ids.shape.elements()));
  h.session.read(ids, values.data());
  return values;
}

Tensor idsTensor(Harness &h, const std::vector<int64_t> &ids, Shape shape) {
  const Tensor tensor = h.tensor(shape, Layout::RowMajor, DataType::I64);
  h.session.write(tensor, ids.data());
  return tensor;
}

/// By a stable sort of the positions in the order in which equal ones come.
std::vector<int64_t> sorted(const Numbers &x, const Rows &r, bool smallest, bool last) {
  std::vector<int64_t> best;
  for (int64_t row = 0; row < r.rows; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(r.columns));
    std::iota(order.begin(), order.end(), int64_t{0});
    if (last)
      std::reverse(order.begin(), order.end());
    auto at = [&](int64_t i) { return x[static_cast<size_t>(row * r.columns + i)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return smallest ? at(i) < at(j) : at(i) > at(j); });
    best.insert(best.end(), order.begin(), order.begin() + r.count);
  }
  return best;
}

TEST(Top, IsTheFrontOfASort) {
  for (const Rows &r : cases)
    for (bool smallest : {false, true})
      for (bool last : {false, true}) {
        Numbers values = randomNumbers(r.rows * r.columns, 3);
        for (double &value : values) // many are equal
          value = std::round(value * 8);
        Harness h;
        const Tensor x = h.tensor({r.rows, r.columns}, Layout::RowMajor, values),
                     ids = h.tensor({r.rows, r.count}, Layout::RowMajor, DataType::I64);
        const Top top("best", x.shape, r.count, smallest, last);
        top.run(h.session.compute, x, ids);
        ASSERT_EQ(readIds(h, ids), sorted(values, r, smallest, last)) << r.columns << " " << smallest << last;
      }
}

TEST(Top, HoldsNaNForTheLargest) {
  Harness h;
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const Tensor x = h.tensor({1, 5}, Layout::RowMajor, {1, nan, infinity, nan, -2}),
               ids = h.tensor({1, 5}, Layout::RowMajor, DataType::I64);
  const Top largest("best", x.shape, 5, false, false), smallest("best", x.shape, 5, true, false);
  largest.run(h.session.compute, x, ids);
  EXPECT_EQ(readIds(h, ids), (std::vector<int64_t>{1, 3, 2, 0, 4}));
  smallest.run(h.session.compute, x, ids);
  EXPECT_EQ(readIds(h, ids), (std::vector<int64_t>{4, 0, 2, 1, 3}));
}

TEST(Pick, TakesElementsAndAddsUpTheirGradients) {
  for (const Rows &r : cases) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < r.rows * r.count; ++i)
      ids.push_back(i % 2 ? r.columns - 1 : i * i % r.columns); // some stand often
    const Numbers values = randomNumbers(r.rows * r.columns, 4), gradients = randomNumbers(r.rows * r.count, 5);
    Harness h;
    const Tensor x = h.tensor({r.rows, r.columns}, Layout::RowMajor, values), ti = idsTensor(h, ids, {r.rows, r.count}),
                 y = h.tensor({r.rows, r.count}), dy = h.tensor({r.rows, r.count}, Layout::RowMajor, gradients),
                 dx = h.tensor({r.rows, r.columns});
    h.write(dx, randomNumbers(r.rows * r.columns, 6)); // nothing of what was there stays
    const Pick pick("rows", x.shape, ti.shape);
    pick.forward(h.session.compute, x, ti, y);
    pick.backward(h.session.compute, dy, ti, dx);
    const Numbers got = h.read(y);
    std::vector<float> sums(values.size(), 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      const size_t at = i / static_cast<size_t>(r.count) * static_cast<size_t>(r.columns) + static_cast<size_t>(ids[i]);
      ASSERT_EQ(got[i], values[at]);
      sums[at] += static_cast<float>(gradients[i]);
    }
    EXPECT_EQ(h.read(dx), Numbers(sums.begin(), sums.end()));
  }
}

TEST(Pick, KnowsNoElementBesideTheRow) {
  for (int64_t id : {int64_t{4}, int64_t{-1}, INT64_MIN}) {
    Harness h;
    const Pick pick("/gate/GatherElements", {2, 4}, {2, 1});
    const Tensor x = h.tensor({2, 4}), ids = idsTensor(h, {0, id}, {2, 1}), y = h.tensor({2, 1});
    pick.forward(h.session.compute, x, ids, y);
    try {
      h.session.synchronize();
      FAIL() << "it read element " << id;
    } catch (const DataError &error) {
      EXPECT_EQ(error.what(), "selection '/gate/GatherElements': id " + std::to_string(id) +
                                  " at position 1 of this batch, must lie between 0 and 3");
    }
  }
}

TEST(Selection, RefusesRowsThatAreNone) {
  EXPECT_THROW(Top("best", {}, 1, false, false), std::invalid_argument);
  EXPECT_THROW(Top("best", {2, 3}, 4, false, false), std::invalid_argument);
  EXPECT_THROW(Top("best", {2, 3}, 0, false, false), std::invalid_argument);
  EXPECT_THROW(Pick("rows", {2, 3}, {3, 1}), std::invalid_argument);
  EXPECT_THROW(Pick("rows", {0, 3}, {0, 1}), std::invalid_argument);
}

TEST(Reorder, MakesIntegersOfNumbers) {
  Harness h;
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = h.tensor({2, 4}, Layout::RowMajor, {0.9, -0.9, 7, -3.5, 16777216, infinity, std::nan(""), -1e30}),
               y = h.tensor({2, 4}, Layout::RowMajor, DataType::I64);
  const Reorder cast("ids", x, y, {});
  cast.run(h.session.compute, x, y);
  EXPECT_EQ(readIds(h, y), (std::vector<int64_t>{0, 0, 7, -3, 16777216, INT64_MIN, INT64_MIN, INT64_MIN}));
}

} // namespace
} // namespace sluice
