// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, in PyTorch's order of operations. Hyperparameters are taken when the update is enqueued.
#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"

#include <cmath>
#include <string>

namespace sluice {

namespace {

constexpr int64_t grain = 1 << 15;

void checkSize(const char *node, const Tensor &w, const Tensor &other) {
  if (other.present && other.shape.elements() != w.shape.elements())
    throw std::invalid_argument(std::string("update of '") + node + "': " + std::to_string(w.shape.elements()) +
                                " weights and " + std::to_string(other.shape.elements()) +
                                " elements of gradient or state");
}

void sgdRange(float *__restrict w, const float *__restrict dw, float *__restrict m, int64_t count,
              const StepState &state) {
  const float decay = state.weightDecay, momentum = state.momentum, rate = state.learningRate;
  if (!m || momentum == 0) {
    for (int64_t i = 0; i < count; ++i)
      w[i] -= rate * (dw[i] + decay * w[i]);
    return;
  }
  if (state.step == 1) // the first gradient enters whole, as in PyTorch
    for (int64_t i = 0; i < count; ++i)
      m[i] = dw[i] + decay * w[i];
  else
    for (int64_t i = 0; i < count; ++i)
      m[i] = momentum * m[i] + (dw[i] + decay * w[i]);
  for (int64_t i = 0; i < count; ++i)
    w[i] -= rate * m[i];
}

struct AdamFactors {
  float decay, shrink, beta1, beta2, stepSize, correction2, epsilon;

  AdamFactors(const StepState &state, bool decoupled) {
    const auto step = static_cast<double>(state.step);
    decay = decoupled ? 0 : state.weightDecay;
    shrink = decoupled ? 1 - state.learningRate * state.weightDecay : 1;
    beta1 = state.beta1, beta2 = state.beta2, epsilon = state.epsilon;
    stepSize = static_cast<float>(state.learningRate / (1 - std::pow(static_cast<double>(beta1), step)));
    correction2 = static_cast<float>(std::sqrt(1 - std::pow(static_cast<double>(beta2), step)));
  }
};

void adamRange(float *__restrict w, const float *__restrict dw, float *__restrict m, float *__restrict v, int64_t count,
               const AdamFactors &f) {
  for (int64_t i = 0; i < count; ++i) {
    const float shrunk = w[i] * f.shrink;
    const float gradient = dw[i] + f.decay * w[i];
    m[i] += (1 - f.beta1) * (gradient - m[i]);
    v[i] = f.beta2 * v[i] + (1 - f.beta2) * gradient * gradient;
    w[i] = shrunk - f.stepSize * (m[i] / (std::sqrt(v[i]) / f.correction2 + f.epsilon));
  }
}

} // namespace

void updateSgd(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &momentum, const char *node) {
  checkSize(node, w, dw);
  checkSize(node, w, momentum);
  float *pw = stream.data<float>(w), *pm = stream.data<float>(momentum);
  const float *pdw = stream.data<float>(dw);
  const int64_t count = w.shape.elements();
  stream.launch(node, "update_sgd", [pw, pdw, pm, count, state = stream.session.state] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      sgdRange(pw + begin, pdw + begin, pm ? pm + begin : nullptr, end - begin, state);
    });
  });
}

void updateAdam(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &expAvg, const Tensor &expAvgSq,
                bool decoupled, const char *node) {
  for (const Tensor *other : {&dw, &expAvg, &expAvgSq})
    checkSize(node, w, *other);
  float *pw = stream.data<float>(w), *pm = stream.data<float>(expAvg), *pv = stream.data<float>(expAvgSq);
  const float *pdw = stream.data<float>(dw);
  const int64_t count = w.shape.elements();
  const AdamFactors factors(stream.session.state, decoupled);
  stream.launch(node, decoupled ? "update_adamw" : "update_adam", [pw, pdw, pm, pv, count, factors] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      adamRange(pw + begin, pdw + begin, pm + begin, pv + begin, end - begin, factors);
    });
  });
}

} // namespace sluice
