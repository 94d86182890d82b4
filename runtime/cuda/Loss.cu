// SPDX-License-Identifier: Apache-2.0
// Losses, averaged as PyTorch's "mean" does. Partial sums are kept in double, one per fixed range of samples or
// elements, and added in order. A class id that is out of range makes the loss NaN and ends the step with an error.
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/LossRules.h"

namespace sluice {

namespace {

__device__ inline double notANumber() { return nan(""); }

/// logSumExp by a whole warp, for contiguous logits.
__device__ double warpLogSumExp(const float *x, int64_t classes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float largest = x[0];
  for (int64_t k = lane; k < classes; k += 32)
    largest = x[k] > largest ? x[k] : largest;
  largest = warpMaximum(largest);
  double sum = 0;
  for (int64_t k = lane; k < classes; k += 32)
    sum += static_cast<double>(exponential(x[k] - largest));
  return static_cast<double>(largest) + log(warpSum(sum));
}

/// The sum of contiguous logits by a whole warp.
__device__ double warpSumOfLogits(const float *x, int64_t classes) {
  double sum = 0;
  for (int64_t k = static_cast<int>(threadIdx.x) % 32; k < classes; k += 32)
    sum += static_cast<double>(x[k]);
  return warpSum(sum);
}

/// How many targets are not `ignored`; one block.
template <typename Target>
__global__ void countTargets(const Target *target, int64_t count, Target ignored, int64_t *counted) {
  __shared__ int64_t shared[blockThreads / 32];
  int64_t sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockThreads)
    sum += target[i] != ignored;
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    *counted = sum;
}

/// Part blockIdx.x of the samples; Width threads a sample.
template <int Width>
__global__ void crossEntropyPart(Samples samples, int64_t ignoreIndex, const float *x, const int64_t *target,
                                 const DeviceState *state, IdNote note, double *partials) {
  __shared__ double shared[blockThreads / 32];
  const SmoothedTarget smoothed(state->labelSmoothing, samples.classes);
  const int64_t begin = samples.count * blockIdx.x / gridDim.x, end = samples.count * (blockIdx.x + 1) / gridDim.x;
  double sum = 0;
  for (int64_t s = begin + threadIdx.x / Width; s < end; s += blockThreads / Width) {
    const float *line = x + samples.offset(s);
    const double all =
        Width == 1 ? logSumExp(line, samples.classes, samples.inner) : warpLogSumExp(line, samples.classes);
    const MixedClasses mixed(target, s, samples.count, ignoreIndex, state->mixShare, state->mixBatch);
    const bool known = target[s] >= 0 && target[s] < samples.classes;
    if (!known && target[s] != ignoreIndex && threadIdx.x % Width == 0)
      note(target[s], s, samples.classes);
    const double total = smoothed.others == 0 ? 0
                         : Width == 1         ? sumOfLogits(line, samples.classes, samples.inner)
                                              : warpSumOfLogits(line, samples.classes);
    for (int i = 0; i < 2 && threadIdx.x % Width == 0; ++i)
      if (mixed.weights[i] != 0) {
        const int64_t k = mixed.classes[i];
        const bool exists = k >= 0 && k < samples.classes;
        sum += exists ? mixed.weights[i] * crossEntropy(all, line[k * samples.inner], total, samples.classes, smoothed)
                      : notANumber();
      }
  }
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    partials[blockIdx.x] = sum;
}

__global__ void elementPart(LossKind kind, int64_t count, float ignored, const float *x, const float *target,
                            PositiveWeights weights, double *partials) {
  __shared__ double shared[blockThreads / 32];
  const int64_t begin = count * blockIdx.x / gridDim.x, end = count * (blockIdx.x + 1) / gridDim.x;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockThreads)
    sum += countsElement(target[i], ignored) ? elementLoss(kind, x[i], target[i], weights.of(i)) : 0;
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    partials[blockIdx.x] = sum;
}

/// The mean over `count`, or over *counted where that is there; over none it is 0.
__global__ void finishLoss(const double *partials, int parts, int64_t count, const int64_t *counted, float *loss) {
  __shared__ double shared[blockThreads / 32];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < parts; i += blockThreads)
    sum += partials[i];
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    *loss = meanLoss(sum, counted ? *counted : count);
}

template <int Width, typename T>
__global__ void crossEntropyBackward(Samples samples, int64_t ignoreIndex, const int64_t *counted, const float *x,
                                     const int64_t *target, const DeviceState *state, T *dx) {
  const SmoothedTarget smoothed(state->labelSmoothing, samples.classes);
  const int64_t count = counted ? *counted : samples.count;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockThreads / Width;
  for (int64_t s = (blockIdx.x * static_cast<int64_t>(blockThreads) + threadIdx.x) / Width; s < samples.count;
       s += stride) {
    const int64_t at = samples.offset(s);
    const double shift =
        Width == 1 ? logSumExp(x + at, samples.classes, samples.inner) : warpLogSumExp(x + at, samples.classes);
    const MixedClasses mixed(target, s, samples.count, ignoreIndex, state->mixShare, state->mixBatch);
    for (int64_t k = threadIdx.x % Width; k < samples.classes; k += Width) {
      const float probability = probabilityOf(x[at + k * samples.inner], shift);
      store(dx + at + k * samples.inner,
            mixed.weights[0] == 0 && mixed.weights[1] == 0 ? 0 : mixedSlope(probability, k, mixed, smoothed, count));
    }
  }
}

template <typename T>
__global__ void elementBackward(LossKind kind, int64_t count, float ignored, const int64_t *counted, const float *x,
                                const float *target, PositiveWeights weights, T *dx) {
  const auto mean = static_cast<double>(counted ? *counted : count);
  SLUICE_GRID_LOOP(i, count)
  store(dx + i, countsElement(target[i], ignored)
                    ? static_cast<float>(elementGradient(kind, x[i], target[i], weights.of(i)) / mean)
                    : 0.0f);
}

/// Whole numbers: the order of additions does not matter.
__global__ void countCorrectKernel(Samples samples, const float *x, const int64_t *target, int64_t *count) {
  __shared__ int64_t shared[blockThreads / 32];
  int64_t correct = 0;
  SLUICE_GRID_LOOP(s, samples.count)
  correct += largestLogit(x + samples.offset(s), samples.classes, samples.inner) == target[s];
  correct = blockSum(correct, shared);
  if (threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(count), static_cast<unsigned long long>(correct));
}

} // namespace

Loss::Loss(Node node, LossKind kind, Shape x, int64_t ignoreIndex)
    : Kernel(node), kind(kind), x(x), ignoreIndex(ignoreIndex) {
  if (kind == LossKind::SoftmaxCrossEntropy && x.rank < 2)
    throw std::invalid_argument(std::string("loss '") + node + "': logits of rank " + std::to_string(x.rank) +
                                ", expected at least 2");
  workspace = static_cast<size_t>(cuda::lossScratch(ignoreIndex != none));
}

/// Counts the targets that matter into the scratch of a loss that ignores some; null for others.
template <typename Target>
static const int64_t *countedTargets(Stream &stream, const void *target, int64_t count, int64_t ignoreIndex,
                                     char *scratch) {
  if (ignoreIndex == Loss::none)
    return nullptr;
  auto *counted = reinterpret_cast<int64_t *>(scratch + cuda::lossPartials);
  countTargets<<<1, blockThreads, 0, native(stream)>>>(static_cast<const Target *>(target), count,
                                                       static_cast<Target>(ignoreIndex), counted);
  return counted;
}

static PositiveWeights weightsOf(Stream &stream, const Tensor &positives, const Shape &x) {
  return positives.present ? PositiveWeights(stream.data<float>(positives), positives.shape, x) : PositiveWeights();
}

void Loss::forward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &loss,
                   const Tensor &scratch, const Tensor &positives) const {
  const float *px = stream.data<float>(logits);
  const void *pt = stream.address(target);
  float *result = stream.data<float>(loss);
  double *partials = stream.data<double>(scratch);
  constexpr int parts = cuda::lossParts;
  const DeviceState *state = deviceState(stream);
  const IdNote note = idNote(IdUse::Class, node);
  const PositiveWeights weights = weightsOf(stream, positives, x);
  stream.launch(node.as(OpRole::Loss), "loss", [&] {
    int64_t count = x.elements();
    const int64_t *counted = nullptr;
    if (kind == LossKind::SoftmaxCrossEntropy) {
      const Samples samples(x);
      const auto part = samples.inner == 1 ? crossEntropyPart<32> : crossEntropyPart<1>;
      counted = countedTargets<int64_t>(stream, pt, samples.count, ignoreIndex, reinterpret_cast<char *>(partials));
      part<<<parts, blockThreads, 0, native(stream)>>>(samples, ignoreIndex, px, static_cast<const int64_t *>(pt),
                                                       state, note, partials);
      count = samples.count;
    } else {
      counted = countedTargets<float>(stream, pt, count, ignoreIndex, reinterpret_cast<char *>(partials));
      elementPart<<<parts, blockThreads, 0, native(stream)>>>(kind, count, ignoredElement(ignoreIndex), px,
                                                              static_cast<const float *>(pt), weights, partials);
    }
    finishLoss<<<1, blockThreads, 0, native(stream)>>>(partials, parts, count, counted, result);
  });
}

void Loss::backward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &dx, const Tensor &scratch,
                    const Tensor &positives) const {
  const float *px = stream.data<float>(logits);
  const void *pt = stream.address(target);
  const PositiveWeights weights = weightsOf(stream, positives, x);
  void *pdx = stream.address(dx);
  char *space = ignoreIndex == none ? nullptr : stream.data<char>(scratch);
  const DeviceState *state = deviceState(stream);
  const auto launch = [&](auto *gradient) {
    using T = std::remove_pointer_t<decltype(gradient)>;
    if (kind == LossKind::SoftmaxCrossEntropy) {
      const Samples samples(x);
      const int width = samples.inner == 1 ? 32 : 1;
      const int64_t *counted = countedTargets<int64_t>(stream, pt, samples.count, ignoreIndex, space);
      const auto kernel = width == 32 ? crossEntropyBackward<32, T> : crossEntropyBackward<1, T>;
      kernel<<<blocksFor(samples.count * width, blockThreads), blockThreads, 0, native(stream)>>>(
          samples, ignoreIndex, counted, px, static_cast<const int64_t *>(pt), state, gradient);
      return;
    }
    const int64_t *counted = countedTargets<float>(stream, pt, x.elements(), ignoreIndex, space);
    const auto kernel = elementBackward<T>;
    kernel<<<blocksFor(x.elements(), blockThreads), blockThreads, 0, native(stream)>>>(
        kind, x.elements(), ignoredElement(ignoreIndex), counted, px, static_cast<const float *>(pt), weights,
        gradient);
  };
  stream.launch(node, "loss_backward",
                [&] { forStored(dx.type, [&](auto *stored) { launch(static_cast<decltype(stored)>(pdx)); }); });
}

void Loss::countCorrect(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &count) const {
  const float *px = stream.data<float>(logits);
  const int64_t *classes = stream.data<int64_t>(target);
  int64_t *result = stream.data<int64_t>(count);
  const Samples samples(x);
  stream.launch(node, "count_correct", [&] {
    countCorrectKernel<<<blocksFor(samples.count, blockThreads), blockThreads, 0, native(stream)>>>(samples, px,
                                                                                                    classes, result);
  });
}

} // namespace sluice
