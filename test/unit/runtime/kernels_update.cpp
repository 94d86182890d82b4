// SPDX-License-Identifier: Apache-2.0
// Optimizer updates: steps of the published formulas in double, as torch.optim documents them, and what gradients go
// through before: sums over batches, clipping, groups.
#include "test/unit/runtime/Harness.h"

#include <functional>

namespace sluice {
namespace {

class Update : public testing::Test {
protected:
  static constexpr size_t count = 100003;
  static constexpr int steps = 4;
  Update() {
    StepState &state = h.session.state;
    state.learningRate = 0.1f, state.momentum = 0.9f, state.weightDecay = 0.01f;
  }

  /// The reference of one element: weight, gradient, states, step.
  using Rule = std::function<void(double &w, double g, double &m, double &v, int step)>;

  /// `update` and `rule` do the same to the same numbers, `steps` times.
  void expectSteps(const std::function<void()> &update, const Rule &rule, double tolerance = 1e-5) {
    w = randomNumbers(count, 1);
    m = v = Numbers(count);
    h.write(tw, w), h.write(tm, m), h.write(tv, v);
    for (int step = 1; step <= steps; ++step) {
      const Numbers gradient = randomNumbers(count, static_cast<unsigned>(10 + step));
      for (size_t i = 0; i < count; ++i)
        rule(w[i], gradient[i], m[i], v[i], step);
      h.write(tdw, gradient);
      h.session.state.step = step;
      update();
    }
    EXPECT_CLOSE(h.read(tw), w, tolerance);
    EXPECT_CLOSE(h.read(tm), m, tolerance);
    EXPECT_CLOSE(h.read(tv), v, 10 * tolerance);
  }

  Harness h;
  Stream &stream = h.session.compute;
  Numbers w = randomNumbers(count, 1), m = Numbers(count), v = Numbers(count);
  const Tensor tw = h.tensor({count}, Layout::RowMajor, w), tdw = h.tensor({count}),
               tm = h.tensor({count}, Layout::RowMajor, m), tv = h.tensor({count}, Layout::RowMajor, v);
};

TEST_F(Update, Sgd) {
  for (bool nesterov : {false, true}) {
    h.session.state.nesterov = nesterov;
    expectSteps([&] { updateSgd(stream, {}, tw, tdw, none, tm, "w"); },
                [&](double &w, double g, double &m, double &, int step) {
                  const double d = g + 0.01 * w;
                  m = step == 1 ? d : 0.9 * m + d;
                  w -= 0.1 * (nesterov ? d + 0.9 * m : m);
                },
                1e-6);
  }
}

TEST_F(Update, SgdWithoutMomentum) {
  const auto plain = [](double &w, double g, double &, double &, int) { w -= 0.1 * (g + 0.01 * w); };
  expectSteps([&] { updateSgd(stream, {}, tw, tdw, none, none, "w"); }, plain, 1e-6);
  h.session.state.momentum = 0;
  expectSteps([&] { updateSgd(stream, {}, tw, tdw, none, tm, "w"); }, plain, 1e-6);
}

TEST_F(Update, AdamAndAdamW) {
  for (bool decoupled : {false, true})
    expectSteps(
        [&] {
          updateAdam(stream, {}, tw, tdw, none, tm, tv, decoupled ? WeightDecay::Decoupled : WeightDecay::Coupled, "w");
        },
        [&](double &w, double gradient, double &m, double &v, int step) {
          const double g = gradient + (decoupled ? 0 : 0.01 * w);
          if (decoupled)
            w -= 0.1 * 0.01 * w;
          m = 0.9 * m + 0.1 * g;
          v = 0.999 * v + 0.001 * g * g;
          w -= 0.1 / (1 - std::pow(0.9, step)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, step)) + 1e-8);
        });
}

TEST_F(Update, Adagrad) {
  h.session.state.rateDecay = 0.5f, h.session.state.epsilon = 1e-3f;
  expectSteps([&] { updateAdagrad(stream, {}, tw, tdw, none, tm, "w"); },
              [](double &w, double g, double &m, double &, int step) {
                const double d = g + 0.01 * w;
                m += d * d;
                w -= 0.1 / (1 + (step - 1) * 0.5) * d / (std::sqrt(m) + 1e-3);
              });
}

TEST_F(Update, RmsProp) {
  h.session.state.alpha = 0.9f, h.session.state.epsilon = 1e-3f;
  for (double momentum : {0.0, 0.5}) {
    h.session.state.momentum = static_cast<float>(momentum);
    expectSteps([&] { updateRmsProp(stream, {}, tw, tdw, none, tm, tv, "w"); },
                [&](double &w, double g, double &m, double &v, int) {
                  const double d = g + 0.01 * w;
                  m = 0.9 * m + 0.1 * d * d;
                  const double step = d / (std::sqrt(m) + 1e-3);
                  v = momentum == 0 ? 0 : momentum * v + step;
                  w -= 0.1 * (momentum == 0 ? step : v);
                });
  }
}

TEST_F(Update, Lion) {
  h.session.state.beta2 = 0.99f;
  expectSteps([&] { updateLion(stream, {}, tw, tdw, none, tm, "w"); },
              [](double &w, double g, double &m, double &, int) {
                const double blend = 0.9 * m + 0.1 * g;
                w -= 0.1 * ((blend > 0) - (blend < 0) + 0.01 * w);
                m = 0.99 * m + 0.01 * g;
              });
}

TEST_F(Update, LionLeavesWhatHasNoGradient) {
  h.session.state.weightDecay = 0, h.session.state.step = 1;
  h.write(tdw, Numbers(count));
  updateLion(stream, {}, tw, tdw, none, tm, "w");
  EXPECT_CLOSE(h.read(tw), w, 1e-7);
}

/// By NVIDIA's apex: without decay there is no ratio.
TEST_F(Update, Lamb) {
  const Lamb lamb("w", {count});
  const Tensor scratch = h.workspace(lamb);
  for (double decay : {0.0, 0.01}) {
    h.session.state.weightDecay = static_cast<float>(decay);
    w = randomNumbers(count, 1);
    m = v = Numbers(count);
    h.write(tw, w), h.write(tm, m), h.write(tv, v);
    for (int step = 1; step <= steps; ++step) {
      const Numbers g = randomNumbers(count, static_cast<unsigned>(10 + step));
      Numbers u(count);
      double weights = 0, directions = 0;
      for (size_t i = 0; i < count; ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        u[i] = m[i] / (1 - std::pow(0.9, step)) / (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-8) + decay * w[i];
        weights += w[i] * w[i], directions += u[i] * u[i];
      }
      const double ratio = decay == 0 ? 1 : std::sqrt(weights / directions);
      for (size_t i = 0; i < count; ++i)
        w[i] -= 0.1 * ratio * u[i];
      h.write(tdw, g);
      h.session.state.step = step;
      lamb.update(stream, {}, tw, tdw, none, tm, tv, scratch);
    }
    EXPECT_CLOSE(h.read(tw), w, 1e-5);
    EXPECT_CLOSE(h.read(tv), v, 1e-4);
  }
}

TEST_F(Update, LambLeavesZerosInPlace) {
  const Lamb lamb("w", {count});
  h.write(tw, Numbers(count)), h.write(tdw, Numbers(count));
  h.session.state.step = 1;
  lamb.update(stream, {}, tw, tdw, none, tm, tv, h.workspace(lamb));
  EXPECT_CLOSE(h.read(tw), Numbers(count), 0.0);
}

/// A norm over several tensors, as torch.nn.utils.clip_grad_norm_ clips by it; elements are clipped first.
TEST_F(Update, ClipsByValueAndByNorm) {
  StepState &state = h.session.state;
  state.momentum = state.weightDecay = 0, state.step = 1, state.clipValue = 0.5f;
  const Numbers g = randomNumbers(count, 11), other = randomNumbers(77, 12);
  const Tensor tother = h.tensor({77}, Layout::RowMajor, other), one = h.tensor({1}), both = h.tensor({1});
  const GradientNorm ofOther("b", {77}), ofAll("w", {count});
  h.write(tdw, g);
  double sum = 0;
  const auto clipped = [](double x) { return std::clamp(x, -0.5, 0.5); };
  for (const Numbers *list : {&g, &other})
    for (double x : *list)
      sum += clipped(x) * clipped(x);
  for (double limit : {0.3 * std::sqrt(sum), 3 * std::sqrt(sum)}) {
    state.clipNorm = static_cast<float>(limit);
    ofOther.run(stream, tother, none, one, h.workspace(ofOther));
    ofAll.run(stream, tdw, one, both, h.workspace(ofAll));
    EXPECT_NEAR(h.read(both)[0], std::sqrt(sum), 1e-6 * std::sqrt(sum));
    h.write(tw, w);
    updateSgd(stream, {}, tw, tdw, both, none, "w");
    const double factor = std::min(1.0, limit / (std::sqrt(sum) + 1e-6));
    Numbers wanted(count);
    for (size_t i = 0; i < count; ++i)
      wanted[i] = w[i] - 0.1 * factor * clipped(g[i]);
    EXPECT_CLOSE(h.read(tw), wanted, 1e-6);
  }
}

TEST_F(Update, NormsThatAreNotFiniteAreNotHidden) {
  h.session.state.clipNorm = 1, h.session.state.step = 1;
  h.write(tdw, Numbers(count, std::nan("")));
  const GradientNorm norm("w", {count});
  const Tensor all = h.tensor({1});
  norm.run(stream, tdw, none, all, h.workspace(norm));
  updateSgd(stream, {}, tw, tdw, all, tm, "w");
  EXPECT_TRUE(std::isnan(h.read(all)[0]));
  EXPECT_TRUE(std::isnan(h.read(tw)[0]));
}

/// The mean of three batches makes one step, each with its share of what counts: 1, 2 and none at all; averages,
/// updates and norms wait for the last batch.
TEST_F(Update, SumsOverTheBatchesOfAStep) {
  StepState &state = h.session.state;
  state.batches = 3, state.step = 1, state.averageDecay = 0.75f, state.momentum = 0, state.weightDecay = 0;
  const GradientNorm norm("w", {count});
  const Tensor tsum = h.tensor({count}), average = h.tensor({count}, Layout::RowMajor, Numbers(count, 7.0)),
               total = h.tensor({1}, Layout::RowMajor, Numbers(1, 5.0)), scratch = h.workspace(norm);
  Numbers wanted = w, wantedAverage(count);
  for (state.step = 1; state.step <= 2; ++state.step) {
    Numbers mean(count);
    double squares = 0;
    const double weights[] = {1, 2, state.step == 1 ? 3.0 : 0};
    double sum = 0, all = weights[0] + weights[1] + weights[2];
    for (state.batch = 0; state.batch < 3; ++state.batch) {
      const double weight = weights[state.batch];
      const Numbers g = randomNumbers(count, static_cast<unsigned>(20 + state.draw()));
      sum += weight;
      state.batchShare = static_cast<float>(weight / sum);
      for (size_t i = 0; i < count; ++i)
        mean[i] += g[i] * weight / all;
      h.write(tdw, g);
      accumulateGradient(stream, tdw, tsum, "w");
      norm.run(stream, tsum, none, total, scratch);
      updateSgd(stream, {}, tw, tsum, none, none, "w");
      averageWeights(stream, tw, average, "w");
      if (state.batch < 2) {
        EXPECT_CLOSE(h.read(tw), wanted, 1e-6);
      }
    }
    for (size_t i = 0; i < count; ++i) {
      wanted[i] -= 0.1 * mean[i];
      squares += mean[i] * mean[i];
      wantedAverage[i] = state.step == 1 ? wanted[i] : 0.75 * wantedAverage[i] + 0.25 * wanted[i];
    }
    state.batch = 0;
    EXPECT_CLOSE(h.read(tw), wanted, 1e-6);
    EXPECT_CLOSE(h.read(average), wantedAverage, 1e-6);
    EXPECT_NEAR(h.read(total)[0], std::sqrt(squares), 1e-4);
  }
}

TEST_F(Update, GroupsHaveTheirOwnRateAndDecay) {
  h.session.groups[0] = {0.5f, 0};
  expectSteps([&] { updateSgd(stream, ParameterId{0}, tw, tdw, none, tm, "w"); },
              [](double &w, double g, double &m, double &, int step) {
                m = step == 1 ? g : 0.9 * m + g;
                w -= 0.05 * m;
              },
              1e-6);
  h.session.groups[0] = {2, 0.5f};
  expectSteps([&] { updateAdam(stream, ParameterId{0}, tw, tdw, none, tm, tv, WeightDecay::Decoupled, "w"); },
              [](double &w, double g, double &m, double &v, int step) {
                w -= 0.2 * 0.5 * w;
                m = 0.9 * m + 0.1 * g;
                v = 0.999 * v + 0.001 * g * g;
                w -= 0.2 / (1 - std::pow(0.9, step)) * m / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
              });
}

/// Tensors of an update, on the device or in host memory, with the stream that works there.
struct Place {
  Stream &stream;
  Tensor w, dw, m, v, average, norm;
};

/// Threads of the host give the bits of the device, whatever the rule, group, clipping and batch.
TEST_F(Update, AtHomeTheBitsAreTheSame) {
  constexpr int64_t few = 20011;
  StepState &state = h.session.state;
  state.batches = 2, state.averageDecay = 0.75f, state.clipValue = 0.8f, state.clipNorm = 3;
  h.session.groups[0] = {0.5f, 0.02f};
  const std::function<void(const Place &)> rules[] = {
      [](const Place &p) { updateSgd(p.stream, ParameterId{0}, p.w, p.dw, p.norm, p.m, "w"); },
      [](const Place &p) { updateSgd(p.stream, {}, p.w, p.dw, none, none, "w"); },
      [](const Place &p) { updateAdam(p.stream, {}, p.w, p.dw, p.norm, p.m, p.v, WeightDecay::Decoupled, "w"); },
      [](const Place &p) { updateAdam(p.stream, {}, p.w, p.dw, none, p.m, p.v, WeightDecay::Coupled, "w"); },
      [](const Place &p) { updateAdagrad(p.stream, {}, p.w, p.dw, p.norm, p.m, "w"); },
      [](const Place &p) { updateRmsProp(p.stream, {}, p.w, p.dw, p.norm, p.m, p.v, "w"); },
      [](const Place &p) { updateLion(p.stream, ParameterId{0}, p.w, p.dw, p.norm, p.m, "w"); }};
  Place places[] = {{h.session.compute, {}, {}, {}, {}, {}, {}}, {h.session.home, {}, {}, {}, {}, {}, {}}};
  size_t next = 0;
  for (Tensor Place::*tensor : {&Place::w, &Place::dw, &Place::m, &Place::v, &Place::average, &Place::norm}) {
    const Shape shape{tensor == &Place::norm ? 1 : few};
    places[0].*tensor = h.tensor(shape);
    places[1].*tensor = host(next, shape);
    next += (places[1].*tensor).bytes() + 256;
  }
  for (const auto &rule : rules) {
    for (const Place &place : places) {
      h.write(place.w, randomNumbers(few, 1)), h.write(place.average, Numbers(few, 7.0));
      h.write(place.m, Numbers(few)), h.write(place.v, Numbers(few)), h.write(place.norm, {5.0});
      for (state.step = 1; state.step <= 3; ++state.step)
        for (state.batch = 0; state.batch < 2; ++state.batch) {
          h.write(place.dw, randomNumbers(few, static_cast<unsigned>(10 + state.draw())));
          rule(place);
          averageWeights(place.stream, place.w, place.average, "w");
        }
      state.batch = 0;
    }
    for (Tensor Place::*tensor : {&Place::w, &Place::m, &Place::v, &Place::average})
      EXPECT_EQ(h.read(places[0].*tensor), h.read(places[1].*tensor)) << "rule " << &rule - rules;
    EXPECT_NE(h.read(places[1].w), randomNumbers(few, 1));
  }
}

TEST_F(Update, SizesMustAgree) {
  EXPECT_THROW(updateSgd(stream, {}, tw, h.tensor({7}), none, tm, "w"), std::invalid_argument);
  EXPECT_THROW(updateRmsProp(stream, {}, tw, tdw, none, tm, h.tensor({7}), "w"), std::invalid_argument);
  EXPECT_THROW(averageWeights(stream, tw, h.tensor({7}), "w"), std::invalid_argument);
}

} // namespace
} // namespace sluice
