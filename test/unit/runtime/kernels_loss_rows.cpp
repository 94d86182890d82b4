// SPDX-License-Identifier: Apache-2.0
// Cross-entropies of some rows of a batch, as split leaves them: their shares add up to the batch's loss, and each
// row's gradient is that of the whole batch, bit for bit, whatever targets count and whatever they are mixed with.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

struct Found {
  Numbers gradient;
  double loss = 0;
};

/// Of the rows [begin, end) of a batch, or of all by a kernel that knows no others.
Found run(const Shape &all, const Numbers &x, const std::vector<int64_t> &target, int64_t begin, int64_t end,
          int64_t ignored, bool whole) {
  const int64_t rows = static_cast<int64_t>(target.size());
  const Shape own = {end - begin, all[1]};
  const Loss loss = whole ? Loss("loss", LossKind::SoftmaxCrossEntropy, all, ignored)
                          : Loss("loss", LossKind::SoftmaxCrossEntropy, own, ignored, 0, begin, rows);
  Harness h;
  h.session.state.labelSmoothing = 0.1f;
  h.session.state.mixShare = 0.75f;
  h.session.state.mixBatch = 3;
  const Numbers part(x.begin() + begin * all[1], x.begin() + end * all[1]);
  const Tensor tx = h.tensor(own, Layout::RowMajor, part), tt = h.classes(target), value = h.tensor({}),
               dx = h.tensor(own);
  loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
  loss.backward(h.session.compute, tx, tt, dx, h.workspace(loss));
  return {h.read(dx), h.read(value)[0]};
}

TEST(Loss, RowsOfABatch) {
  for (const Shape &all : {Shape{12, 5}, Shape{12, 70}, Shape{12, 5003}})
    for (const int64_t ignored : {Loss::none, int64_t(-100)}) {
      const Numbers x = randomNumbers(all.elements(), 1, 3);
      std::vector<int64_t> target;
      for (int64_t s = 0; s < all[0]; ++s)
        target.push_back(ignored != Loss::none && s % 5 < 2 ? ignored : s * 7 % all[1]);
      const Found want = run(all, x, target, 0, all[0], ignored, true);
      Found sum;
      for (const auto &[begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 7}, {7, 12}}) {
        const Found part = run(all, x, target, begin, end, ignored, false);
        sum.gradient.insert(sum.gradient.end(), part.gradient.begin(), part.gradient.end());
        sum.loss += part.loss;
      }
      EXPECT_EQ(sum.gradient, want.gradient);
      EXPECT_NEAR(sum.loss, want.loss, 1e-6 * std::abs(want.loss));
    }
}

TEST(Loss, RowsThatAreNotThere) {
  EXPECT_THROW(Loss("loss", LossKind::SoftmaxCrossEntropy, {4, 3}, Loss::none, 0, 9, 12), std::invalid_argument);
  EXPECT_THROW(Loss("loss", LossKind::SoftmaxCrossEntropy, {4, 3, 2}, Loss::none, 0, 0, 12), std::invalid_argument);
}

} // namespace
} // namespace sluice
