// SPDX-License-Identifier: Apache-2.0
// CTC: a block has a sample, whose steps follow one another; its threads have the places of the target, or the
// classes. Losses are added by one block, in a fixed order. A label that is no class ends the step with an error.
#include "runtime/CtcLoss.h"

#include "runtime/cuda/Cut.h"
#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/CtcRules.h"
#include "runtime/kernels/LossRules.h"

namespace sluice {

namespace {

/// What kernels read and write; lengths may be null.
struct CtcOperands {
  const float *x;
  const int64_t *target, *inputLengths, *targetLengths;
  double *scratch;

  __device__ CtcSample sample(const CtcGeometry &g) const {
    return {g, blockIdx.x, x, target, inputLengths, targetLengths};
  }
};

/// log(sum(exp)) of every step, and the labels' check.
__global__ void ctcSums(CtcGeometry g, CtcOperands o, IdNote note) {
  const CtcSample sample = o.sample(g);
  const CtcScratch own(g, blockIdx.x, o.scratch);
  for (int64_t t = threadIdx.x; t < sample.steps; t += blockThreads)
    own.sums[t] = logSumExp(sample.x + t * g.classes, g.classes, 1);
  for (int64_t i = threadIdx.x; i < sample.labels; i += blockThreads)
    if (sample.isWrong(i))
      note(sample.target[i], blockIdx.x, g.classes);
}

__global__ void ctcPrefixes(CtcGeometry g, CtcOperands o) {
  const CtcSample sample = o.sample(g);
  const CtcScratch own(g, blockIdx.x, o.scratch);
  for (int64_t t = 0; t < sample.steps; ++t) {
    double *row = own.prefixes + t * g.places();
    for (int64_t s = threadIdx.x; s < sample.places(); s += blockThreads)
      row[s] = sample.prefix(t, s, row - g.places(), own.sums[t]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    *own.total = sample.total(own.prefixes + (sample.steps - 1) * g.places());
}

/// Makes posteriors of the prefixes.
__global__ void ctcPosteriors(CtcGeometry g, CtcOperands o) {
  const CtcSample sample = o.sample(g);
  const CtcScratch own(g, blockIdx.x, o.scratch);
  for (int64_t t = sample.steps - 1; t >= 0; --t) {
    double *row = own.prefixes + t * g.places(), *suffixes = own.suffixes + t % 2 * g.places();
    const double *next = own.suffixes + (t + 1) % 2 * g.places();
    const double nextSum = t + 1 < sample.steps ? own.sums[t + 1] : 0;
    for (int64_t s = threadIdx.x; s < sample.places(); s += blockThreads) {
      suffixes[s] = sample.suffix(t, s, next, nextSum);
      row[s] = exp(row[s] + suffixes[s] - *own.total);
    }
    __syncthreads();
  }
}

/// A block for each step of each sample.
template <typename T> __global__ void ctcSlopes(CtcGeometry g, CtcOperands o, T *dx) {
  const CtcSample sample = o.sample(g);
  const CtcScratch own(g, blockIdx.x, o.scratch);
  const int64_t t = blockIdx.y;
  T *slopes = dx + (blockIdx.x * g.steps + t) * g.classes;
  if (t >= sample.steps) {
    for (int64_t k = threadIdx.x; k < g.classes; k += blockThreads)
      store(slopes + k, 0.0f);
    return;
  }
  const float *scores = sample.x + t * g.classes;
  const double *posteriors = own.prefixes + t * g.places();
  for (int64_t k = threadIdx.x; k < g.classes; k += blockThreads)
    store(slopes + k, sample.slope(exp(static_cast<double>(scores[k]) - own.sums[t]), 0, *own.total, g));
  __syncthreads();
  for (int64_t s = threadIdx.x; s < sample.places(); s += blockThreads)
    if (isFirstOfClass(sample, s)) {
      const int64_t k = sample.classAt(s);
      store(slopes + k, sample.slope(exp(static_cast<double>(scores[k]) - own.sums[t]),
                                     classPosterior(sample, s, posteriors), *own.total, g));
    }
}

/// One block.
__global__ void ctcMean(CtcGeometry g, CtcOperands o, float *loss) {
  __shared__ double shared[blockThreads / 32];
  double sum = 0;
  for (int64_t n = threadIdx.x; n < g.samples; n += blockThreads) {
    const CtcSample sample(g, n, o.x, o.target, o.inputLengths, o.targetLengths);
    sum += sample.loss(*CtcScratch(g, n, o.scratch).total, g);
  }
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    *loss = static_cast<float>(sum);
}

CtcOperands operandsOf(Stream &stream, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                       const Tensor &targetLengths, const Tensor &scratch) {
  return {stream.data<float>(x), stream.data<int64_t>(target), stream.data<int64_t>(inputLengths),
          stream.data<int64_t>(targetLengths), stream.data<double>(scratch)};
}

void walk(Stream &stream, const CtcGeometry &g, const CtcOperands &operands, IdNote note) {
  const auto samples = static_cast<unsigned>(g.samples);
  ctcSums<<<samples, blockThreads, 0, native(stream)>>>(g, operands, note);
  ctcPrefixes<<<samples, blockThreads, 0, native(stream)>>>(g, operands);
}

} // namespace

CtcLoss::CtcLoss(Node node, Shape x, int64_t labels, int64_t blank, bool zeroInfinity, int64_t ignoreIndex)
    : Kernel(node), geometry(ctcGeometry(node, x, labels, blank, zeroInfinity, ignoreIndex)) {
  if (geometry.steps > 65535)
    throw std::invalid_argument(std::string("CTC loss '") + node + "': " + std::to_string(geometry.steps) +
                                " steps, more than the 65535 that a grid has");
  workspace = static_cast<size_t>(ctcScratch(geometry));
}

void CtcLoss::forward(Stream &stream, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                      const Tensor &targetLengths, const Tensor &loss, const Tensor &scratch) const {
  const CtcOperands operands = operandsOf(stream, x, target, inputLengths, targetLengths, scratch);
  float *result = stream.data<float>(loss);
  const IdNote note = idNote(IdUse::Class, node);
  stream.launch(node.as(OpRole::Loss), "loss", [&] {
    walk(stream, geometry, operands, note);
    ctcMean<<<1, blockThreads, 0, native(stream)>>>(geometry, operands, result);
  });
}

void CtcLoss::backward(Stream &stream, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                       const Tensor &targetLengths, const Tensor &dx, const Tensor &scratch) const {
  const CtcOperands operands = operandsOf(stream, x, target, inputLengths, targetLengths, scratch);
  void *slopes = stream.address(dx);
  const IdNote note = idNote(IdUse::Class, node);
  stream.launch(node, "ctc_loss_backward", [&] {
    walk(stream, geometry, operands, note);
    const dim3 samples(static_cast<unsigned>(geometry.samples)),
        steps(static_cast<unsigned>(geometry.samples), static_cast<unsigned>(geometry.steps));
    ctcPosteriors<<<samples, blockThreads, 0, native(stream)>>>(geometry, operands);
    forStored(dx.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = ctcSlopes<T>;
      kernel<<<steps, blockThreads, 0, native(stream)>>>(geometry, operands, static_cast<T *>(slopes));
    });
  });
}

} // namespace sluice
