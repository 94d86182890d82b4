// SPDX-License-Identifier: Apache-2.0
// Rebuilds what a BatchNorm read from what the leaky ReLU behind it wrote. Channels whose scale is so small against
// their bias that the value would lose its digits were saved aside; both sides find them from scale and bias alone.
#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sluice {

namespace {

constexpr int64_t pixelsPerTask = 1024;

/// (x - mean) * rstd has unit variance and comes back with an error of 1 + |bias / scale| roundings, of which there are
/// at most `roundings`, as long as slope * scale is not among the format's subnormal numbers: the slope is 1e-3 at least.
struct Limits {
  double roundings, smallestScale;
};
constexpr Limits fullLimits = {1e-5 * (1 << 24), 1e-35}, halfLimits = {1e-2 * (1 << 11), 3e-3};

bool isGuarded(float scale, float bias, const Limits &limits) {
  const double size = std::fabs(static_cast<double>(scale)), error = 1 + std::fabs(static_cast<double>(bias)) / size;
  return !(error <= limits.roundings && size >= limits.smallestScale); // so is NaN
}

/// fn(channel, slot) for all guarded channels; their number.
template <typename Function>
int64_t forGuarded(const float *scale, const float *bias, int64_t channels, const Limits &limits, Function fn) {
  int64_t slot = 0;
  for (int64_t c = 0; c < channels; ++c)
    if (isGuarded(scale[c], bias[c], limits))
      fn(c, slot++);
  return slot;
}

} // namespace

BatchNormInversion::BatchNormInversion(const char *node, Shape x, int64_t slots, float alpha, bool half)
    : Kernel(node), channels(x[1]), pixels(x.elements() / std::max<int64_t>(1, x[1])), slots(slots), alpha(alpha),
      half(half) {
  if (x.rank != 2 && x.rank != 4)
    throw std::invalid_argument(std::string("inversion of '") + node + "' over rank " + std::to_string(x.rank) +
                                ", expected 2 or 4");
}

void BatchNormInversion::save(Stream &stream, const Tensor &x, const Tensor &scale, const Tensor &bias,
                              const Tensor &aside) const {
  const float *px = stream.data<float>(x), *pScale = stream.data<float>(scale), *pBias = stream.data<float>(bias);
  float *pAside = stream.data<float>(aside);
  stream.launch(node, "save_guarded_channels", [this, px, pScale, pBias, pAside] {
    const int64_t wanted = forGuarded(pScale, pBias, channels, half ? halfLimits : fullLimits, [](int64_t, int64_t) {});
    if (wanted > slots)
      throw MemoryNotAvailable(std::string("node '") + node + "': " + std::to_string(wanted) + " of " +
                               std::to_string(channels) +
                               " channels have a scale too small to be inverted, and the plan has room for " +
                               std::to_string(slots) + "; compile without --allow-lossy=invert");
    forGuarded(pScale, pBias, channels, half ? halfLimits : fullLimits, [&](int64_t c, int64_t slot) {
      for (int64_t p = 0; p < pixels; ++p)
        pAside[slot * pixels + p] = px[p * channels + c];
    });
  });
}

void BatchNormInversion::invert(Stream &stream, const Tensor &z, const Tensor &mean, const Tensor &rstd,
                                const Tensor &scale, const Tensor &bias, const Tensor &aside, const Tensor &x) const {
  const float *pz = stream.data<float>(z), *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd),
              *pScale = stream.data<float>(scale), *pBias = stream.data<float>(bias),
              *pAside = stream.data<float>(aside);
  float *px = stream.data<float>(x);
  stream.launch(node, "invert_batch_norm_leaky_relu", [this, pz, pMean, pRstd, pScale, pBias, pAside, px] {
    parallelFor((pixels + pixelsPerTask - 1) / pixelsPerTask, [&](int64_t task) {
      const int64_t begin = task * pixelsPerTask, end = std::min(pixels, begin + pixelsPerTask);
      for (int64_t p = begin; p < end; ++p)
        for (int64_t c = 0; c < channels; ++c) {
          const float value = pz[p * channels + c], u = value > 0 ? value : value / alpha;
          px[p * channels + c] = (u - pBias[c]) / pScale[c] / pRstd[c] + pMean[c];
        }
      forGuarded(pScale, pBias, channels, half ? halfLimits : fullLimits, [&](int64_t c, int64_t slot) {
        for (int64_t p = begin; p < end; ++p)
          px[p * channels + c] = pAside[slot * pixels + p];
      });
    });
  });
}

} // namespace sluice
