// SPDX-License-Identifier: Apache-2.0
// What decode steps are made of: rows that join caches, and attention to caches, which is that of whole
// texts in its last row.
#include "test/unit/runtime/Harness.h"

#include "runtime/Errors.h"
#include "runtime/KeyCache.h"

#include <cmath>

namespace sluice {
namespace {

Tensor upload(Harness &h, const Numbers &values, Shape shape) { return h.tensor(shape, Layout::RowMajor, values); }

TEST(KeyCache, KnowsNoPlaceBeyondTheRows) {
  for (const int64_t wrong : {int64_t(-1), int64_t(5)}) {
    Harness h;
    const StoredRows kernel("attention", {2, 1, 1, 4}, {2, 1, 5, 4});
    kernel.run(h.session.compute, h.tensor({2, 1, 1, 4}), h.classes({0, wrong}), h.tensor({2, 1, 5, 4}));
    try {
      h.session.synchronize();
      FAIL();
    } catch (const DataError &error) {
      EXPECT_EQ(std::string(error.what()),
                text("embedding 'attention': id ", wrong, " at position 1 of this batch, must lie between 0 and 4"));
    }
  }
}

/// Through a view of [texts, rows, heads, columns], and without; other rows stay as they are.
TEST(KeyCache, StoresRowsOfAViewOrAtPlaces) {
  Harness h;
  const Numbers before = randomNumbers(2 * 3 * 6 * 4, 1), rows = randomNumbers(2 * 2 * 3 * 4, 2),
                one = randomNumbers(24, 4);
  const Tensor cache = upload(h, before, {2, 3, 6, 4});
  const StoredRows first("k", {2, 3, 2, 4}, {2, 3, 6, 4}, {0, 24, 4, 12}), placed("k", {2, 3, 1, 4}, {2, 3, 6, 4});
  first.run(h.session.compute, upload(h, rows, {2, 2, 3, 4}), none, cache);
  placed.run(h.session.compute, upload(h, one, {2, 3, 1, 4}), h.classes({5, 1}), cache);
  const Numbers got = h.read(cache);
  for (int64_t text = 0; text < 2; ++text)
    for (int64_t head = 0; head < 3; ++head)
      for (int64_t row = 0; row < 6; ++row)
        for (int64_t c = 0; c < 4; ++c) {
          const bool isOne = row == (text == 0 ? 5 : 1);
          const double wanted = isOne     ? one[static_cast<size_t>((text * 3 + head) * 4 + c)]
                                : row < 2 ? rows[static_cast<size_t>(((text * 2 + row) * 3 + head) * 4 + c)]
                                          : before[static_cast<size_t>(((text * 3 + head) * 6 + row) * 4 + c)];
          EXPECT_EQ(got[static_cast<size_t>(((text * 3 + head) * 6 + row) * 4 + c)],
                    static_cast<double>(static_cast<float>(wanted)));
        }
}

/// With and without a mask, heads that share keys, and more keys than pass by at once; what lies behind the places is
/// no number.
TEST(KeyCache, AttendsAsTheLastRowOfAWholeText) {
  constexpr int64_t heads = 4, depth = 8, columns = 6, keys = 150;
  for (const bool masked : {false, true})
    for (const int64_t groups : {int64_t(1), int64_t(2), int64_t(4)}) {
      Harness h;
      const std::vector<int64_t> places = {149, 0, 70};
      Numbers k = randomNumbers(3 * groups * keys * depth, 5), v = randomNumbers(3 * groups * keys * columns, 6);
      const Numbers q = randomNumbers(3 * heads * depth, 7), mask = randomNumbers(3 * keys, 8);
      for (int64_t i = 0; i < 3 * groups * keys; ++i)
        if (i % keys > places[static_cast<size_t>(i / keys / groups)]) {
          std::fill_n(k.begin() + i * depth, depth, std::nan(""));
          std::fill_n(v.begin() + i * columns, columns, std::nan(""));
        }
      CachedAttentionOptions options;
      if (masked)
        options.withMask({3, 1, 1, keys});
      const CachedAttention kernel("attention", {3, heads, 1, depth}, {3, groups, keys, depth},
                                   {3, groups, keys, columns}, 0.3f, options);
      const Tensor y = h.tensor({3, heads, 1, columns});
      kernel.run(h.session.compute, upload(h, q, {3, heads, 1, depth}), upload(h, k, {3, groups, keys, depth}),
                 upload(h, v, {3, groups, keys, columns}), h.classes(places),
                 masked ? upload(h, mask, {3, 1, 1, keys}) : none, none, y);
      const Numbers got = h.read(y);
      for (int64_t text = 0; text < 3; ++text)
        for (int64_t head = 0; head < heads; ++head) {
          const int64_t group = text * groups + head / (heads / groups), seen = places[static_cast<size_t>(text)] + 1;
          double sum = 0;
          std::vector<double> wanted(columns);
          for (int64_t key = 0; key < seen; ++key) {
            double score = masked ? mask[static_cast<size_t>(text * keys + key)] : 0;
            for (int64_t d = 0; d < depth; ++d)
              score += 0.3 * q[static_cast<size_t>((text * heads + head) * depth + d)] *
                       k[static_cast<size_t>((group * keys + key) * depth + d)];
            sum += std::exp(score);
            for (int64_t c = 0; c < columns; ++c)
              wanted[static_cast<size_t>(c)] +=
                  std::exp(score) * v[static_cast<size_t>((group * keys + key) * columns + c)];
          }
          for (int64_t c = 0; c < columns; ++c)
            EXPECT_NEAR(got[static_cast<size_t>((text * heads + head) * columns + c)],
                        wanted[static_cast<size_t>(c)] / sum, 2e-6);
        }
    }
}

/// Where a mask hides every key the result is 0, as attention has it.
TEST(KeyCache, GivesNothingWhereNoKeyIsSeen) {
  Harness h;
  CachedAttentionOptions options;
  options.withMask({4});
  const CachedAttention kernel("attention", {1, 1, 1, 2}, {1, 1, 4, 2}, {1, 1, 4, 2}, 1, options);
  const Tensor y = h.tensor({1, 1, 1, 2});
  kernel.run(h.session.compute, upload(h, Numbers(2, 1), {1, 1, 1, 2}), upload(h, Numbers(8, 1), {1, 1, 4, 2}),
             upload(h, Numbers(8, 1), {1, 1, 4, 2}), h.classes({3}), upload(h, Numbers(4, -HUGE_VAL), {4}), none, y);
  EXPECT_EQ(h.read(y), Numbers(2, 0));
}

} // namespace
} // namespace sluice
