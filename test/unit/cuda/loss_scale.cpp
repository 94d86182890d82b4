// SPDX-License-Identifier: Apache-2.0
// Updates by gradients of a scaled loss: those that the true gradients make, nothing at all where one is not finite,
// and what becomes of the scale.
#include "runtime/LossScale.h"
#include "test/unit/runtime/Harness.h"

#include <functional>
#include <limits>

namespace sluice {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class LossScales : public testing::Test {
protected:
  static constexpr int64_t count = 10007;

  LossScales() {
    StepState &state = h.session.state;
    state.learningRate = 0.1f, state.momentum = 0.9f, state.weightDecay = 0.01f, state.clipValue = 2;
    state.averageDecay = 0.9f;
  }
  Tensor vector(unsigned seed) { return h.tensor({count}, Layout::RowMajor, randomNumbers(count, seed)); }
  Tensor scalar(double value) { return h.tensor({}, Layout::RowMajor, {value}); }
  double valueOf(const Tensor &tensor) { return h.read(tensor)[0]; }

  /// Another step begins.
  void next() { ++h.session.state.step; }
  void check(TensorList gradients) { checkGradients(stream, scale, good, skipped, gradients, "loss"); }

  Harness h;
  Stream &stream = h.session.compute;
  const Tensor scale = scalar(1024), good = scalar(0), skipped = scalar(0);
};

/// What a step changes, by each optimizer.
struct Tensors {
  Tensor w, dw, first, second, average, norm;
};
using Step = std::function<void(Stream &, const Tensors &)>;
const std::pair<const char *, Step> rules[] = {
    {"sgd", [](Stream &s, const Tensors &t) { updateSgd(s, {}, t.w, t.dw, t.norm, t.first, "w"); }},
    {"adamw",
     [](Stream &s, const Tensors &t) {
       updateAdam(s, {}, t.w, t.dw, t.norm, t.first, t.second, WeightDecay::Decoupled, "w");
     }},
    {"adagrad", [](Stream &s, const Tensors &t) { updateAdagrad(s, {}, t.w, t.dw, t.norm, t.first, "w"); }},
    {"rmsprop", [](Stream &s, const Tensors &t) { updateRmsProp(s, {}, t.w, t.dw, t.norm, t.first, t.second, "w"); }},
    {"lion", [](Stream &s, const Tensors &t) { updateLion(s, {}, t.w, t.dw, t.norm, t.first, "w"); }},
};

/// Three steps by gradients `factor` times as large, of which the second is skipped where there is a scale.
std::vector<Numbers> threeSteps(const Step &update, double factor) {
  Harness h;
  Stream &stream = h.session.compute;
  StepState &state = h.session.state;
  state.learningRate = 0.1f, state.momentum = 0.9f, state.weightDecay = 0.01f, state.clipValue = 2;
  state.clipNorm = 50, state.averageDecay = 0.9f, state.rateDecay = 0.1f;
  const int64_t count = 10007;
  auto vector = [&](unsigned seed) { return h.tensor({count}, Layout::RowMajor, randomNumbers(count, seed)); };
  auto scalar = [&](double value) { return h.tensor({}, Layout::RowMajor, {value}); };
  const Tensors t{vector(1), vector(2), h.tensor({count}), h.tensor({count}), vector(3), scalar(0)};
  h.write(t.first, Numbers(count)), h.write(t.second, Numbers(count));
  const Tensor scale = scalar(factor), good = scalar(0), skipped = scalar(0);
  const GradientNorm norm("norm", {count});
  const Tensor space = h.workspace(norm);
  for (int step = 1; step <= 3; ++step) {
    Numbers gradient = randomNumbers(count, static_cast<unsigned>(step == 2 ? 3 : 10 + step));
    if (factor == 1 && step == 2)
      continue;
    state.step = factor == 1 && step == 3 ? 2 : step;
    for (double &g : gradient)
      g *= step == 3 && factor != 1 ? factor / 2 : factor; // by then it has been halved
    if (step == 2)
      gradient[9] = infinity;
    h.write(t.dw, gradient);
    if (factor != 1)
      checkGradients(stream, scale, good, skipped, {t.dw}, "loss");
    norm.run(stream, t.dw, none, t.norm, space);
    update(stream, t);
    averageWeights(stream, t.w, t.average, "w");
  }
  return {h.read(t.w), h.read(t.first), h.read(t.second), h.read(t.average), h.read(t.norm)};
}

TEST(LossScale, UpdatesAreThoseOfTheTrueGradients) {
  for (const auto &[name, update] : rules) {
    SCOPED_TRACE(name);
    const std::vector<Numbers> want = threeSteps(update, 1), got = threeSteps(update, 65536);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_CLOSE(got[i], want[i], 1e-6); // a GPU's powers of beta may be others than the CPU's
  }
}

TEST(LossScale, LambSkipsAsTheOthersDo) {
  const Lamb lamb("w", {10007});
  const Step update = [&](Stream &s, const Tensors &t) {
    static Tensor space = scratch(48 << 20, static_cast<int64_t>(lamb.workspaceBytes()));
    lamb.update(s, {}, t.w, t.dw, t.norm, t.first, t.second, space);
  };
  const std::vector<Numbers> want = threeSteps(update, 1), got = threeSteps(update, 65536);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_CLOSE(got[i], want[i], 1e-6);
}

TEST_F(LossScales, OneBadElementAnywhereSkipsTheStep) {
  const Tensor small = h.tensor({1}, Layout::RowMajor, {1});
  std::vector<Tensor> gradients(100, vector(1)); // more than one launch takes
  gradients.push_back(small);
  const TensorList list(gradients.data(), gradients.size());
  double now = 1024, skips = 0;
  for (double bad : {infinity, -infinity, std::nan("")})
    for (bool last : {false, true}) {
      Numbers values = randomNumbers(count, 1);
      (last ? values.back() : values.front()) = bad;
      h.write(gradients[0], values);
      next();
      check(list);
      EXPECT_EQ(valueOf(scale), now /= 2);
      EXPECT_EQ(valueOf(skipped), ++skips);
    }
  h.write(gradients[0], randomNumbers(count, 1));
  h.write(small, {infinity});
  next();
  check(list);
  EXPECT_EQ(valueOf(scale), now /= 2);
  h.write(small, {3.4e38});
  next();
  check(list);
  EXPECT_EQ(valueOf(scale), now);
  EXPECT_EQ(valueOf(good), 1);
  EXPECT_EQ(valueOf(skipped), 7);
}

TEST_F(LossScales, DoublesAfterGoodStepsInARow) {
  const Tensor dw = vector(1);
  h.write(good, {goodStepsToGrow - 2});
  next();
  check({dw});
  EXPECT_EQ(valueOf(scale), 1024);
  next();
  check({dw});
  EXPECT_EQ(valueOf(scale), 2048);
  EXPECT_EQ(valueOf(good), 0);
  for (double end : {double{mostLossScale}, double{leastLossScale}}) {
    const bool top = end > 1;
    h.write(scale, {end}), h.write(good, {goodStepsToGrow - 1});
    h.write(dw, Numbers(count, top ? 1 : infinity));
    next();
    check({dw});
    EXPECT_EQ(valueOf(scale), end);
  }
}

TEST_F(LossScales, StaysWhereItIsFixed) {
  const Tensor dw = h.tensor({2}, Layout::RowMajor, {1, infinity});
  h.session.state.scaleIsFixed = 1;
  next();
  check({dw});
  EXPECT_EQ(valueOf(scale), 1024);
  EXPECT_EQ(valueOf(skipped), 1);
  h.write(dw, {1, 1}), h.write(good, {goodStepsToGrow - 1});
  next();
  check({dw});
  EXPECT_EQ(valueOf(scale), 1024);
}

TEST_F(LossScales, OnlyTheLastBatchOfAStepCounts) {
  const Tensor dw = h.tensor({2}, Layout::RowMajor, {1, infinity});
  h.session.state.batches = 2;
  next();
  check({dw});
  EXPECT_EQ(valueOf(skipped), 0);
  h.session.state.batch = 1;
  check({dw});
  EXPECT_EQ(valueOf(skipped), 1);
}

TEST_F(LossScales, GradientsAreShownUnscaled) {
  const Tensor dw = h.tensor({3}, Layout::RowMajor, {1024, -512, infinity});
  std::vector<float> shown;
  h.session.onGradient = [&](const char *, const Tensor &, int64_t, const void *data) {
    shown.assign(static_cast<const float *>(data), static_cast<const float *>(data) + 3);
  };
  next();
  check({dw});
  h.session.captureGradient("w", dw);
  EXPECT_EQ(shown, (std::vector<float>{1, -0.5f, static_cast<float>(infinity)}));
}

} // namespace
} // namespace sluice
