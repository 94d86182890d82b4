// SPDX-License-Identifier: Apache-2.0
// Optimizer updates: three steps of PyTorch's formulas in double, as torch.optim documents them.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

class Update : public testing::Test {
protected:
  static constexpr size_t count = 100003;
  Update() {
    StepState &state = h.session.state;
    state.learningRate = 0.1f, state.momentum = 0.9f, state.weightDecay = 0.01f;
  }
  Harness h;
  Numbers w = randomNumbers(count, 1), m = Numbers(count), v = Numbers(count);
  const Tensor tw = h.tensor({count}, Layout::RowMajor, w), tdw = h.tensor({count}), tm = h.tensor({count}),
               tv = h.tensor({count});
};

TEST_F(Update, Sgd) {
  for (int step = 1; step <= 3; ++step) {
    const Numbers g = randomNumbers(count, static_cast<unsigned>(10 + step));
    for (size_t i = 0; i < count; ++i) {
      const double d = g[i] + 0.01 * w[i];
      m[i] = step == 1 ? d : 0.9 * m[i] + d;
      w[i] -= 0.1 * m[i];
    }
    h.write(tdw, g);
    h.session.state.step = step;
    updateSgd(h.session.compute, tw, tdw, tm, "w");
  }
  EXPECT_CLOSE(h.read(tw), w, 1e-6);
  EXPECT_CLOSE(h.read(tm), m, 1e-6);
}

TEST_F(Update, SgdWithoutMomentum) {
  h.session.state.momentum = 0;
  h.session.state.step = 1;
  const Numbers g = randomNumbers(count, 11);
  for (size_t i = 0; i < count; ++i)
    w[i] -= 0.1 * (g[i] + 0.01 * w[i]);
  h.write(tdw, g);
  updateSgd(h.session.compute, tw, tdw, none, "w");
  EXPECT_CLOSE(h.read(tw), w, 1e-6);
}

TEST_F(Update, AdamAndAdamW) {
  for (bool decoupled : {false, true}) {
    w = randomNumbers(count, 1);
    m = v = Numbers(count);
    h.write(tw, w), h.write(tm, m), h.write(tv, v);
    for (int step = 1; step <= 3; ++step) {
      const Numbers gradient = randomNumbers(count, static_cast<unsigned>(10 + step));
      for (size_t i = 0; i < count; ++i) {
        const double g = gradient[i] + (decoupled ? 0 : 0.01 * w[i]);
        if (decoupled)
          w[i] -= 0.1 * 0.01 * w[i];
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        w[i] -=
            0.1 / (1 - std::pow(0.9, step)) * m[i] / (std::sqrt(v[i]) / std::sqrt(1 - std::pow(0.999, step)) + 1e-8);
      }
      h.write(tdw, gradient);
      h.session.state.step = step;
      updateAdam(h.session.compute, tw, tdw, tm, tv, decoupled ? WeightDecay::Decoupled : WeightDecay::Coupled, "w");
    }
    EXPECT_CLOSE(h.read(tw), w, 1e-5);
    EXPECT_CLOSE(h.read(tm), m, 1e-5);
    EXPECT_CLOSE(h.read(tv), v, 1e-4);
  }
}

TEST_F(Update, SizesMustAgree) {
  EXPECT_THROW(updateSgd(h.session.compute, tw, h.tensor({7}), tm, "w"), std::invalid_argument);
}

} // namespace
} // namespace sluice
