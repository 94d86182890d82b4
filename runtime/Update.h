// SPDX-License-Identifier: Apache-2.0
// What happens to parameters at the end of a step: updates by optimizers, and what they wait for.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// Optimizer updates, enqueued on the stream; w and the states change in place. All tensors are F32 and have w's size
/// and layout, but for `norm`: the norm of all gradients, a scalar, where gradients are clipped by it, else absent. An
/// absent state is none: without `momentum` the rule is the plain one.
///
/// What the rules below call dw is, of each element, the gradient divided by the loss's scale (cuda, see LossScale.h),
/// then limited to [-clipValue, clipValue], then times min(1, clipNorm / (norm + 1e-6)). Decay comes after that: d = dw
/// + weightDecay*w where a rule says d.
///
/// Hyperparameters come from Session::state and from the group of the parameter that w is: on the host as they are when
/// the function is called, on cuda as the step finds them on the device, so that graphs see changes. In all but the
/// last batch of a step, and in a step that checkGradients() skips, nothing changes. A size that differs throws
/// std::invalid_argument.
///
/// `step` in the rules counts the steps that change parameters, from 1: skipped ones are none.
///
/// As torch.optim.SGD: m = step==1 ? d : momentum*m + d; w -= lr*m, with Nesterov lr*(d + momentum*m).
void updateSgd(Stream &, ParameterId, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &momentum,
               Node node);
/// As torch.optim.Adam (coupled) and AdamW (decoupled: w shrinks by lr*weightDecay first, d is dw).
enum class WeightDecay { Coupled, Decoupled };
void updateAdam(Stream &, ParameterId, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &expAvg,
                const Tensor &expAvgSq, WeightDecay, Node node);
/// As torch.optim.Adagrad: sum += d^2; w -= lr/(1 + (step-1)*rateDecay) * d / (sqrt(sum) + epsilon).
void updateAdagrad(Stream &, ParameterId, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &sum,
                   Node node);
/// As torch.optim.RMSprop: a = alpha*a + (1-alpha)*d^2; m = momentum*m + d / (sqrt(a) + epsilon); w -= lr*m.
void updateRmsProp(Stream &, ParameterId, const Tensor &w, const Tensor &dw, const Tensor &norm,
                   const Tensor &squareAvg, const Tensor &momentum, Node node);
/// Lion (Chen et al. 2023, algorithm 2): w -= lr*(sign(beta1*m + (1-beta1)*dw) + weightDecay*w); m = beta2*m +
/// (1-beta2)*dw.
void updateLion(Stream &, ParameterId, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &expAvg,
                Node node);

/// LAMB (You et al. 2020) in the form of NVIDIA's apex: u = Adam's direction + weightDecay*w; w -= lr*r*u, with r =
/// |w|/|u|, 1 where either is 0 or w does not decay. Norms are summed in double, in an order that depends on the shape
/// alone.
class Lamb : public Kernel {
public:
  Lamb(Node node, Shape w);
  void update(Stream &, ParameterId, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &expAvg,
              const Tensor &expAvgSq, const Tensor &scratch) const;

private:
  Shape w;
};

/// norm = sqrt(before^2 + sum(gradient^2)), of elements as updates clip them; `before` may be absent. Sums as Lamb.
class GradientNorm : public Kernel {
public:
  GradientNorm(Node node, Shape gradient);
  void run(Stream &, const Tensor &gradient, const Tensor &before, const Tensor &norm, const Tensor &scratch) const;

private:
  Shape gradient;
};

/// mean = first batch of the step ? dw : mean + (dw - mean) * batchShare, in place; `mean` is a variable of the module.
/// What updates read after the last batch is the gradient of all batches as one. Runs in every batch.
void accumulateGradient(Stream &, const Tensor &dw, const Tensor &mean, Node node);

/// After the last batch of a step that changes parameters, average = step==1 ? w : average + (1 - averageDecay)*(w -
/// average).
void averageWeights(Stream &, const Tensor &w, const Tensor &average, Node node);

} // namespace sluice
