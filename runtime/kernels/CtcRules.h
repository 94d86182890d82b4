// SPDX-License-Identifier: Apache-2.0
// The recursions of CTC, one place of one sample at a time, for both targets. All probabilities are logarithms, in
// double: a product over hundreds of steps has lost its last digits in float.
#pragma once

#include "runtime/CtcLoss.h"
#include "runtime/Math.h"

#include <algorithm>
#include <cmath>

namespace sluice {

SLUICE_KERNEL double impossible() { return -HUGE_VAL; }

/// log(exp(a) + exp(b) + exp(c))
SLUICE_KERNEL double addLogarithms(double a, double b, double c) {
  const double most = std::max(a, std::max(b, c));
  return most == impossible() ? most : most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

/// One sample: its scores [steps, classes], its labels, and as many of both as count.
struct CtcSample {
  const float *x;
  const int64_t *target;
  int64_t classes, blank, steps = 0, labels = 0;

  /// `inputLengths` and `targetLengths` may be null.
  SLUICE_KERNEL CtcSample(const CtcGeometry &g, int64_t sample, const float *scores, const int64_t *targets,
                          const int64_t *inputLengths, const int64_t *targetLengths)
      : x(scores + sample * g.steps * g.classes), target(targets + sample * g.labels), classes(g.classes),
        blank(g.blank) {
    steps = inputLengths ? limited(inputLengths[sample], g.steps) : g.steps;
    if (targetLengths) {
      labels = limited(targetLengths[sample], g.labels);
      return;
    }
    while (labels < g.labels && target[labels] != g.blank && target[labels] != g.ignoreIndex)
      ++labels;
  }
  SLUICE_KERNEL static int64_t limited(int64_t length, int64_t most) {
    return length < 0 ? 0 : length > most ? most : length;
  }

  SLUICE_KERNEL int64_t places() const { return 2 * labels + 1; }
  /// Blanks at even places. A label that is no class, which is told elsewhere, counts as a blank.
  SLUICE_KERNEL int64_t classAt(int64_t place) const {
    const int64_t label = place % 2 == 0 ? blank : target[place / 2];
    return label < 0 || label >= classes ? blank : label;
  }
  SLUICE_KERNEL bool isWrong(int64_t label) const { return target[label] < 0 || target[label] >= classes; }
  /// A path may leave the blank between two labels out unless they are equal.
  SLUICE_KERNEL bool skipsTo(int64_t place) const { return place % 2 == 1 && place >= 3 && skips(place); }
  SLUICE_KERNEL bool skips(int64_t place) const { return classAt(place) != classAt(place - 2); }

  /// The logarithm of the class's probability at a step, from log(sum(exp)) of its scores.
  SLUICE_KERNEL double score(int64_t step, int64_t place, double sum) const {
    return static_cast<double>(x[step * classes + classAt(place)]) - sum;
  }

  /// Of all prefixes that end at a place in this step, from the row of the step before (equations 6 and 7).
  SLUICE_KERNEL double prefix(int64_t step, int64_t place, const double *before, double sum) const {
    double all = impossible();
    if (step == 0)
      all = place < 2 ? 0 : impossible();
    else
      all = addLogarithms(before[place], place > 0 ? before[place - 1] : impossible(),
                          skipsTo(place) ? before[place - 2] : impossible());
    return all == impossible() ? all : all + score(step, place, sum);
  }

  /// Of all suffixes that begin after this step, having been at `place` in it, from the row of the next step, in which
  /// suffixes begin at their places (equation 10, without the step's own probability).
  SLUICE_KERNEL double suffix(int64_t step, int64_t place, const double *next, double nextSum) const {
    if (step == steps - 1)
      return place >= places() - 2 ? 0 : impossible();
    double parts[3];
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t to = place + i;
      const bool goes = to < places() && (i < 2 || skipsTo(to));
      parts[i] = goes && next[to] != impossible() ? next[to] + score(step + 1, to, nextSum) : impossible();
    }
    return addLogarithms(parts[0], parts[1], parts[2]);
  }

  /// The logarithm of the whole target's probability, from the prefixes of the last step that counts (equation 8).
  SLUICE_KERNEL double total(const double *last) const {
    if (steps == 0)
      return labels == 0 ? 0 : impossible();
    return addLogarithms(last[places() - 1], labels > 0 ? last[places() - 2] : impossible(), impossible());
  }

  /// What the sample adds to the mean over `samples`, from that logarithm.
  SLUICE_KERNEL double loss(double total, const CtcGeometry &g) const {
    return total == impossible() && g.zeroInfinity ? 0 : -total * share(g);
  }
  SLUICE_KERNEL double share(const CtcGeometry &g) const {
    return 1 / (static_cast<double>(labels > 0 ? labels : 1) * static_cast<double>(g.samples));
  }

  /// The gradient by a score (equation 16), from its class's probability and the posterior of the class in this step.
  SLUICE_KERNEL float slope(double probability, double posterior, double total, const CtcGeometry &g) const {
    if (total == impossible())
      return g.zeroInfinity ? 0.0f : static_cast<float>(0 * total);
    return static_cast<float>((probability - posterior) * share(g));
  }
};

/// Where a sample has its numbers in the scratch.
struct CtcScratch {
  double *sums;     ///< of steps
  double *prefixes; ///< [steps, places]; once suffixes are known, posteriors of places
  double *suffixes; ///< [2, places], in turn
  double *total;

  SLUICE_KERNEL CtcScratch(const CtcGeometry &g, int64_t sample, double *scratch)
      : sums(scratch + sample * (g.steps + (g.steps + 2) * g.places() + 1)), prefixes(sums + g.steps),
        suffixes(prefixes + g.steps * g.places()), total(suffixes + 2 * g.places()) {}
};

/// The posterior of the class at `place`, which is the first of its class: the sum over its places in their order.
SLUICE_KERNEL double classPosterior(const CtcSample &sample, int64_t place, const double *posteriors) {
  double sum = 0;
  for (int64_t other = place; other < sample.places(); ++other)
    if (sample.classAt(other) == sample.classAt(place))
      sum += posteriors[other];
  return sum;
}

SLUICE_KERNEL bool isFirstOfClass(const CtcSample &sample, int64_t place) {
  for (int64_t other = place % 2 == 0 ? 0 : 1; other < place; other += 2)
    if (sample.classAt(other) == sample.classAt(place))
      return false;
  return place % 2 == 0 || sample.classAt(place) != sample.blank;
}

} // namespace sluice
