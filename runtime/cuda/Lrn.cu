// SPDX-License-Identifier: Apache-2.0
// Local response normalization: a thread for every element. Windows are a handful of channels, so that each sums its
// own and the backward pass computes its neighbours' sums again.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

struct Scales {
  int64_t pixels, channels, before, after;
  double ratio, bias, beta;

  /// bias + alpha/size * sum of squares over the window of channel c.
  template <typename T> __device__ double at(const T *pixel, int64_t c) const {
    double sum = 0;
    for (int64_t j = max(static_cast<int64_t>(0), c - before); j <= min(channels - 1, c + after); ++j) {
      const double value = widened(pixel[j]);
      sum += value * value;
    }
    return bias + ratio * sum;
  }
  __device__ double power(double s) const { return beta == 0.75 ? 1 / (sqrt(s) * sqrt(sqrt(s))) : pow(s, -beta); }
};

template <typename T> __global__ void lrnForward(Scales g, const T *x, T *y) {
  SLUICE_PIXEL_LOOP(pixel, g.pixels) {
    const T *from = x + pixel * g.channels;
    for (int64_t c = threadIdx.x; c < g.channels; c += blockDim.x)
      store(y + pixel * g.channels + c,
            static_cast<float>(static_cast<double>(widened(from[c])) * g.power(g.at(from, c))));
  }
}

template <typename T> __global__ void lrnBackward(Scales g, const T *dy, const T *x, T *dx) {
  SLUICE_PIXEL_LOOP(pixel, g.pixels) {
    const T *from = x + pixel * g.channels, *gradient = dy + pixel * g.channels;
    for (int64_t c = threadIdx.x; c < g.channels; c += blockDim.x) {
      double sum = 0; // over the channels whose window holds this one
      for (int64_t j = max(static_cast<int64_t>(0), c - g.after); j <= min(g.channels - 1, c + g.before); ++j) {
        const double s = g.at(from, j);
        sum += static_cast<double>(widened(gradient[j])) * static_cast<double>(widened(from[j])) * g.power(s) / s;
      }
      store(dx + pixel * g.channels + c,
            static_cast<float>(static_cast<double>(widened(gradient[c])) * g.power(g.at(from, c)) -
                               2 * g.ratio * g.beta * static_cast<double>(widened(from[c])) * sum));
    }
  }
}

} // namespace

Lrn::Lrn(Node node, Shape x, int64_t size, float alpha, float beta, float bias)
    : Kernel(node), x(x), size(size), alpha(alpha), beta(beta), bias(bias) {
  if (x.rank != 4 || size < 1)
    throw std::invalid_argument(std::string("LRN '") + node + "' of rank " + std::to_string(x.rank) + " and size " +
                                std::to_string(size) + ", expected rank 4 and a positive size");
}

static Scales scalesOf(const Shape &x, int64_t size, float alpha, float beta, float bias) {
  const int64_t before = (size - 1) / 2;
  return {x.elements() / x[1],
          x[1],
          before,
          size - 1 - before,
          static_cast<double>(alpha) / static_cast<double>(size),
          static_cast<double>(bias),
          static_cast<double>(beta)};
}

void Lrn::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &) const {
  const Scales scales = scalesOf(x, size, alpha, beta, bias);
  const PixelGrid shape(scales.pixels, scales.channels);
  forStored(input.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *px = stream.data<T>(input);
    T *py = stream.data<T>(output);
    stream.launch(node, "lrn", [&] { lrnForward<<<shape.grid, shape.block, 0, native(stream)>>>(scales, px, py); });
  });
}

void Lrn::backward(Stream &stream, const Tensor &dy, const Tensor &input, const Tensor &dx, const Tensor &) const {
  const Scales scales = scalesOf(x, size, alpha, beta, bias);
  const PixelGrid shape(scales.pixels, scales.channels);
  forStored(input.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *pdy = stream.data<T>(dy), *px = stream.data<T>(input);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "lrn_backward",
                  [&] { lrnBackward<<<shape.grid, shape.block, 0, native(stream)>>>(scales, pdy, px, pdx); });
  });
}

} // namespace sluice
