// SPDX-License-Identifier: Apache-2.0
// The arithmetic of losses, one sample or element at a time, for both targets.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Math.h"
#include "runtime/Random.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace sluice {

/// x [N,K,...]: sample s has its K logits at `offset(s)`, `inner` apart. The first `classes` of them count. Its target
/// is that of place `first` + s of the batch's `targets`.
struct Samples {
  int64_t count = 1, classes = 1, extent = 1, inner = 1, first = 0, targets = 1;
  /// `classes` of 0: all; `targets` of 0: as many as samples.
  Samples(const Shape &x, int64_t classes, int64_t first = 0, int64_t targets = 0)
      : classes(classes ? classes : x[1]), extent(x[1]), first(first), targets(targets) {
    for (int i = 2; i < x.rank; ++i)
      inner *= x[i];
    count = x[0] * inner;
    if (targets == 0)
      this->targets = count;
  }
  constexpr int64_t offset(int64_t sample) const { return sample / inner * extent * inner + sample % inner; }
};

/// Throws std::invalid_argument where logits of this shape have no dimension of classes, or not so many of them.
inline void checkLogits(const char *node, const Shape &x, int64_t classes) {
  if (x.rank < 2)
    throw std::invalid_argument(std::string("loss '") + node + "': logits of rank " + std::to_string(x.rank) +
                                ", expected at least 2");
  if (classes < 0 || classes > x[1])
    throw std::invalid_argument(std::string("loss '") + node + "': " + std::to_string(classes) + " classes of " +
                                std::to_string(x[1]) + " logits");
}

/// Throws std::invalid_argument where there are not as many targets as the rows from `first` on need.
inline void checkRows(const char *node, const Shape &x, int64_t first, int64_t targets) {
  if (targets != 0 && (x.rank != 2 || first < 0 || first > targets - x[0]))
    throw std::invalid_argument(std::string("loss '") + node + "': " + std::to_string(x[0]) + " rows from " +
                                std::to_string(first) + " on of " + std::to_string(targets));
}

/// log(sum(exp(x))) over `classes` logits that lie `step` apart. Each exponential is a float's, because most GPUs take
/// many times as long for a double's, and vocabularies have tens of thousands; they are added in double.
template <typename X> SLUICE_KERNEL double logSumExp(const X *x, int64_t classes, int64_t step) {
  float largest = widened(x[0]);
  for (int64_t k = 1; k < classes; ++k)
    largest = std::max(largest, widened(x[k * step]));
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k)
    sum += static_cast<double>(exponential(widened(x[k * step]) - largest));
  return static_cast<double>(largest) + std::log(sum);
}

/// exp(x) / sum(exp(x)) of a logit, from logSumExp.
SLUICE_KERNEL float probabilityOf(float x, double logSumExp) {
  return exponential(static_cast<float>(static_cast<double>(x) - logSumExp));
}

/// What the smoothed target of a sample has: 1 - smoothing more at its class than elsewhere.
struct SmoothedTarget {
  double own, others; ///< others: of every class, the own one included

  SLUICE_KERNEL SmoothedTarget(float smoothing, int64_t classes)
      : own(1 - static_cast<double>(smoothing)), others(static_cast<double>(smoothing) / static_cast<double>(classes)) {
  }
};

/// Cross-entropy of one sample against its smoothed target, from log(sum(exp(x))) and the sum of all logits, which
/// matters only where there is smoothing; as torch.nn.CrossEntropyLoss(label_smoothing).
SLUICE_KERNEL double crossEntropy(double all, float own, double sum, int64_t classes, const SmoothedTarget &target) {
  const double plain = all - static_cast<double>(own);
  return target.others == 0 ? plain : target.own * plain + target.others * (static_cast<double>(classes) * all - sum);
}

/// What the logits of a sample are compared with: its own class and, where samples are mixed, that of the same row of
/// the sample before it in the batch, as x = share x + (1 - share) roll(x, 1) has it. Ignored classes weigh nothing.
struct MixedClasses {
  int64_t classes[2];
  double weights[2];

  /// `rows`: targets of a batch of `batch` samples, one sample's after the other's.
  SLUICE_KERNEL MixedClasses(const int64_t *target, int64_t row, int64_t rows, int64_t ignoreIndex, float share,
                             int64_t batch)
      : classes{target[row], target[(row + rows - rows / batch) % rows]},
        weights{classes[0] == ignoreIndex ? 0 : static_cast<double>(share),
                classes[1] == ignoreIndex ? 0 : 1 - static_cast<double>(share)} {}
};

/// The gradients of a sample's cross-entropy by its logits, where `counted` samples make the mean. In floats: each is
/// one difference, and losses have one for every class of every sample.
struct MixedSlope {
  int64_t classes[2];
  float weights[2], own, others, all; ///< weights as shares of the mean; all: their sum

  SLUICE_KERNEL MixedSlope(const MixedClasses &mixed, const SmoothedTarget &smoothed, int64_t counted)
      : classes{mixed.classes[0], mixed.classes[1]},
        weights{static_cast<float>(mixed.weights[0] / static_cast<double>(counted)),
                static_cast<float>(mixed.weights[1] / static_cast<double>(counted))},
        own(static_cast<float>(smoothed.own)), others(static_cast<float>(smoothed.others)),
        all(static_cast<float>((mixed.weights[0] + mixed.weights[1]) / static_cast<double>(counted))) {
    for (float &weight : weights) // of a batch that does not count, over 0 samples
      weight = weight == weight ? weight : 0;
    all = all == all ? all : 0;
  }

  /// By the logit of a class that is neither of the two.
  SLUICE_KERNEL float elsewhere(float probability) const { return all == 0 ? 0 : all * (probability - others); }

  /// By logit k, which has that probability.
  SLUICE_KERNEL float of(float probability, int64_t k) const {
    if (all == 0)
      return 0;
    const bool first = k == classes[0], second = k == classes[1];
    // At its own class the difference is taken first: probabilities near 1 keep their digits.
    if (first && (second || weights[1] == 0))
      return all * (probability - own - others);
    const float rest = elsewhere(probability);
    return rest - (first ? weights[0] * own : 0) - (second ? weights[1] * own : 0);
  }
};

/// A sum of losses over what counts. Where nothing does, as in a batch whose targets are all ignored, nothing is to be
/// learnt: the loss is 0 like its gradients, not the 0 / 0 of PyTorch.
SLUICE_KERNEL float meanLoss(double sum, int64_t counted) {
  return counted == 0 ? 0 : static_cast<float>(sum / static_cast<double>(counted));
}

/// Sum of `classes` logits that lie `step` apart.
template <typename X> SLUICE_KERNEL double sumOfLogits(const X *x, int64_t classes, int64_t step) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k)
    sum += static_cast<double>(widened(x[k * step]));
  return sum;
}

/// Whether an element's target counts. `ignored`: what does not, a NaN for nothing, which no number equals.
SLUICE_KERNEL bool countsElement(float target, float ignored) { return !(target == ignored); }

/// The `ignored` of elements for a loss's ignoreIndex.
inline float ignoredElement(int64_t ignoreIndex) {
  return ignoreIndex == Loss::none ? NAN : static_cast<float>(ignoreIndex);
}

/// Weights of the answer yes, one for each index of a dimension of x, see Loss; 1 where there are none.
struct PositiveWeights {
  const float *weights = nullptr;
  int64_t classes = 1, inner = 1;

  PositiveWeights() = default;
  PositiveWeights(const float *weights, const Shape &own, const Shape &x) : weights(weights), classes(own.elements()) {
    for (int i = x.rank - 1; i >= 0 && own[i] == 1; --i)
      inner *= x[i];
  }
  /// Of the element at i in row-major order.
  SLUICE_KERNEL double of(int64_t i) const { return weights ? static_cast<double>(weights[i / inner % classes]) : 1; }
};

/// Mean squared error, or binary cross-entropy of a logit: max(x, 0) - x t + log(1 + exp(-|x|)), where `positive`
/// weighs t log(sigmoid(x)).
SLUICE_KERNEL double elementLoss(LossKind kind, float x, float target, double positive) {
  const double value = static_cast<double>(x), wanted = static_cast<double>(target);
  if (kind == LossKind::MeanSquaredError)
    return (value - wanted) * (value - wanted);
  const double both = std::log1p(std::exp(-std::fabs(value)));
  return std::max(value, 0.0) - value * wanted + both + (positive - 1) * wanted * (both + std::max(-value, 0.0));
}

SLUICE_KERNEL double elementGradient(LossKind kind, float x, float target, double positive) {
  const double wanted = static_cast<double>(target);
  if (kind == LossKind::MeanSquaredError)
    return 2 * (static_cast<double>(x) - wanted);
  const double answer = 1 / (1 + std::exp(-static_cast<double>(x)));
  return answer - wanted + (positive - 1) * wanted * (answer - 1);
}

/// Index of the largest logit; the first of equals.
template <typename X> SLUICE_KERNEL int64_t largestLogit(const X *x, int64_t classes, int64_t step) {
  int64_t best = 0;
  for (int64_t k = 1; k < classes; ++k)
    if (widened(x[k * step]) > widened(x[best * step]))
      best = k;
  return best;
}

} // namespace sluice
