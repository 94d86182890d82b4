// SPDX-License-Identifier: Apache-2.0
// Rows named by ids: which row stands where, gradients against a plain loop, ids that repeat, ids out of range,
// integers that become numbers.
#include "test/unit/runtime/Harness.h"

#include "runtime/Errors.h"

namespace sluice {
namespace {

struct Rows {
  int64_t rows, columns;
  std::vector<int64_t> ids;
  Shape table() const { return {rows, columns}; }
  int64_t count() const { return static_cast<int64_t>(ids.size()); }
};

/// A few rows that stand often, more that stand once, many that stand nowhere, and one that stands in half of the
/// places.
Rows textOf(int64_t count, int64_t rows, int64_t columns) {
  Rows text{rows, columns, {}};
  for (int64_t i = 0; i < count; ++i)
    text.ids.push_back(i % 2 ? rows - 1 : i % 5 == 0 ? i * i % 3 : i * 37 % rows);
  return text;
}

const Rows texts[] = {
    textOf(1, 1, 1),     textOf(12, 7, 3),    textOf(700, 300, 65), textOf(64, 5000, 8),
    textOf(600, 2, 130), textOf(5000, 700, 4)}; // the last one: runs of tiles are merged, an odd number of them

Tensor tensorOf(Harness &h, const std::vector<int64_t> &ids, Shape shape) {
  const Tensor tensor = h.tensor(shape, Layout::RowMajor, DataType::I64);
  h.session.write(tensor, ids.data());
  return tensor;
}

/// Sums in double and in the order of the ids: what the kernel promises to the bit.
Numbers gradientOf(const Rows &text, const Numbers &dy) {
  Numbers sums(static_cast<size_t>(text.rows * text.columns));
  for (size_t i = 0; i < text.ids.size(); ++i)
    for (size_t c = 0; c < static_cast<size_t>(text.columns); ++c)
      sums[static_cast<size_t>(text.ids[i] * text.columns) + c] += dy[i * static_cast<size_t>(text.columns) + c];
  for (double &sum : sums)
    sum = static_cast<double>(static_cast<float>(sum));
  return sums;
}

TEST(Embedding, TakesTheRowsThatIdsName) {
  for (const Rows &text : texts) {
    const Numbers values = randomNumbers(text.rows * text.columns, 1);
    Harness h;
    const Embedding embedding("words", text.table(), {text.count(), 1});
    const Tensor table = h.tensor(text.table(), Layout::RowMajor, values),
                 ids = tensorOf(h, text.ids, {text.count(), 1}), y = h.tensor({text.count(), 1, text.columns});
    embedding.forward(h.session.compute, table, ids, y);
    const Numbers got = h.read(y);
    const auto columns = static_cast<size_t>(text.columns);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], values[static_cast<size_t>(text.ids[i / columns]) * columns + i % columns]);
  }
}

TEST(Embedding, AddsUpTheGradientsOfARowInTheOrderOfTheIds) {
  for (const Rows &text : texts) {
    const Numbers gradients = randomNumbers(text.count() * text.columns, 2);
    Harness h;
    const Embedding embedding("words", text.table(), {text.count()});
    const Tensor dy = h.tensor({text.count(), text.columns}, Layout::RowMajor, gradients),
                 dtable = h.tensor(text.table());
    h.write(dtable, randomNumbers(text.rows * text.columns, 3)); // nothing of what was there stays
    embedding.backward(h.session.compute, dy, tensorOf(h, text.ids, {text.count()}), dtable, h.workspace(embedding));
    EXPECT_EQ(h.read(dtable), gradientOf(text, gradients));
  }
}

TEST(Embedding, KnowsNoRowBeyondTheTable) {
  for (int64_t id : {int64_t{4}, int64_t{-1}, INT64_MIN}) {
    Harness h;
    const Embedding embedding("/words/Gather", {4, 2}, {2});
    const Tensor y = h.tensor({2, 2}), ids = tensorOf(h, {0, id}, {2}), table = h.tensor({4, 2});
    embedding.forward(h.session.compute, table, ids, y);
    try {
      h.session.synchronize();
      FAIL() << "it read row " << id;
    } catch (const DataError &error) {
      EXPECT_EQ(error.what(), "embedding '/words/Gather': id " + std::to_string(id) +
                                  " at position 1 of this batch, must lie between 0 and 3");
    }
  }
}

TEST(Embedding, NamesTheIdOfAGradient) {
  Harness h;
  const Embedding embedding("/words/Gather", {4, 2}, {2});
  const Tensor dy = h.tensor({2, 2}), ids = tensorOf(h, {0, 7}, {2}), dtable = h.tensor({4, 2});
  embedding.backward(h.session.compute, dy, ids, dtable, h.workspace(embedding));
  EXPECT_THROW(h.session.synchronize(), DataError);
}

TEST(Embedding, FindsTheLargestOfTheRowsOfAnId) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Rows &text : texts) {
    const Numbers values = randomNumbers(text.count() * text.columns, 4);
    Numbers wanted(static_cast<size_t>(text.rows * text.columns), -infinity);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto columns = static_cast<size_t>(text.columns);
      double &best = wanted[static_cast<size_t>(text.ids[i / columns]) * columns + i % columns];
      best = std::max(best, values[i]);
    }
    Harness h;
    const Embedding embedding("words", text.table(), {text.count()});
    const Tensor x = h.tensor({text.count(), text.columns}, Layout::RowMajor, values), y = h.tensor(text.table());
    embedding.largest(h.session.compute, x, tensorOf(h, text.ids, {text.count()}), y, h.workspace(embedding));
    EXPECT_EQ(h.read(y), wanted);
  }
}

TEST(Embedding, CountsNaNAsTheLargest) {
  Harness h;
  const Embedding embedding("words", {2, 1}, {3});
  const Tensor x = h.tensor({3, 1}, Layout::RowMajor, {1, std::nan(""), 2}), y = h.tensor({2, 1});
  embedding.largest(h.session.compute, x, tensorOf(h, {1, 1, 1}, {3}), y, h.workspace(embedding));
  EXPECT_EQ(h.read(y)[0], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(h.read(y)[1]));
}

TEST(Embedding, RefusesATableWithoutRows) {
  EXPECT_THROW(Embedding("words", {}, {2}), std::invalid_argument);
  EXPECT_THROW(Embedding("words", {0, 3}, {2}), std::invalid_argument);
}

TEST(Reorder, MakesNumbersOfIntegers) {
  Harness h;
  const std::vector<int64_t> values = {0, 1, -100, 16777216, 16777217, INT64_MAX};
  const Tensor x = tensorOf(h, values, {2, 3}), y = h.tensor({2, 3});
  const Reorder reorder("mask", x, y, {}); // which the stream reads until it has run
  reorder.run(h.session.compute, x, y);
  EXPECT_EQ(h.read(y), (Numbers{0, 1, -100, 16777216, 16777216, 9223372036854775808.0}));
}

} // namespace
} // namespace sluice
