// SPDX-License-Identifier: Apache-2.0
// Optimizer updates of one element, in PyTorch's order of operations, for both targets.
#pragma once

#include "runtime/LossScale.h"
#include "runtime/Random.h"
#include "runtime/Ranks.h"
#include "runtime/Update.h"

#include <cmath>

namespace sluice {

/// The hyperparameters of a step with what follows from them, for all rules.
struct UpdateFactors {
  float rate, decay, shrink = 1, momentum, beta1, beta2, epsilon, alpha, rateDecay;
  float stepSize;      ///< rate / (1 - beta1^step)
  float decliningRate; ///< adagrad: rate / (1 + (step - 1) rateDecay)
  float correction1;   ///< 1 - beta1^step
  float correction2;   ///< sqrt(1 - beta2^step)
  float clipValue, clipNorm, share, averageDecay;
  float unscale = 1; ///< what gradients are multiplied by first; the check of a scaled loss's gradients says it
  int64_t step;      ///< 1 in the first one that changes these parameters
  bool first, nesterov, firstBatch, lastBatch, scaleIsFixed;
  bool skips = false; ///< the step changes nothing, as that check says

  explicit UpdateFactors(const StepState &state)
      : rate(state.learningRate), decay(state.weightDecay), momentum(state.momentum), beta1(state.beta1),
        beta2(state.beta2), epsilon(state.epsilon), alpha(state.alpha), rateDecay(state.rateDecay),
        clipValue(state.clipValue), clipNorm(state.clipNorm), share(state.batchShare), averageDecay(state.averageDecay),
        nesterov(state.nesterov != 0), firstBatch(state.batch == 0), lastBatch(state.lastBatch()),
        scaleIsFixed(state.scaleIsFixed != 0) {
    countSteps(state.update());
  }

  /// What follows from the number of the step.
  SLUICE_KERNEL void countSteps(int64_t number) {
    step = number;
    first = number == 1;
    const auto count = static_cast<double>(number), wide = static_cast<double>(rate);
    const double whole = 1 - pow(static_cast<double>(beta1), count);
    stepSize = static_cast<float>(wide / whole);
    correction1 = static_cast<float>(whole);
    correction2 = static_cast<float>(sqrt(1 - pow(static_cast<double>(beta2), count)));
    decliningRate = static_cast<float>(wide / (1 + (count - 1) * static_cast<double>(rateDecay)));
  }

  /// Whether updates and averages do anything.
  SLUICE_KERNEL bool changes() const { return lastBatch && !skips; }
  /// An element of a gradient as updates and norms take it, before the norm's factor. The host scales no loss: it calls
  /// clippedElement() alone.
  SLUICE_KERNEL float elementOf(float gradient) const;

  /// As a parameter of this group sees them. Decoupled decay shrinks the parameter before its update.
  SLUICE_KERNEL UpdateFactors of(const ParameterGroup &group, bool decoupled) const {
    UpdateFactors own = *this;
    own.rate *= group.rate, own.stepSize *= group.rate, own.decliningRate *= group.rate;
    if (group.weightDecay >= 0)
      own.decay = group.weightDecay;
    if (decoupled)
      own.shrink = 1 - own.rate * own.decay, own.decay = 0;
    return own;
  }

  /// What clipping by the norm of all gradients multiplies them by, as torch.nn.utils.clip_grad_norm_; `norm` may be
  /// null.
  SLUICE_KERNEL float clipFactor(const float *norm) const {
    if (!norm || clipNorm == HUGE_VALF)
      return 1;
    const float factor = clipNorm / (*norm + 1e-6f);
    return factor > 1 ? 1 : factor;
  }
};

/// NaN stays NaN.
SLUICE_KERNEL float clippedElement(float gradient, float limit) {
  return gradient > limit ? limit : gradient < -limit ? -limit : gradient;
}

SLUICE_KERNEL float UpdateFactors::elementOf(float gradient) const {
  return clippedElement(gradient * unscale, clipValue);
}

/// What becomes of a loss's scale after a step, see LossScale.h.
struct LossScale {
  float scale, goodSteps, skippedSteps;

  SLUICE_KERNEL void follow(bool skipped, bool isFixed) {
    const float grown = skipped ? scale / 2 : scale * 2;
    goodSteps = skipped ? 0 : goodSteps + 1;
    skippedSteps += skipped ? 1.0f : 0.0f;
    if (!skipped && goodSteps < goodStepsToGrow)
      return;
    goodSteps = 0;
    if (!isFixed && grown >= leastLossScale && grown <= mostLossScale)
      scale = grown;
  }
};

/// Rules: `g` is the clipped gradient, `s` and `t` are the elements of the states, of which a rule with less leaves the
/// last alone.
struct PlainSgd {
  SLUICE_KERNEL static void apply(float &w, float g, float &, float &, const UpdateFactors &f) {
    w -= f.rate * (g + f.decay * w);
  }
};

struct MomentumSgd {
  SLUICE_KERNEL static void apply(float &w, float g, float &s, float &, const UpdateFactors &f) {
    const float d = g + f.decay * w;
    s = f.first ? d : f.momentum * s + d; // the first gradient enters whole, as in PyTorch
    w -= f.rate * (f.nesterov ? d + f.momentum * s : s);
  }
};

struct AdamRule {
  SLUICE_KERNEL static void apply(float &w, float g, float &s, float &t, const UpdateFactors &f) {
    const float shrunk = w * f.shrink;
    const float d = g + f.decay * w;
    s += (1 - f.beta1) * (d - s);
    t = f.beta2 * t + (1 - f.beta2) * d * d;
    w = shrunk - f.stepSize * (s / (sqrtf(t) / f.correction2 + f.epsilon));
  }
};

struct AdagradRule {
  SLUICE_KERNEL static void apply(float &w, float g, float &s, float &, const UpdateFactors &f) {
    const float d = g + f.decay * w;
    s += d * d;
    w -= f.decliningRate * (d / (sqrtf(s) + f.epsilon));
  }
};

struct PlainRmsProp {
  SLUICE_KERNEL static void apply(float &w, float g, float &s, float &, const UpdateFactors &f) {
    const float d = g + f.decay * w;
    s = f.alpha * s + (1 - f.alpha) * d * d;
    w -= f.rate * (d / (sqrtf(s) + f.epsilon));
  }
};

struct MomentumRmsProp {
  SLUICE_KERNEL static void apply(float &w, float g, float &s, float &t, const UpdateFactors &f) {
    const float d = g + f.decay * w;
    s = f.alpha * s + (1 - f.alpha) * d * d;
    t = f.momentum * t + d / (sqrtf(s) + f.epsilon);
    w -= f.rate * t;
  }
};

struct LionRule {
  SLUICE_KERNEL static void apply(float &w, float g, float &s, float &, const UpdateFactors &f) {
    const float shrunk = w * f.shrink;
    const float blend = f.beta1 * s + (1 - f.beta1) * g;
    const float sign = blend > 0 ? 1.0f : blend < 0 ? -1.0f : blend; // zero and NaN stay
    s = f.beta2 * s + (1 - f.beta2) * g;
    w = shrunk - f.rate * sign;
  }
};

/// LAMB's moments, updated with the gradient.
SLUICE_KERNEL void lambMoments(float g, float &s, float &t, const UpdateFactors &f) {
  s += (1 - f.beta1) * (g - s);
  t = f.beta2 * t + (1 - f.beta2) * g * g;
}
/// Its direction, from updated moments.
SLUICE_KERNEL float lambDirection(float w, float s, float t, const UpdateFactors &f) {
  return s / f.correction1 / (sqrtf(t) / f.correction2 + f.epsilon) + f.decay * w;
}
/// |w| / |u| from sums of squares. Parameters without decay, usually norms and biases, are not scaled.
SLUICE_KERNEL float trustRatio(double w, double u, const UpdateFactors &f) {
  return f.decay == 0 || w == 0 || u == 0 ? 1 : static_cast<float>(sqrt(w / u));
}

SLUICE_KERNEL double squareOf(float x) { return static_cast<double>(x) * static_cast<double>(x); }

/// The average keeps this part of itself; none in the first step.
SLUICE_KERNEL float averagedElement(float w, float average, float keep) {
  return keep == 0 ? w : average + (1 - keep) * (w - average);
}
/// The mean of the step's batches with this one, whose share is that of its counted targets in those of all so far: the
/// gradient of one large batch, whatever each of them has. The first batch begins it.
SLUICE_KERNEL float joinedElement(float dw, float mean, const UpdateFactors &f) {
  return f.firstBatch ? dw : mean + (dw - mean) * f.share;
}

/// Throws std::invalid_argument naming `node` when a gradient or state that is there has not w's size.
void checkUpdate(const char *node, const Shape &w, std::initializer_list<Tensor> others);

/// What this process updates of w: all, or its share of it, for which states of that length will do. Of w that is a
/// share itself, with states as long as it, all that there is room for.
struct UpdatedShare : Share {
  int64_t gradient; ///< the first element of it in dw, which is as long as w or a share itself
};
/// Throws as checkUpdate().
UpdatedShare updatedShare(const Session &session, const char *node, const Shape &w, const Tensor &dw,
                          std::initializer_list<Tensor> states);

} // namespace sluice
