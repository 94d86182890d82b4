// SPDX-License-Identifier: Apache-2.0
// CTC on the host: a thread has a sample, whose steps follow one another; losses are added in the samples' order.
#include "runtime/CtcLoss.h"

#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/CtcRules.h"
#include "runtime/kernels/LossRules.h"
#include "runtime/kernels/WrongId.h"

namespace sluice {

namespace {

struct Operands {
  const float *x;
  const int64_t *target, *inputLengths, *targetLengths;
  double *scratch;
};

Operands operandsOf(Stream &stream, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                    const Tensor &targetLengths, const Tensor &scratch) {
  return {stream.data<float>(x), stream.data<int64_t>(target), stream.data<int64_t>(inputLengths),
          stream.data<int64_t>(targetLengths), stream.data<double>(scratch)};
}

CtcSample sampleOf(const CtcGeometry &g, const Operands &o, int64_t n) {
  return {g, n, o.x, o.target, o.inputLengths, o.targetLengths};
}

void checkLabels(const char *node, const CtcGeometry &g, const Operands &o) {
  for (int64_t n = 0; n < g.samples; ++n) {
    const CtcSample sample = sampleOf(g, o, n);
    for (int64_t i = 0; i < sample.labels; ++i)
      if (sample.isWrong(i))
        throw wrongId(IdUse::Class, node, sample.target[i], n, g.classes);
  }
}

/// Fills the sample's sums, prefixes and total.
void walkForward(const CtcGeometry &g, const CtcSample &sample, const CtcScratch &scratch) {
  for (int64_t t = 0; t < sample.steps; ++t) {
    double *row = scratch.prefixes + t * g.places();
    scratch.sums[t] = logSumExp(sample.x + t * g.classes, g.classes, 1);
    for (int64_t s = 0; s < sample.places(); ++s)
      row[s] = sample.prefix(t, s, row - g.places(), scratch.sums[t]);
  }
  *scratch.total = sample.total(scratch.prefixes + (sample.steps - 1) * g.places());
}

/// Makes posteriors of the prefixes.
void walkBackward(const CtcGeometry &g, const CtcSample &sample, const CtcScratch &scratch) {
  for (int64_t t = sample.steps; t-- > 0;) {
    double *row = scratch.prefixes + t * g.places(), *suffixes = scratch.suffixes + t % 2 * g.places();
    const double *next = scratch.suffixes + (t + 1) % 2 * g.places(),
                 nextSum = t + 1 < sample.steps ? scratch.sums[t + 1] : 0;
    for (int64_t s = 0; s < sample.places(); ++s) {
      suffixes[s] = sample.suffix(t, s, next, nextSum);
      row[s] = std::exp(row[s] + suffixes[s] - *scratch.total);
    }
  }
}

template <typename T>
void differentiate(const CtcGeometry &g, const CtcSample &sample, const CtcScratch &scratch, T *dx) {
  std::fill(dx + sample.steps * g.classes, dx + g.steps * g.classes, T{});
  for (int64_t t = 0; t < sample.steps; ++t) {
    const float *scores = sample.x + t * g.classes;
    const double *posteriors = scratch.prefixes + t * g.places();
    T *slopes = dx + t * g.classes;
    for (int64_t k = 0; k < g.classes; ++k)
      store(slopes + k, sample.slope(std::exp(static_cast<double>(scores[k]) - scratch.sums[t]), 0, *scratch.total, g));
    for (int64_t s = 0; s < sample.places(); ++s)
      if (const int64_t k = sample.classAt(s); isFirstOfClass(sample, s))
        store(slopes + k, sample.slope(std::exp(static_cast<double>(scores[k]) - scratch.sums[t]),
                                       classPosterior(sample, s, posteriors), *scratch.total, g));
  }
}

} // namespace

CtcLoss::CtcLoss(Node node, Shape x, int64_t labels, int64_t blank, bool zeroInfinity, int64_t ignoreIndex)
    : Kernel(node), geometry(ctcGeometry(node, x, labels, blank, zeroInfinity, ignoreIndex)) {
  workspace = static_cast<size_t>(ctcScratch(geometry));
}

void CtcLoss::forward(Stream &stream, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                      const Tensor &targetLengths, const Tensor &loss, const Tensor &scratch) const {
  const Operands operands = operandsOf(stream, x, target, inputLengths, targetLengths, scratch);
  float *result = stream.data<float>(loss);
  stream.launch(node.as(OpRole::Loss), "loss", [this, operands, result] {
    const CtcGeometry &g = geometry;
    checkLabels(node, g, operands);
    parallelFor(g.samples,
                [&](int64_t n) { walkForward(g, sampleOf(g, operands, n), CtcScratch(g, n, operands.scratch)); });
    double sum = 0;
    for (int64_t n = 0; n < g.samples; ++n)
      sum += sampleOf(g, operands, n).loss(*CtcScratch(g, n, operands.scratch).total, g);
    *result = static_cast<float>(sum);
  });
}

void CtcLoss::backward(Stream &stream, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                       const Tensor &targetLengths, const Tensor &dx, const Tensor &scratch) const {
  const Operands operands = operandsOf(stream, x, target, inputLengths, targetLengths, scratch);
  forStored(node, dx.type, [&](auto *type) {
    auto *slopes = stream.data<Stored<decltype(type)>>(dx);
    stream.launch(node, "ctc_loss_backward", [this, operands, slopes] {
      const CtcGeometry &g = geometry;
      checkLabels(node, g, operands);
      parallelFor(g.samples, [&](int64_t n) {
        const CtcSample sample = sampleOf(g, operands, n);
        const CtcScratch own(g, n, operands.scratch);
        walkForward(g, sample, own);
        walkBackward(g, sample, own);
        differentiate(g, sample, own, slopes + n * g.steps * g.classes);
      });
    });
  });
}

} // namespace sluice
