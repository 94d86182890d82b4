// SPDX-License-Identifier: Apache-2.0
// CTC against the sum over all paths, in double, and finite differences of it.
#include "test/unit/runtime/Harness.h"

#include "runtime/CtcLoss.h"
#include "runtime/Errors.h"

namespace sluice {
namespace {

constexpr int64_t steps = 5, classes = 3, labels = 3, samples = 5;

/// What a path spells: neighbours that are equal are one, blanks nothing.
std::vector<int64_t> spelled(const std::vector<int64_t> &path, int64_t blank) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < path.size(); ++i)
    if (path[i] != blank && (i == 0 || path[i] != path[i - 1]))
      out.push_back(path[i]);
  return out;
}

/// -log of the probability that `length` steps of scores spell the target.
double surprise(const double *x, int64_t length, const std::vector<int64_t> &target, int64_t blank) {
  int64_t paths = 1;
  for (int64_t t = 0; t < length; ++t)
    paths *= classes;
  double all = 0;
  for (int64_t number = 0; number < paths; ++number) {
    std::vector<int64_t> path;
    double probability = 1;
    for (int64_t t = 0, rest = number; t < length; ++t, rest /= classes) {
      path.push_back(rest % classes);
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k)
        sum += std::exp(x[t * classes + k]);
      probability *= std::exp(x[t * classes + rest % classes]) / sum;
    }
    if (spelled(path, blank) == target)
      all += probability;
  }
  return -std::log(all);
}

struct Case {
  int64_t blank;
  std::vector<int64_t> target; ///< [samples, labels]
  std::vector<int64_t> inputLengths, targetLengths;

  double loss(const Numbers &x) const {
    double sum = 0;
    for (int64_t n = 0; n < samples; ++n) {
      std::vector<int64_t> own(target.begin() + n * labels, target.begin() + (n + 1) * labels);
      own.resize(static_cast<size_t>(targetLengths[static_cast<size_t>(n)]));
      const double loss = surprise(x.data() + n * steps * classes, inputLengths[static_cast<size_t>(n)], own, blank);
      if (std::isfinite(loss)) // zero_infinity
        sum += loss / static_cast<double>(std::max<size_t>(1, own.size()));
    }
    return sum / static_cast<double>(samples);
  }
};

/// `said`: lengths come as tensors of their own; else all steps count, and labels end at the padding.
void check(const Case &one, bool said) {
  const Numbers x = randomNumbers(samples * steps * classes, 1, 2), d = randomNumbers(samples * steps * classes, 2);
  Harness h;
  const CtcLoss loss("loss", {samples, steps, classes}, labels, one.blank, true, -1);
  const Tensor tx = h.tensor({samples, steps, classes}, Layout::RowMajor, x), value = h.tensor({}),
               dx = h.tensor({samples, steps, classes});
  Tensor target = h.classes(one.target);
  target.shape = {samples, labels};
  const Tensor inputLengths = said ? h.classes(one.inputLengths) : none,
               targetLengths = said ? h.classes(one.targetLengths) : none;
  loss.forward(h.session.compute, tx, target, inputLengths, targetLengths, value, h.workspace(loss));
  EXPECT_NEAR(h.read(value)[0], one.loss(x), 1e-6 * one.loss(x));
  loss.backward(h.session.compute, tx, target, inputLengths, targetLengths, dx, h.workspace(loss));
  const double want = slope([&](const Numbers &at) { return one.loss(at); }, x, d);
  EXPECT_NEAR(dot(h.read(dx), d), want, 1e-5 * std::fabs(want) + 1e-6);
}

// Labels that differ, labels that are equal and need a blank between, one, none, and as many as steps allow.
TEST(CtcLoss, IsTheSumOverAllPaths) {
  check({0, {1, 2, 0, 1, 1, 0, 2, 0, 0, 0, 0, 0, 2, 1, 2}, {5, 5, 5, 5, 5}, {2, 2, 1, 0, 3}}, false);
  check({2, {0, 1, -1, 1, 1, -1, 0, -1, -1, -1, -1, -1, 1, 0, 1}, {5, 5, 5, 5, 5}, {2, 2, 1, 0, 3}}, false);
}

TEST(CtcLoss, TakesLengths) {
  check({0, {1, 2, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 2, 1, 2}, {5, 3, 1, 2, 4}, {2, 2, 1, 0, 3}}, true);
}

/// Two equal labels need three steps: two cannot spell them.
TEST(CtcLoss, CountsNothingThatCannotBeSpelled) {
  const Case impossible = {0, {1, 2, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 2, 1, 2}, {5, 2, 0, 0, 2}, {2, 2, 1, 0, 3}};
  check(impossible, true);
  const Numbers x = randomNumbers(samples * steps * classes, 1, 2);
  Harness h;
  const CtcLoss loss("loss", {samples, steps, classes}, labels, 0, false);
  const Tensor tx = h.tensor({samples, steps, classes}, Layout::RowMajor, x), value = h.tensor({});
  Tensor target = h.classes(impossible.target);
  target.shape = {samples, labels};
  loss.forward(h.session.compute, tx, target, h.classes(impossible.inputLengths), h.classes(impossible.targetLengths),
               value, h.workspace(loss));
  EXPECT_TRUE(std::isinf(h.read(value)[0]));
}

TEST(CtcLoss, RefusesLabelsThatAreNoClass) {
  Harness h;
  const CtcLoss loss("loss", {samples, steps, classes}, labels, 0, false, -1);
  const Tensor tx = h.tensor({samples, steps, classes}, Layout::RowMajor, Numbers(samples * steps * classes)),
               value = h.tensor({});
  Tensor target = h.classes({1, 2, 0, 1, 1, 0, 2, 0, 0, 0, 0, 0, 2, 7, 2});
  target.shape = {samples, labels};
  EXPECT_THROW(
      {
        loss.forward(h.session.compute, tx, target, none, none, value, h.workspace(loss));
        h.session.synchronize();
      },
      DataError);
  EXPECT_THROW(CtcLoss("loss", {2, 3}, 1, 0, false), std::invalid_argument);
  EXPECT_THROW(CtcLoss("loss", {2, 3, 4}, 1, 4, false), std::invalid_argument);
}

} // namespace
} // namespace sluice
