// SPDX-License-Identifier: Apache-2.0
// Losses, averaged as PyTorch's "mean" does. Partial sums are kept in double, one per fixed range of samples or
// elements, and added in order.
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/LossRules.h"
#include "runtime/kernels/WrongId.h"

#include <algorithm>
#include <atomic>
#include <string>

namespace sluice {

namespace {

constexpr int64_t parts = 64;

/// Sums body(i) over [0, count) in `parts` fixed ranges.
template <typename Body> double sumOver(int64_t count, double *partials, Body &&body) {
  parallelFor(parts, [&](int64_t part) {
    double sum = 0;
    for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i)
      sum += body(i);
    partials[part] = sum;
  });
  double total = 0;
  for (int64_t part = 0; part < parts; ++part)
    total += partials[part];
  return total;
}

/// Returns how many targets of the batch count.
int64_t checkTargets(const char *node, const int64_t *target, const Samples &samples, int64_t ignoreIndex) {
  int64_t counted = 0;
  for (int64_t s = 0; s < samples.targets; ++s) {
    counted += target[s] != ignoreIndex;
    if (target[s] != ignoreIndex && (target[s] < 0 || target[s] >= samples.classes))
      throw wrongId(IdUse::Class, node, target[s], s, samples.classes);
  }
  return counted;
}

/// How many elements' targets count.
int64_t countElements(const float *target, int64_t elements, int64_t ignoreIndex) {
  const float ignored = ignoredElement(ignoreIndex);
  return ignoreIndex == Loss::none ? elements : elements - std::count(target, target + elements, ignored);
}

/// What of the session's state a cross-entropy reads.
struct Targets {
  const int64_t *classes;
  int64_t ignoreIndex;
  float smoothing, share;
  int64_t batch;

  Targets(const void *classes, int64_t ignoreIndex, const StepState &state)
      : classes(static_cast<const int64_t *>(classes)), ignoreIndex(ignoreIndex), smoothing(state.labelSmoothing),
        share(state.mixShare), batch(state.mixBatch) {}
  MixedClasses of(int64_t row, const Samples &samples) const {
    return {classes, samples.first + row, samples.targets, ignoreIndex, share, batch};
  }
};

constexpr int64_t logitsAtOnce = 256;
/// So many samples that threads do not meet at every one of them.
int64_t samplesAtOnce(const Samples &samples) { return std::max<int64_t>(1, 4096 / samples.classes); }

/// logSumExp() of a sample, to the bit: exponentials of neighbours are computed together, and added one after another.
template <typename X> double logSumExpOf(const X *line, const Samples &samples) {
  constexpr int64_t lanes = 16;
  if (samples.inner != 1 || samples.classes < lanes)
    return logSumExp(line, samples.classes, samples.inner);
  float most[lanes];
  std::fill_n(most, lanes, widened(line[0]));
  int64_t k = 0;
  for (; k + lanes <= samples.classes; k += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      most[lane] = std::max(most[lane], widened(line[k + lane]));
  for (; k < samples.classes; ++k)
    most[0] = std::max(most[0], widened(line[k]));
  const float largest = *std::max_element(most, most + lanes);
  double sum = 0;
  for (int64_t begin = 0; begin < samples.classes; begin += logitsAtOnce) {
    const int64_t count = std::min(logitsAtOnce, samples.classes - begin);
    float exponentials[logitsAtOnce];
    for (int64_t i = 0; i < count; ++i)
      exponentials[i] = exponential(widened(line[begin + i]) - largest);
    for (int64_t i = 0; i < count; ++i)
      sum += static_cast<double>(exponentials[i]);
  }
  return static_cast<double>(largest) + std::log(sum);
}

template <typename X>
double sumCrossEntropies(const X *px, const Targets &targets, const Samples &samples, double *partials) {
  const SmoothedTarget smoothed(targets.smoothing, samples.classes);
  return sumOver(samples.count, partials, [&](int64_t s) {
    const MixedClasses mixed = targets.of(s, samples);
    const X *line = px + samples.offset(s);
    double all = 0, sum = 0, loss = 0;
    if (mixed.weights[0] != 0 || mixed.weights[1] != 0) {
      all = logSumExpOf(line, samples);
      sum = targets.smoothing == 0 ? 0 : sumOfLogits(line, samples.classes, samples.inner);
    }
    for (int i = 0; i < 2; ++i)
      if (mixed.weights[i] != 0)
        loss += mixed.weights[i] *
                crossEntropy(all, widened(line[mixed.classes[i] * samples.inner]), sum, samples.classes, smoothed);
    return loss;
  });
}

/// Of the sum above, for one sample.
template <typename X, typename T>
void differentiate(const X *line, T *gradient, const MixedClasses &mixed, const Samples &samples,
                   const SmoothedTarget &smoothed, int64_t counted) {
  const MixedSlope slope(mixed, smoothed, counted);
  int64_t own[2], owns = 0;
  float logits[2];
  for (int64_t k : mixed.classes)
    if (k >= 0 && k < samples.classes)
      own[owns] = k, logits[owns++] = widened(line[k * samples.inner]);
  const double shift = slope.all != 0 ? logSumExpOf(line, samples) : 0;
  if (samples.inner != 1) {
    for (int64_t k = 0; k < samples.classes; ++k)
      store(gradient + k * samples.inner, slope.of(probabilityOf(widened(line[k * samples.inner]), shift), k));
  } else {
#pragma GCC ivdep
    for (int64_t k = 0; k < samples.classes; ++k)
      store(gradient + k, slope.elsewhere(probabilityOf(widened(line[k]), shift)));
    // The logits may have been where the gradient is.
    for (int64_t i = 0; i < owns; ++i)
      store(gradient + own[i], slope.of(probabilityOf(logits[i], shift), own[i]));
  }
  for (int64_t k = samples.classes; k < samples.extent; ++k)
    store(gradient + k * samples.inner, 0);
}

PositiveWeights weightsOf(Stream &stream, const Tensor &positives, const Shape &x) {
  return positives.present ? PositiveWeights(stream.data<float>(positives), positives.shape, x) : PositiveWeights();
}

} // namespace

Loss::Loss(Node node, LossKind kind, Shape x, int64_t ignoreIndex, int64_t classes, int64_t first, int64_t targets)
    : Kernel(node), kind(kind), x(x), ignoreIndex(ignoreIndex), classes(classes), first(first), targets(targets) {
  if (kind == LossKind::SoftmaxCrossEntropy)
    checkLogits(node, x, classes);
  checkRows(node, x, first, targets);
  workspace = parts * sizeof(double);
}

void Loss::forward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &loss,
                   const Tensor &scratch, const Tensor &positives) const {
  const void *pt = stream.address(target);
  float *result = stream.data<float>(loss);
  double *partials = stream.data<double>(scratch);
  const Targets targets(pt, ignoreIndex, stream.session.state);
  const PositiveWeights weights = weightsOf(stream, positives, x);
  forStored(node, logits.type, [&](auto *type) {
    const auto *px = stream.data<Stored<decltype(type)>>(logits);
    stream.launch(node.as(OpRole::Loss), "loss", [this, px, pt, result, partials, targets, weights] {
      if (kind == LossKind::SoftmaxCrossEntropy) {
        const Samples samples(x, classes, first, this->targets);
        const int64_t counted = checkTargets(node, targets.classes, samples, ignoreIndex);
        *result = meanLoss(sumCrossEntropies(px, targets, samples, partials), counted);
        return;
      }
      const auto *wanted = static_cast<const float *>(pt);
      const float ignored = ignoredElement(ignoreIndex);
      const double total = sumOver(x.elements(), partials, [&](int64_t i) {
        return countsElement(wanted[i], ignored) ? elementLoss(kind, widened(px[i]), wanted[i], weights.of(i)) : 0;
      });
      *result = meanLoss(total, countElements(wanted, x.elements(), ignoreIndex));
    });
  });
}

void Loss::backward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &dx, const Tensor &,
                    const Tensor &positives) const {
  const void *pt = stream.address(target);
  const Targets targets(pt, ignoreIndex, stream.session.state);
  const PositiveWeights weights = weightsOf(stream, positives, x);
  const auto launch = [&](const auto *px, auto *pdx) {
    stream.launch(node, "loss_backward", [this, px, pt, pdx, targets, weights] {
      if (kind == LossKind::SoftmaxCrossEntropy) {
        const Samples samples(x, classes, first, this->targets);
        const int64_t counted = checkTargets(node, targets.classes, samples, ignoreIndex);
        const SmoothedTarget smoothed(targets.smoothing, samples.classes);
        parallelRanges(samples.count, samplesAtOnce(samples), [&](int64_t begin, int64_t end) {
          for (int64_t s = begin, at = samples.offset(s); s < end; ++s, at = samples.offset(s))
            differentiate(px + at, pdx + at, targets.of(s, samples), samples, smoothed, counted);
        });
        return;
      }
      const auto *wanted = static_cast<const float *>(pt);
      const float ignored = ignoredElement(ignoreIndex);
      const auto counted = static_cast<double>(countElements(wanted, x.elements(), ignoreIndex));
      parallelRanges(x.elements(), 1 << 14, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double slope = elementGradient(kind, widened(px[i]), wanted[i], weights.of(i)) / counted;
          store(pdx + i, countsElement(wanted[i], ignored) ? static_cast<float>(slope) : 0);
        }
      });
    });
  };
  forStored(node, logits.type, [&](auto *from) {
    forStored(node, dx.type, [&](auto *to) {
      launch(stream.data<Stored<decltype(from)>>(logits), stream.data<Stored<decltype(to)>>(dx));
    });
  });
}

void Loss::countCorrect(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &count) const {
  const int64_t *wanted = stream.data<int64_t>(target);
  int64_t *result = stream.data<int64_t>(count);
  forStored(node, logits.type, [&](auto *type) {
    const auto *px = stream.data<Stored<decltype(type)>>(logits);
    stream.launch(node, "count_correct", [this, px, wanted, result] {
      const Samples samples(x, classes);
      std::atomic<int64_t> correct{0};
      parallelRanges(samples.count, samplesAtOnce(samples), [&](int64_t begin, int64_t end) {
        int64_t found = 0;
        for (int64_t s = begin; s < end; ++s)
          found += largestLogit(px + samples.offset(s), samples.classes, samples.inner) == wanted[s];
        correct += found;
      });
      *result += correct;
    });
  });
}

} // namespace sluice
