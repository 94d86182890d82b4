// SPDX-License-Identifier: Apache-2.0
// Cross-entropies of logits of which the first alone are those of classes, as pad-products leaves them.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

/// Logits behind the classes, rubbish here, change no bit of losses, gradients or counts, and their gradient is 0.
TEST(Loss, LogitsThatAreNoClasses) {
  struct Case {
    Shape all;
    int64_t classes;
  };
  for (const Case &c : {Case{{6, 8}, 5}, Case{{5, 64}, 33}, Case{{2, 6, 3, 2}, 4}, Case{{3, 5056}, 5003}}) {
    Shape few = c.all;
    few.dims[1] = c.classes;
    const int64_t inner = few.elements() / few[0] / few[1], rows = few[0] * inner;
    const auto own = static_cast<size_t>(c.classes * inner), wide = static_cast<size_t>(c.all[1] * inner);
    const Numbers x = randomNumbers(few.elements(), 1, 3);
    Numbers rubbish(static_cast<size_t>(c.all.elements()));
    for (size_t i = 0; i < rubbish.size(); ++i)
      rubbish[i] = i % wide < own ? x[i / wide * own + i % wide] : i % 3 == 0 ? double(NAN) : i % 3 == 1 ? 1e30 : -1e30;
    std::vector<int64_t> target;
    for (int64_t s = 0; s < rows; ++s)
      target.push_back(s % 3 == 1 ? -100 : s * 7 % c.classes);
    const auto run = [&](const Shape &shape, const Numbers &logits, const Loss &loss, float smoothing) {
      Harness h;
      h.session.state.labelSmoothing = smoothing;
      const Tensor tx = h.tensor(shape, Layout::RowMajor, logits), tt = h.classes(target), value = h.tensor({}),
                   dx = h.tensor(shape, Layout::RowMajor, Numbers(logits.size(), NAN)), count = h.classes({0});
      loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
      loss.backward(h.session.compute, tx, tt, dx, h.workspace(loss));
      loss.countCorrect(h.session.compute, tx, tt, count);
      Numbers found = h.read(dx);
      int64_t correct;
      h.session.read(count, &correct);
      found.push_back(h.read(value)[0]);
      found.push_back(static_cast<double>(correct));
      return found;
    };
    for (const float smoothing : {0.0f, 0.2f}) {
      const Numbers want = run(few, x, Loss("loss", LossKind::SoftmaxCrossEntropy, few, -100), smoothing),
                    got = run(c.all, rubbish, Loss("loss", LossKind::SoftmaxCrossEntropy, c.all, -100, c.classes),
                              smoothing);
      for (size_t i = 0; i < rubbish.size(); ++i)
        EXPECT_EQ(got[i], i % wide < own ? want[i / wide * own + i % wide] : 0) << i;
      EXPECT_EQ(got[rubbish.size()], want[x.size()]);
      EXPECT_EQ(got.back(), want.back());
    }
  }
  EXPECT_THROW(Loss("loss", LossKind::SoftmaxCrossEntropy, {4, 3}, Loss::none, 4), std::invalid_argument);
}

} // namespace
} // namespace sluice
