// SPDX-License-Identifier: Apache-2.0
// What the host computes of a loss for several classes at a time.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

/// Logits that are neighbours, whose exponentials are computed together, have the bits of those that lie apart.
TEST(HostLoss, LogitsThatAreNeighbours) {
  for (int64_t classes : {3, 16, 37, 300, 1029}) {
    const int64_t rows = 5;
    const Numbers x = randomNumbers(rows * classes, 1, 4);
    const std::vector<int64_t> target{classes - 1, 0, -100, classes / 2, 1};
    Numbers turned(x.size()); // [1, classes, rows]
    const auto place = [&](int64_t i) { return static_cast<size_t>(i % classes * rows + i / classes); };
    for (int64_t i = 0; i < rows * classes; ++i)
      turned[place(i)] = x[static_cast<size_t>(i)];
    const auto run = [&](const Shape &shape, const Numbers &logits) {
      Harness h;
      h.session.state.labelSmoothing = 0.1f;
      const Loss loss("loss", LossKind::SoftmaxCrossEntropy, shape, -100);
      const Tensor tx = h.tensor(shape, Layout::RowMajor, logits), tt = h.classes(target), value = h.tensor({}),
                   dx = h.tensor(shape);
      loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
      loss.backward(h.session.compute, tx, tt, dx, h.workspace(loss));
      Numbers found = h.read(dx);
      found.push_back(h.read(value)[0]);
      return found;
    };
    const Numbers near = run({rows, classes}, x), apart = run({1, classes, rows}, turned);
    for (int64_t i = 0; i < rows * classes; ++i)
      EXPECT_EQ(near[static_cast<size_t>(i)], apart[place(i)]) << classes << ", " << i;
    EXPECT_EQ(near.back(), apart.back()) << classes;
  }
}

} // namespace
} // namespace sluice
