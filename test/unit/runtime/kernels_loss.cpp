// SPDX-License-Identifier: Apache-2.0
// Losses and softmax: values in double, gradients against finite differences, extreme logits, targets out of range.
#include "test/unit/runtime/Harness.h"

#include "runtime/Errors.h"

namespace sluice {
namespace {

double crossEntropy(const Numbers &x, const std::vector<int64_t> &target, int64_t classes, int64_t inner) {
  double total = 0;
  for (size_t s = 0; s < target.size(); ++s) {
    const size_t base =
        s / static_cast<size_t>(inner) * static_cast<size_t>(classes * inner) + s % static_cast<size_t>(inner);
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k)
      sum += std::exp(x[base + static_cast<size_t>(k * inner)]);
    total += std::log(sum) - x[base + static_cast<size_t>(target[s] * inner)];
  }
  return total / static_cast<double>(target.size());
}

void checkCrossEntropy(Shape shape) {
  int64_t inner = 1;
  for (int i = 2; i < shape.rank; ++i)
    inner *= shape[i];
  std::vector<int64_t> target;
  for (int64_t s = 0; s < shape[0] * inner; ++s)
    target.push_back(s * 7 % shape[1]);
  const Numbers x = randomNumbers(shape.elements(), 1, 3), d = randomNumbers(shape.elements(), 2);
  Harness h;
  const Loss loss("loss", LossKind::SoftmaxCrossEntropy, shape);
  const Tensor tx = h.tensor(shape, Layout::RowMajor, x), tt = h.classes(target), value = h.tensor({}),
               dx = h.tensor(shape);
  loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
  auto f = [&](const Numbers &at) { return crossEntropy(at, target, shape[1], inner); };
  EXPECT_NEAR(h.read(value)[0], f(x), 1e-6 * f(x));
  loss.backward(h.session.compute, tx, tt, dx);
  const double want = slope(f, x, d);
  EXPECT_NEAR(dot(h.read(dx), d), want, 1e-5 * std::fabs(want) + 1e-6);
}

TEST(Loss, CrossEntropy) {
  checkCrossEntropy({16, 10});
  checkCrossEntropy({3, 1000});
  checkCrossEntropy({2, 5, 4, 3});
  checkCrossEntropy({1, 1});
  checkCrossEntropy({200, 7});
}

/// As torch.nn.CrossEntropyLoss(label_smoothing=0.2): against targets of 0.8 at the class and 0.2 spread over all.
/// Ignored samples count neither way.
TEST(Loss, SmoothedLabels) {
  for (const Shape &shape : {Shape{40, 5}, Shape{6, 5, 3, 2}, Shape{3, 1000}}) {
    const int64_t inner = shape.elements() / shape[0] / shape[1], classes = shape[1];
    std::vector<int64_t> target;
    for (int64_t s = 0; s < shape[0] * inner; ++s)
      target.push_back(s % 3 == 1 ? -100 : s * 7 % classes);
    const auto f = [&](const Numbers &x) {
      double sum = 0, counted = 0;
      for (int64_t s = 0; s < shape[0] * inner; ++s) {
        if (target[s] == -100)
          continue;
        const auto logit = [&](int64_t k) { return x[s / inner * classes * inner + k * inner + s % inner]; };
        double all = 0, smoothed = 0;
        for (int64_t k = 0; k < classes; ++k)
          all += std::exp(logit(k));
        for (int64_t k = 0; k < classes; ++k)
          smoothed += (std::log(all) - logit(k)) * (0.2 / static_cast<double>(classes) + (k == target[s] ? 0.8 : 0));
        sum += smoothed, counted += 1;
      }
      return sum / counted;
    };
    const Numbers x = randomNumbers(shape.elements(), 1, 3), d = randomNumbers(shape.elements(), 2);
    Harness h;
    h.session.state.labelSmoothing = 0.2f;
    const Loss loss("loss", LossKind::SoftmaxCrossEntropy, shape, -100);
    const Tensor tx = h.tensor(shape, Layout::RowMajor, x), tt = h.classes(target), value = h.tensor({}),
                 dx = h.tensor(shape);
    loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
    EXPECT_NEAR(h.read(value)[0], f(x), 2e-6 * f(x));
    loss.backward(h.session.compute, tx, tt, dx, h.workspace(loss));
    const double want = slope(f, x, d);
    EXPECT_NEAR(dot(h.read(dx), d), want, 1e-5 * std::fabs(want) + 1e-6);
  }
}

/// As share * F.cross_entropy(x, t) + (1 - share) * F.cross_entropy(x, t.roll(1, 0)), whatever samples were flattened
/// into: the second time each sample of a batch of 4 has several rows. Ignored targets count neither way.
TEST(Loss, MixedClasses) {
  for (const Shape &shape : {Shape{8, 5}, Shape{4, 5, 3, 2}}) {
    const int64_t inner = shape.elements() / shape[0] / shape[1], rows = shape[0] * inner, sample = rows / 4;
    std::vector<int64_t> target, before;
    for (int64_t s = 0; s < rows; ++s)
      target.push_back(s % 4 == 1 ? -100 : s * 7 % 5);
    for (int64_t s = 0; s < rows; ++s)
      before.push_back(target[static_cast<size_t>((s + rows - sample) % rows)]);
    const Numbers x = randomNumbers(shape.elements(), 1, 3);
    Harness h;
    const Loss loss("loss", LossKind::SoftmaxCrossEntropy, shape, -100);
    const Tensor tx = h.tensor(shape, Layout::RowMajor, x), value = h.tensor({}), dx = h.tensor(shape);
    const auto found = [&](const std::vector<int64_t> &classes, float share) {
      h.session.state.mixShare = share;
      h.session.state.mixBatch = 4;
      const Tensor tt = h.classes(classes);
      loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
      loss.backward(h.session.compute, tx, tt, dx, h.workspace(loss));
      Numbers all = h.read(dx);
      all.push_back(h.read(value)[0]);
      return all;
    };
    const Numbers mixed = found(target, 0.75f), own = found(target, 1), other = found(before, 1);
    for (size_t i = 0; i < mixed.size(); ++i)
      EXPECT_NEAR(mixed[i], 0.75 * own[i] + 0.25 * other[i], 1e-6) << i;
    EXPECT_GT(std::fabs(mixed.back() - own.back()), 1e-3);
  }
}

/// The loss of the samples that count alone, with zeros where gradients of the others stand.
static void checkIgnored(int64_t ignored) {
  const Numbers x = randomNumbers(40 * 5, 1, 2);
  Numbers kept, wanted;
  std::vector<int64_t> target, keptTarget;
  for (int64_t s = 0; s < 40; ++s) {
    target.push_back(s % 3 == 1 ? ignored : 1 + s % 4);
    if (target.back() == ignored)
      continue;
    keptTarget.push_back(target.back());
    kept.insert(kept.end(), x.begin() + 5 * s, x.begin() + 5 * s + 5);
  }
  const auto count = static_cast<int64_t>(keptTarget.size());
  Harness h;
  const Loss all("loss", LossKind::SoftmaxCrossEntropy, {40, 5}, ignored),
      some("loss", LossKind::SoftmaxCrossEntropy, {count, 5});
  const Tensor tx = h.tensor({40, 5}, Layout::RowMajor, x), tt = h.classes(target), value = h.tensor({}),
               dx = h.tensor({40, 5});
  const Tensor sx = h.tensor({count, 5}, Layout::RowMajor, kept), st = h.classes(keptTarget),
               sdx = h.tensor({count, 5});
  all.forward(h.session.compute, tx, tt, value, h.workspace(all));
  EXPECT_NEAR(h.read(value)[0], crossEntropy(kept, keptTarget, 5, 1), 1e-6);
  all.backward(h.session.compute, tx, tt, dx, h.workspace(all));
  some.backward(h.session.compute, sx, st, sdx);
  const Numbers gradients = h.read(sdx);
  auto next = gradients.begin();
  for (int64_t s = 0; s < 40; ++s)
    for (int64_t k = 0; k < 5; ++k)
      wanted.push_back(target[static_cast<size_t>(s)] == ignored ? 0 : *next++);
  EXPECT_EQ(h.read(dx), wanted);
  all.forward(h.session.compute, tx, h.classes(std::vector<int64_t>(40, ignored)), value, h.workspace(all));
  EXPECT_EQ(h.read(value)[0], 0); // not 0 / 0
  all.backward(h.session.compute, tx, h.classes(std::vector<int64_t>(40, ignored)), dx, h.workspace(all));
  EXPECT_EQ(h.read(dx), Numbers(200, 0.0));
}

TEST(Loss, IgnoredTargets) {
  checkIgnored(-100);
  checkIgnored(0); // a class, which fills up sentences
}

TEST(Loss, ExtremeLogitsAndTargets) {
  Harness h;
  const Loss loss("/out/Gemm", LossKind::SoftmaxCrossEntropy, {2, 3});
  const Tensor x = h.tensor({2, 3}, Layout::RowMajor, {1e30, 0, 0, -1e30, -1e30, 0}), value = h.tensor({}),
               space = h.workspace(loss);
  loss.forward(h.session.compute, x, h.classes({0, 2}), value, space);
  EXPECT_EQ(h.read(value)[0], 0);
  loss.forward(h.session.compute, x, h.classes({0, 3}), value, space);
  try {
    h.session.synchronize();
    FAIL();
  } catch (const DataError &error) {
    EXPECT_STREQ(error.what(), "loss '/out/Gemm': class id 3 of sample 1 of this batch, must lie between 0 and 2");
  }
}

TEST(Loss, CountsCorrect) {
  Harness h;
  const Loss loss("loss", LossKind::SoftmaxCrossEntropy, {4, 3});
  const Tensor x = h.tensor({4, 3}, Layout::RowMajor, {1, 2, 3, 3, 3, 1, 0, -1, -2, 5, 6, 5}),
               target = h.classes({2, 0, 1, 1});
  const Tensor count = h.classes({10});
  loss.countCorrect(h.session.compute, x, target, count);
  int64_t value;
  h.session.read(count, &value);
  EXPECT_EQ(value, 13); // samples 0, 1 (the first of a tie) and 3
}

TEST(Loss, ElementwiseKinds) {
  const Shape shape{5, 77};
  const Numbers x = randomNumbers(shape.elements(), 1, 4), d = randomNumbers(shape.elements(), 2);
  Numbers t = randomNumbers(shape.elements(), 3);
  for (double &v : t)
    v = v > 0 ? 1 : 0.25;
  for (LossKind kind : {LossKind::MeanSquaredError, LossKind::BceWithLogits}) {
    auto f = [&](const Numbers &at) {
      double sum = 0;
      for (size_t i = 0; i < at.size(); ++i)
        sum +=
            kind == LossKind::MeanSquaredError ? std::pow(at[i] - t[i], 2) : std::log1p(std::exp(at[i])) - at[i] * t[i];
      return sum / static_cast<double>(at.size());
    };
    Harness h;
    const Loss loss("loss", kind, shape);
    const Tensor tx = h.tensor(shape, Layout::RowMajor, x), tt = h.tensor(shape, Layout::RowMajor, t),
                 value = h.tensor({}), dx = h.tensor(shape);
    loss.forward(h.session.compute, tx, tt, value, h.workspace(loss));
    EXPECT_NEAR(h.read(value)[0], f(x), 1e-6 * f(x));
    loss.backward(h.session.compute, tx, tt, dx);
    const double want = slope(f, x, d);
    EXPECT_NEAR(dot(h.read(dx), d), want, 1e-4 * std::fabs(want) + 1e-6);
  }
}

/// The mean is over the others, and so are the gradients.
TEST(Loss, IgnoredElements) {
  const Shape shape{4, 1, 9, 11};
  const Numbers x = randomNumbers(shape.elements(), 1, 4);
  Numbers t(x.size()), kept, keptTargets, wanted;
  for (size_t i = 0; i < t.size(); ++i) {
    t[i] = i % 5 == 3 ? 255 : i % 7 == 2 ? 0.25 : static_cast<double>(i % 2);
    if (t[i] != 255)
      kept.push_back(x[i]), keptTargets.push_back(t[i]);
  }
  const auto count = static_cast<int64_t>(kept.size());
  Harness h;
  const Loss all("loss", LossKind::BceWithLogits, shape, 255), some("loss", LossKind::BceWithLogits, {count});
  const Tensor tx = h.tensor(shape, Layout::RowMajor, x), tt = h.tensor(shape, Layout::RowMajor, t),
               value = h.tensor({}), dx = h.tensor(shape), sx = h.tensor({count}, Layout::RowMajor, kept),
               st = h.tensor({count}, Layout::RowMajor, keptTargets), sdx = h.tensor({count});
  double sum = 0;
  for (size_t i = 0; i < kept.size(); ++i)
    sum += std::log1p(std::exp(kept[i])) - kept[i] * keptTargets[i];
  all.forward(h.session.compute, tx, tt, value, h.workspace(all));
  EXPECT_NEAR(h.read(value)[0], sum / static_cast<double>(count), 1e-6);
  all.backward(h.session.compute, tx, tt, dx, h.workspace(all));
  some.backward(h.session.compute, sx, st, sdx);
  const Numbers gradients = h.read(sdx);
  auto next = gradients.begin();
  for (const double target : t)
    wanted.push_back(target == 255 ? 0 : *next++);
  EXPECT_EQ(h.read(dx), wanted);
  const Tensor nothing = h.tensor(shape, Layout::RowMajor, Numbers(x.size(), 255));
  all.forward(h.session.compute, tx, nothing, value, h.workspace(all));
  EXPECT_EQ(h.read(value)[0], 0); // not 0 / 0
  all.backward(h.session.compute, tx, nothing, dx, h.workspace(all));
  EXPECT_EQ(h.read(dx), Numbers(x.size(), 0.0));
}

/// As torch.nn.BCEWithLogitsLoss(pos_weight): p t log(sigmoid(x)) + (1 - t) log(1 - sigmoid(x)), with a p for each
/// index of one dimension or one for all, of targets that are answers or between them; ignored ones count neither way.
TEST(Loss, PositiveWeights) {
  struct Case {
    Shape x, weights;
    int64_t inner;
  };
  for (const Case &c : {Case{{6, 5}, {1, 5}, 1}, Case{{4, 3, 7, 2}, {1, 3, 1, 1}, 14}, Case{{4, 3, 5}, {1, 1, 5}, 1},
                        Case{{40}, {1}, 40}}) {
    const Numbers x = randomNumbers(c.x.elements(), 1, 4), d = randomNumbers(c.x.elements(), 2);
    Numbers t(x.size()), p;
    for (size_t i = 0; i < t.size(); ++i)
      t[i] = i % 7 == 3 ? 255 : i % 5 == 2 ? 0.25 : static_cast<double>(i % 2);
    for (int64_t k = 0; k < c.weights.elements(); ++k)
      p.push_back(0.5 + 1.75 * static_cast<double>(k));
    const auto f = [&](const Numbers &at) {
      double sum = 0, counted = 0;
      for (size_t i = 0; i < t.size(); ++i) {
        if (t[i] == 255)
          continue;
        const double weight = p[i / static_cast<size_t>(c.inner) % p.size()];
        sum += weight * t[i] * std::log1p(std::exp(-at[i])) + (1 - t[i]) * std::log1p(std::exp(at[i]));
        counted += 1;
      }
      return sum / counted;
    };
    Harness h;
    const Loss loss("loss", LossKind::BceWithLogits, c.x, 255);
    const Tensor tx = h.tensor(c.x, Layout::RowMajor, x), tt = h.tensor(c.x, Layout::RowMajor, t), value = h.tensor({}),
                 dx = h.tensor(c.x), weights = h.tensor(c.weights, Layout::RowMajor, p);
    loss.forward(h.session.compute, tx, tt, value, h.workspace(loss), weights);
    EXPECT_NEAR(h.read(value)[0], f(x), 1e-6 * f(x));
    loss.backward(h.session.compute, tx, tt, dx, h.workspace(loss), weights);
    const double want = slope(f, x, d);
    EXPECT_NEAR(dot(h.read(dx), d), want, 1e-4 * std::fabs(want) + 1e-6);
  }
}

TEST(Softmax, ForwardAndBackward) {
  for (bool logarithm : {false, true})
    for (int axis : {0, 1, -1}) {
      const Shape shape{6, 9, 5};
      const int at = axis < 0 ? axis + 3 : axis;
      int64_t inner = 1;
      for (int i = at + 1; i < 3; ++i)
        inner *= shape[i];
      auto f = [&](const Numbers &x) {
        Numbers y(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const auto step = static_cast<size_t>(inner), length = static_cast<size_t>(shape[at]);
          const size_t base = i / (step * length) * step * length + i % step;
          double sum = 0;
          for (size_t k = 0; k < length; ++k)
            sum += std::exp(x[base + k * step]);
          y[i] = logarithm ? x[i] - std::log(sum) : std::exp(x[i]) / sum;
        }
        return y;
      };
      const Numbers x = randomNumbers(shape.elements(), 1, 3), dy = randomNumbers(shape.elements(), 2),
                    d = randomNumbers(shape.elements(), 3);
      Harness h;
      Softmax softmax("softmax", shape, axis, logarithm);
      const Tensor y = h.tensor(shape), dx = h.tensor(shape);
      softmax.forward(h.session.compute, h.tensor(shape, Layout::RowMajor, x), y);
      EXPECT_CLOSE(h.read(y), f(x), 1e-6);
      softmax.backward(h.session.compute, h.tensor(shape, Layout::RowMajor, dy), y, dx);
      const double want = slope([&](const Numbers &v) { return dot(f(v), dy); }, x, d);
      EXPECT_NEAR(dot(h.read(dx), d), want, 1e-4 * std::fabs(want) + 1e-5);
    }
}

} // namespace
} // namespace sluice
