// SPDX-License-Identifier: Apache-2.0
// Optimizer updates of one element, in PyTorch's order of operations, for both targets.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Random.h"

#include <cmath>

namespace sluice {

/// d = dw + weightDecay*w; m = first step ? d : momentum*m + d; w -= learningRate*m.
struct SgdFactors {
  float decay, momentum, rate;
  bool first;

  explicit SgdFactors(const StepState &state)
      : decay(state.weightDecay), momentum(state.momentum), rate(state.learningRate), first(state.step == 1) {}
};

SLUICE_KERNEL void sgdElement(float &w, float dw, float &m, const SgdFactors &f) {
  const float d = dw + f.decay * w;
  m = f.first ? d : f.momentum * m + d; // the first gradient enters whole, as in PyTorch
  w -= f.rate * m;
}
SLUICE_KERNEL void sgdElement(float &w, float dw, const SgdFactors &f) { w -= f.rate * (dw + f.decay * w); }

/// adam adds weightDecay*w to the gradient; adamw (decoupled) shrinks w by learningRate*weightDecay first.
struct AdamFactors {
  float decay, shrink, beta1, beta2, stepSize, correction2, epsilon;

  AdamFactors(const StepState &state, bool decoupled) {
    const auto step = static_cast<double>(state.step);
    decay = decoupled ? 0 : state.weightDecay;
    shrink = decoupled ? 1 - state.learningRate * state.weightDecay : 1;
    beta1 = state.beta1, beta2 = state.beta2, epsilon = state.epsilon;
    stepSize =
        static_cast<float>(static_cast<double>(state.learningRate) / (1 - std::pow(static_cast<double>(beta1), step)));
    correction2 = static_cast<float>(std::sqrt(1 - std::pow(static_cast<double>(beta2), step)));
  }
};

SLUICE_KERNEL void adamElement(float &w, float dw, float &m, float &v, const AdamFactors &f) {
  const float shrunk = w * f.shrink;
  const float gradient = dw + f.decay * w;
  m += (1 - f.beta1) * (gradient - m);
  v = f.beta2 * v + (1 - f.beta2) * gradient * gradient;
  w = shrunk - f.stepSize * (m / (sqrtf(v) / f.correction2 + f.epsilon));
}

/// Throws std::invalid_argument naming `node` when a gradient or state that is there has not w's size.
void checkUpdate(const char *node, const Tensor &w, const Tensor &other);

} // namespace sluice
