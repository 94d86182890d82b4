// SPDX-License-Identifier: Apache-2.0
// Rebuilds what a BatchNorm read from what the leaky ReLU after it wrote. Channels whose scale is so small against
// their bias that the value would lose its digits were saved; both sides find them from scale and bias alone.
// What is rebuilt by subtraction is compared with what it was subtracted from.
#include "runtime/Codec.h"
#include "runtime/Kernels.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/InversionRules.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sluice {

namespace {

constexpr int64_t pixelsPerTask = 1024;

/// fn(channel, slot) for all guarded channels; their number.
template <typename Function>
int64_t forGuarded(const float *scale, const float *bias, int64_t channels, const InversionLimits &limits,
                   Function fn) {
  int64_t slot = 0;
  for (int64_t c = 0; c < channels; ++c)
    if (isGuarded(scale[c], bias[c], limits))
      fn(c, slot++);
  return slot;
}

} // namespace

BatchNormInversion::BatchNormInversion(Node node, Shape x, int64_t slots, float alpha, DataType from)
    : Kernel(node), channels(x[1]), pixels(x.elements() / std::max<int64_t>(1, x[1])), slots(slots), alpha(alpha),
      from(from) {
  if (x.rank < 2)
    throw std::invalid_argument(std::string("inversion of '") + node + "' over rank " + std::to_string(x.rank) +
                                ", expected at least 2");
}

void BatchNormInversion::save(Stream &stream, const Tensor &x, const Tensor &scale, const Tensor &bias,
                              const Tensor &saved) const {
  const float *pScale = stream.data<float>(scale), *pBias = stream.data<float>(bias);
  forStored(node, x.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(x);
    T *pSaved = stream.data<T>(saved);
    stream.launch(node.as(OpRole::Rebuild), "save_guarded_channels", [this, px, pScale, pBias, pSaved] {
      const int64_t wanted = forGuarded(pScale, pBias, channels, InversionLimits(from), [](int64_t, int64_t) {});
      if (wanted > slots)
        throw MemoryNotAvailable(tooManyGuarded(node, wanted, channels, slots));
      forGuarded(pScale, pBias, channels, InversionLimits(from), [&](int64_t c, int64_t slot) {
        for (int64_t p = 0; p < pixels; ++p)
          pSaved[slot * pixels + p] = px[p * channels + c];
      });
    });
  });
}

void BatchNormInversion::invert(Stream &stream, const Tensor &z, const Tensor &mean, const Tensor &rstd,
                                const Tensor &scale, const Tensor &bias, const Tensor &saved, const Tensor &x) const {
  const float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd), *pScale = stream.data<float>(scale),
              *pBias = stream.data<float>(bias);
  forStored(node, x.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pz = stream.data<T>(z), *pSaved = stream.data<T>(saved);
    T *px = stream.data<T>(x);
    stream.launch(node.as(OpRole::Rebuild), "invert_batch_norm_leaky_relu",
                  [this, pz, pMean, pRstd, pScale, pBias, pSaved, px] {
                    parallelFor((pixels + pixelsPerTask - 1) / pixelsPerTask, [&](int64_t task) {
                      const int64_t begin = task * pixelsPerTask, end = std::min(pixels, begin + pixelsPerTask);
                      for (int64_t p = begin; p < end; ++p)
                        for (int64_t c = 0; c < channels; ++c) {
                          const float value = widened(pz[p * channels + c]), u = value > 0 ? value : value / alpha;
                          store(px + p * channels + c, (u - pBias[c]) / pScale[c] / pRstd[c] + pMean[c]);
                        }
                      forGuarded(pScale, pBias, channels, InversionLimits(from), [&](int64_t c, int64_t slot) {
                        for (int64_t p = begin; p < end; ++p)
                          px[p * channels + c] = pSaved[slot * pixels + p];
                      });
                    });
                  });
  });
}

CancellationCheck::CancellationCheck(Node node, int64_t elements, int64_t parts)
    : Kernel(node), elements(elements), parts(parts) {}

void CancellationCheck::run(Stream &stream, const Tensor &x, const Tensor &y, const Tensor &maxima) const {
  float *pMaxima = stream.data<float>(maxima);
  forStored(node, x.type, [&, stored = x.type](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(x), *py = stream.data<T>(y);
    stream.launch(node.as(OpRole::Rebuild), "check_cancellation", [this, px, py, pMaxima, stored] {
      parallelFor(parts, [&](int64_t part) {
        float largest[2] = {0, 0};
        for (int64_t i = elements * part / parts; i < elements * (part + 1) / parts; ++i) {
          largest[0] = std::max(largest[0], std::fabs(widened(px[i])));
          largest[1] = std::max(largest[1], std::fabs(widened(py[i])));
        }
        pMaxima[2 * part] = largest[0];
        pMaxima[2 * part + 1] = largest[1];
      });
      float largest[2] = {0, 0};
      for (int64_t i = 0; i < 2 * parts; ++i)
        largest[i % 2] = std::max(largest[i % 2], pMaxima[i]);
      if (cancelled(largest[0], largest[1], stored))
        throw ValueNotStorable(digitsLost(node, largest[0], largest[1], stored));
    });
  });
}

} // namespace sluice
