// SPDX-License-Identifier: Apache-2.0
// Losses, averaged as PyTorch's "mean" does. Partial sums are kept in double, one per fixed range of samples or
// elements, and added in order.
#include "runtime/host/Parallel.h"
#include "runtime/kernels/LossRules.h"

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

/// Returns how many targets count.
int64_t checkTargets(const char *node, const int64_t *target, const Samples &samples, int64_t ignoreIndex) {
  int64_t counted = 0;
  for (int64_t s = 0; s < samples.count; ++s) {
    counted += target[s] != ignoreIndex;
    if (target[s] != ignoreIndex && (target[s] < 0 || target[s] >= samples.classes))
      throw std::invalid_argument(std::string("loss '") + node + "': class id " + std::to_string(target[s]) +
                                  " of sample " + std::to_string(s) + " is not below " +
                                  std::to_string(samples.classes));
  }
  return counted;
}

double sumCrossEntropies(const float *px, const int64_t *classes, const Samples &samples, int64_t ignoreIndex,
                         float smoothing, double *partials) {
  const SmoothedTarget target(smoothing, samples.classes);
  return sumOver(samples.count, partials, [&](int64_t s) {
    if (classes[s] == ignoreIndex)
      return 0.0;
    const float *line = px + samples.offset(s);
    const double all = logSumExp(line, samples.classes, samples.inner),
                 sum = smoothing == 0 ? 0 : sumOfLogits(line, samples.classes, samples.inner);
    return crossEntropy(all, line[classes[s] * samples.inner], sum, samples.classes, target);
  });
}

} // namespace

Loss::Loss(const char *node, LossKind kind, Shape x, int64_t ignoreIndex)
    : Kernel(node), kind(kind), x(x), ignoreIndex(ignoreIndex) {
  if (kind == LossKind::SoftmaxCrossEntropy && x.rank < 2)
    throw std::invalid_argument(std::string("loss '") + node + "': logits of rank " + std::to_string(x.rank) +
                                ", expected at least 2");
  workspace = parts * sizeof(double);
}

void Loss::forward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &loss,
                   const Tensor &scratch) const {
  const float *px = stream.data<float>(logits);
  const void *pt = stream.address(target);
  float *result = stream.data<float>(loss);
  double *partials = stream.data<double>(scratch);
  const float smoothing = stream.session.state.labelSmoothing;
  stream.launch(node, "loss", [this, px, pt, result, partials, smoothing] {
    if (kind == LossKind::SoftmaxCrossEntropy) {
      const Samples samples(x);
      const auto *classes = static_cast<const int64_t *>(pt);
      const int64_t counted = checkTargets(node, classes, samples, ignoreIndex);
      const double total = sumCrossEntropies(px, classes, samples, ignoreIndex, smoothing, partials);
      *result = static_cast<float>(total / static_cast<double>(counted));
      return;
    }
    const auto *wanted = static_cast<const float *>(pt);
    const int64_t count = x.elements();
    const double total = sumOver(count, partials, [&](int64_t i) { return elementLoss(kind, px[i], wanted[i]); });
    *result = static_cast<float>(total / static_cast<double>(count));
  });
}

void Loss::backward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &dx,
                    const Tensor &) const {
  const float *px = stream.data<float>(logits);
  const void *pt = stream.address(target);
  float *pdx = stream.data<float>(dx);
  const float smoothing = stream.session.state.labelSmoothing;
  stream.launch(node, "loss_backward", [this, px, pt, pdx, smoothing] {
    if (kind == LossKind::SoftmaxCrossEntropy) {
      const Samples samples(x);
      const auto *classes = static_cast<const int64_t *>(pt);
      const int64_t counted = checkTargets(node, classes, samples, ignoreIndex);
      const SmoothedTarget wanted(smoothing, samples.classes);
      parallelFor(samples.count, [&](int64_t s) {
        const int64_t at = samples.offset(s);
        if (classes[s] == ignoreIndex) {
          for (int64_t k = 0; k < samples.classes; ++k)
            pdx[at + k * samples.inner] = 0;
          return;
        }
        const double shift = logSumExp(px + at, samples.classes, samples.inner);
        for (int64_t k = 0; k < samples.classes; ++k) {
          const double probability = std::exp(static_cast<double>(px[at + k * samples.inner]) - shift);
          pdx[at + k * samples.inner] = static_cast<float>(
              (probability - (k == classes[s] ? wanted.own : 0) - wanted.others) / static_cast<double>(counted));
        }
      });
      return;
    }
    const auto *wanted = static_cast<const float *>(pt);
    const int64_t count = x.elements();
    parallelRanges(count, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pdx[i] = static_cast<float>(elementGradient(kind, px[i], wanted[i]) / static_cast<double>(count));
    });
  });
}

void Loss::countCorrect(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &count) const {
  const float *px = stream.data<float>(logits);
  const int64_t *classes = stream.data<int64_t>(target);
  int64_t *result = stream.data<int64_t>(count);
  stream.launch(node, "count_correct", [this, px, classes, result] {
    const Samples samples(x);
    std::atomic<int64_t> correct{0};
    parallelFor(samples.count, [&](int64_t s) {
      correct += largestLogit(px + samples.offset(s), samples.classes, samples.inner) == classes[s];
    });
    *result += correct;
  });
}

} // namespace sluice
