// SPDX-License-Identifier: Apache-2.0
// Local response normalization over the channels of NHWC pixels. Sums over a window are taken in
// double. The backward pass recomputes them instead of keeping twice the tensor.
#include "runtime/Kernels.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sluice {

namespace {

constexpr int64_t slabs = 64; ///< ranges of pixels with scratch of their own

struct Geometry {
  int64_t pixels, channels, before, after;
  Geometry(const Shape &x, int64_t size)
      : pixels(x.elements() / x[1]), channels(x[1]), before((size - 1) / 2), after(size - 1 - (size - 1) / 2) {}
};

/// sums[c] = sum of values over [c - before, c + after], clipped.
void windowSums(const double *__restrict values, double *__restrict sums, int64_t channels, int64_t before,
                int64_t after) {
  std::copy_n(values, channels, sums);
  for (int64_t distance = 1; distance <= std::min(before, channels - 1); ++distance)
    for (int64_t c = distance; c < channels; ++c)
      sums[c] += values[c - distance];
  for (int64_t distance = 1; distance <= std::min(after, channels - 1); ++distance)
    for (int64_t c = 0; c < channels - distance; ++c)
      sums[c] += values[c + distance];
}

/// s^-beta, fast for the usual beta of 3/4.
void negativePowers(const double *s, double *powers, int64_t channels, float beta) {
  if (beta == 0.75f)
    for (int64_t c = 0; c < channels; ++c)
      powers[c] = 1 / (std::sqrt(s[c]) * std::sqrt(std::sqrt(s[c])));
  else
    for (int64_t c = 0; c < channels; ++c)
      powers[c] = std::pow(s[c], -static_cast<double>(beta));
}

/// For one pixel: s = bias + alpha/size * sum of squares, and s^-beta. `work` holds one channel vector.
template <typename T>
void scales(const T *x, const Geometry &g, double ratio, double bias, float beta, double *work, double *s,
            double *powers) {
  for (int64_t c = 0; c < g.channels; ++c)
    work[c] = static_cast<double>(widened(x[c])) * static_cast<double>(widened(x[c]));
  windowSums(work, s, g.channels, g.before, g.after);
  for (int64_t c = 0; c < g.channels; ++c)
    s[c] = bias + ratio * s[c];
  negativePowers(s, powers, g.channels, beta);
}

} // namespace

Lrn::Lrn(Node node, Shape x, int64_t size, float alpha, float beta, float bias)
    : Kernel(node), x(x), size(size), alpha(alpha), beta(beta), bias(bias) {
  if (x.rank != 4 || size < 1)
    throw std::invalid_argument(std::string("LRN '") + node + "' of rank " + std::to_string(x.rank) + " and size " +
                                std::to_string(size) + ", expected rank 4 and a positive size");
  workspace = static_cast<size_t>(slabs * 4 * x[1]) * sizeof(double);
}

void Lrn::forward(Stream &stream, const Tensor &input, const Tensor &output, const Tensor &scratch) const {
  double *buffers = stream.data<double>(scratch);
  forStored(node, input.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(input);
    T *py = stream.data<T>(output);
    stream.launch(node, "lrn", [this, px, py, buffers] {
      const Geometry g(x, size);
      parallelFor(slabs, [&](int64_t slab) {
        double *work = buffers + slab * 4 * g.channels, *s = work + g.channels, *powers = s + g.channels;
        for (int64_t pixel = g.pixels * slab / slabs; pixel < g.pixels * (slab + 1) / slabs; ++pixel) {
          const T *from = px + pixel * g.channels;
          scales(from, g, static_cast<double>(alpha) / static_cast<double>(size), bias, beta, work, s, powers);
          for (int64_t c = 0; c < g.channels; ++c)
            store(py + pixel * g.channels + c, static_cast<float>(widened(from[c]) * powers[c]));
        }
      });
    });
  });
}

void Lrn::backward(Stream &stream, const Tensor &dy, const Tensor &input, const Tensor &dx,
                   const Tensor &scratch) const {
  double *buffers = stream.data<double>(scratch);
  forStored(node, input.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pdy = stream.data<T>(dy), *px = stream.data<T>(input);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "lrn_backward", [this, pdy, px, pdx, buffers] {
      const Geometry g(x, size);
      const double ratio = static_cast<double>(alpha) / static_cast<double>(size);
      parallelFor(slabs, [&](int64_t slab) {
        double *work = buffers + slab * 4 * g.channels, *s = work + g.channels, *powers = s + g.channels,
               *sums = powers + g.channels;
        for (int64_t pixel = g.pixels * slab / slabs; pixel < g.pixels * (slab + 1) / slabs; ++pixel) {
          const T *from = px + pixel * g.channels, *gradient = pdy + pixel * g.channels;
          scales(from, g, ratio, bias, beta, work, s, powers);
          for (int64_t c = 0; c < g.channels; ++c)
            work[c] =
                static_cast<double>(widened(gradient[c])) * static_cast<double>(widened(from[c])) * powers[c] / s[c];
          windowSums(work, sums, g.channels, g.after, g.before); // the channels whose window holds this one
          for (int64_t c = 0; c < g.channels; ++c)
            store(pdx + pixel * g.channels + c,
                  static_cast<float>(widened(gradient[c]) * powers[c] -
                                     2 * ratio * static_cast<double>(beta) * widened(from[c]) * sums[c]));
        }
      });
    });
  });
}

} // namespace sluice
