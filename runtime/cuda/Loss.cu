// SPDX-License-Identifier: Apache-2.0
// Losses, averaged as PyTorch's "mean" does. Partial sums are kept in double, one per fixed range of samples or
// elements, and added in order. A class id that is out of range makes the loss NaN and ends the step with an error.
#include "runtime/LossAndGradient.h"

#include "runtime/cuda/CrossEntropy.h"
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Finish.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

namespace {

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

/// Part blockIdx.x of the samples.
template <typename Threads, typename X>
__global__ void __launch_bounds__(Threads::block, Threads::blocks)
    crossEntropyPart(Samples samples, int64_t ignoreIndex, const X *x, const int64_t *target, const DeviceState *state,
                     IdNote note, double *partials) {
  __shared__ double shared[Threads::block / 32];
  const SmoothedTarget smoothed(state->labelSmoothing, samples.classes);
  const int64_t begin = samples.count * blockIdx.x / gridDim.x, end = samples.count * (blockIdx.x + 1) / gridDim.x;
  double sum = 0;
  for (int64_t s = begin + threadIdx.x / Threads::width; s < end; s += Threads::perBlock) {
    const X *line = x + samples.offset(s);
    const double all = logSum<Threads>(line, samples, shared).whole();
    const double total = smoothed.others == 0 ? 0 : sumOfLogits<Threads>(line, samples, shared);
    if (Threads::lane() != 0)
      continue;
    const int64_t place = samples.first + s;
    const MixedClasses mixed(target, place, samples.targets, ignoreIndex, state->mixShare, state->mixBatch);
    noteClass(note, target[place], place, samples, ignoreIndex);
    sum += Compared<X>(samples, mixed, line).loss(samples, smoothed, all, total);
  }
  if constexpr (Threads::block == blockThreads) // else the first thread has it
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

/// The mean over `count`, by the first blockThreads threads of a block. `shared`: one value a warp.
__device__ inline void finishParts(const double *partials, int parts, int64_t count, float *loss, double *shared) {
  double sum = 0;
  if (threadIdx.x < blockThreads)
    for (int i = static_cast<int>(threadIdx.x); i < parts; i += blockThreads)
      sum += __ldcg(partials + i);
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    *loss = meanLoss(sum, count);
}

/// Over `count`, or over *counted where that is there; over none it is 0.
__global__ void finishLoss(const double *partials, int parts, int64_t count, const int64_t *counted, float *loss) {
  __shared__ double shared[blockThreads / 32];
  finishParts(partials, parts, counted ? *counted : count, loss, shared);
}

/// Of all samples, after each was read for its sum.
template <typename Threads, typename X, typename T>
__global__ void __launch_bounds__(Threads::block, Threads::blocks)
    crossEntropyBackward(Samples samples, int64_t ignoreIndex, const int64_t *counted, const X *x,
                         const int64_t *target, const DeviceState *state, T *dx) {
  __shared__ double shared[Threads::block / 32];
  const SmoothedTarget smoothed(state->labelSmoothing, samples.classes);
  const int64_t count = counted ? *counted : samples.targets;
  for (int64_t s = Threads::first(); s < samples.count; s += static_cast<int64_t>(gridDim.x) * Threads::perBlock) {
    const int64_t at = samples.offset(s);
    const LogSum sum = logSum<Threads>(x + at, samples, shared);
    const MixedSlope slope(
        MixedClasses(target, samples.first + s, samples.targets, ignoreIndex, state->mixShare, state->mixBatch),
        smoothed, count);
    differentiate<Threads>(x + at, dx + at, samples, sum, slope);
  }
}

/// Where a loss is written and its gradient, see crossEntropyBoth().
template <typename T> struct LossResults {
  T *dx;
  float *loss;
  double *partials;
  unsigned *counter;
};

/// What crossEntropyPart() and crossEntropyBackward() compute of part blockIdx.x, by the same additions; the last block
/// ends the sum of the loss. A sample's own logits are read before any of its gradient is written, which may be there.
template <typename Threads, typename X, typename T>
__global__ void __launch_bounds__(Threads::block, Threads::blocks)
    crossEntropyBoth(Samples samples, int64_t ignoreIndex, const int64_t *counted, const X *x, const int64_t *target,
                     const DeviceState *state, IdNote note, LossResults<T> to) {
  __shared__ double shared[Threads::block / 32];
  const SmoothedTarget smoothed(state->labelSmoothing, samples.classes);
  const int64_t count = counted ? *counted : samples.targets;
  const int64_t begin = samples.count * blockIdx.x / gridDim.x, end = samples.count * (blockIdx.x + 1) / gridDim.x;
  double loss = 0;
  for (int64_t s = begin + threadIdx.x / Threads::width; s < end; s += Threads::perBlock) {
    const int64_t at = samples.offset(s), place = samples.first + s;
    const MixedClasses mixed(target, place, samples.targets, ignoreIndex, state->mixShare, state->mixBatch);
    const Compared<X> compared(samples, mixed, x + at);
    const LogSum sum = logSum<Threads>(x + at, samples, shared);
    const double total = smoothed.others == 0 ? 0 : sumOfLogits<Threads>(x + at, samples, shared);
    if (Threads::lane() == 0) {
      noteClass(note, target[place], place, samples, ignoreIndex);
      loss += compared.loss(samples, smoothed, sum.whole(), total);
    }
    if constexpr (Threads::width == 32)
      __syncwarp(); // wider ones have met at a barrier since they read their classes
    differentiate<Threads>(x + at, to.dx + at, samples, sum, MixedSlope(mixed, smoothed, count));
  }
  if constexpr (Threads::block == blockThreads) // else the first thread has it
    loss = blockSum(loss, shared);
  if (threadIdx.x == 0)
    to.partials[blockIdx.x] = loss;
  if (detail::isLast(to.counter, gridDim.x))
    finishParts(to.partials, static_cast<int>(gridDim.x), count, to.loss, shared);
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
template <typename X>
__global__ void countCorrectKernel(Samples samples, const X *x, const int64_t *target, int64_t *count) {
  __shared__ int64_t shared[blockThreads / 32];
  int64_t correct = 0;
  SLUICE_GRID_LOOP(s, samples.count)
  correct += largestLogit(x + samples.offset(s), samples.classes, samples.inner) == target[s];
  correct = blockSum(correct, shared);
  if (threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(count), static_cast<unsigned long long>(correct));
}

} // namespace

Loss::Loss(Node node, LossKind kind, Shape x, int64_t ignoreIndex, int64_t classes, int64_t first, int64_t targets)
    : Kernel(node), kind(kind), x(x), ignoreIndex(ignoreIndex), classes(classes), first(first), targets(targets) {
  if (kind == LossKind::SoftmaxCrossEntropy)
    checkLogits(node, x, classes);
  checkRows(node, x, first, targets);
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

/// Blocks for the samples. Of long ones as many are at work at once as the second-level cache holds.
template <typename Threads> static unsigned blocksOf(const Samples &samples, Threads threads) {
  const unsigned wanted = blocksFor(samples.count, threads.perBlock);
  return threads.width > blockThreads
             ? std::min(wanted, 2 * static_cast<unsigned>(Device::get().properties.multiProcessorCount))
             : wanted;
}

/// Calls `launch` with the SampleThreads that suit the samples, of which both addresses are read or written.
template <typename Launch>
static void forWidth(const Samples &samples, const void *one, const void *other, const Launch &launch) {
  if (samples.inner != 1)
    launch(SampleThreads<1>());
  else if (samples.classes < manyClasses)
    launch(SampleThreads<32>());
  else if (samples.extent % 8 == 0 && detail::aligned(one) && detail::aligned(other))
    launch(SampleThreads<longThreads, true>());
  else
    launch(SampleThreads<longThreads>());
}

static PositiveWeights weightsOf(Stream &stream, const Tensor &positives, const Shape &x) {
  return positives.present ? PositiveWeights(stream.data<float>(positives), positives.shape, x) : PositiveWeights();
}

void Loss::forward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &loss,
                   const Tensor &scratch, const Tensor &positives) const {
  void *px = stream.address(logits);
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
      const Samples samples(x, classes, first, targets);
      counted = countedTargets<int64_t>(stream, pt, samples.targets, ignoreIndex, reinterpret_cast<char *>(partials));
      forStored(logits.type, [&](auto *stored) {
        const auto *logit = static_cast<decltype(stored)>(px);
        forWidth(samples, logit, logit, [&](auto threads) {
          const auto kernel = crossEntropyPart<decltype(threads), std::remove_pointer_t<decltype(stored)>>;
          kernel<<<parts, threads.block, 0, native(stream)>>>(samples, ignoreIndex, logit,
                                                              static_cast<const int64_t *>(pt), state, note, partials);
        });
      });
      count = samples.targets;
    } else {
      counted = countedTargets<float>(stream, pt, count, ignoreIndex, reinterpret_cast<char *>(partials));
      elementPart<<<parts, blockThreads, 0, native(stream)>>>(kind, count, ignoredElement(ignoreIndex),
                                                              static_cast<const float *>(px),
                                                              static_cast<const float *>(pt), weights, partials);
    }
    finishLoss<<<1, blockThreads, 0, native(stream)>>>(partials, parts, count, counted, result);
  });
}

LossAndGradient::LossAndGradient(Node node, Shape x, int64_t ignoreIndex, int64_t classes, int64_t first,
                                 int64_t targets)
    : Kernel(node), x(x), ignoreIndex(ignoreIndex), classes(classes), first(first), targets(targets) {
  checkLogits(node, x, classes);
  checkRows(node, x, first, targets);
  workspace = static_cast<size_t>(cuda::lossScratch(ignoreIndex != Loss::none));
}

void LossAndGradient::run(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &dx,
                          const Tensor &loss, const Tensor &scratch) const {
  void *px = stream.address(logits), *pdx = stream.address(dx);
  const int64_t *pt = stream.data<int64_t>(target);
  float *result = stream.data<float>(loss);
  char *space = stream.data<char>(scratch);
  const DeviceState *state = deviceState(stream);
  const IdNote note = idNote(IdUse::Class, node);
  const Samples samples(x, classes, first, targets);
  const auto launch = [&](auto *logit, auto *gradient) {
    using X = std::remove_pointer_t<decltype(logit)>;
    using T = std::remove_pointer_t<decltype(gradient)>;
    const int64_t *counted = countedTargets<int64_t>(stream, pt, samples.targets, ignoreIndex, space);
    const LossResults<T> to{gradient, result, reinterpret_cast<double *>(space), finishCounters()};
    forWidth(samples, logit, gradient, [&](auto threads) {
      const auto kernel = crossEntropyBoth<decltype(threads), X, T>;
      kernel<<<cuda::lossParts, threads.block, 0, native(stream)>>>(samples, ignoreIndex, counted, logit, pt, state,
                                                                    note, to);
    });
  };
  stream.launch(node.as(OpRole::Loss), "loss", [&] {
    forStored(logits.type, [&](auto *from) {
      forStored(dx.type, [&](auto *to) { launch(static_cast<decltype(from)>(px), static_cast<decltype(to)>(pdx)); });
    });
  });
}

void Loss::backward(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &dx, const Tensor &scratch,
                    const Tensor &positives) const {
  void *px = stream.address(logits), *pdx = stream.address(dx);
  const void *pt = stream.address(target);
  const PositiveWeights weights = weightsOf(stream, positives, x);
  char *space = ignoreIndex == none ? nullptr : stream.data<char>(scratch);
  const DeviceState *state = deviceState(stream);
  const auto ofClasses = [&](auto *logit, auto *gradient) {
    using X = std::remove_pointer_t<decltype(logit)>;
    using T = std::remove_pointer_t<decltype(gradient)>;
    const Samples samples(x, classes, first, targets);
    const int64_t *counted = countedTargets<int64_t>(stream, pt, samples.targets, ignoreIndex, space);
    forWidth(samples, logit, gradient, [&](auto threads) {
      const auto kernel = crossEntropyBackward<decltype(threads), X, T>;
      kernel<<<blocksOf(samples, threads), threads.block, 0, native(stream)>>>(
          samples, ignoreIndex, counted, logit, static_cast<const int64_t *>(pt), state, gradient);
    });
  };
  const auto ofElements = [&](auto *gradient) {
    using T = std::remove_pointer_t<decltype(gradient)>;
    const int64_t *counted = countedTargets<float>(stream, pt, x.elements(), ignoreIndex, space);
    const auto kernel = elementBackward<T>;
    kernel<<<blocksFor(x.elements(), blockThreads), blockThreads, 0, native(stream)>>>(
        kind, x.elements(), ignoredElement(ignoreIndex), counted, static_cast<const float *>(px),
        static_cast<const float *>(pt), weights, gradient);
  };
  stream.launch(node, "loss_backward", [&] {
    forStored(dx.type, [&](auto *to) {
      auto *gradient = static_cast<decltype(to)>(pdx);
      if (kind != LossKind::SoftmaxCrossEntropy)
        return ofElements(gradient);
      forStored(logits.type, [&](auto *from) { ofClasses(static_cast<decltype(from)>(px), gradient); });
    });
  });
}

void Loss::countCorrect(Stream &stream, const Tensor &logits, const Tensor &target, const Tensor &count) const {
  void *px = stream.address(logits);
  const int64_t *wanted = stream.data<int64_t>(target);
  int64_t *result = stream.data<int64_t>(count);
  const Samples samples(x, classes);
  stream.launch(node, "count_correct", [&] {
    forStored(logits.type, [&](auto *stored) {
      const auto *logit = static_cast<decltype(stored)>(px);
      countCorrectKernel<<<blocksFor(samples.count, blockThreads), blockThreads, 0, native(stream)>>>(samples, logit,
                                                                                                      wanted, result);
    });
  });
}

} // namespace sluice
