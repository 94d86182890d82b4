// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one axis of a row-major tensor, seen as [outer, axis, inner].
#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sluice {

namespace {

struct View {
  int64_t outer = 1, length = 1, inner = 1;
  View(const Shape &x, int axis) : length(x[axis]) {
    for (int i = 0; i < x.rank; ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : x[i];
  }

  /// Calls body(offset of the first element) for every line along the axis.
  template <typename Body> void forLines(Body &&body) const {
    parallelRanges(outer * inner, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length)), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line)
        body(line / inner * length * inner + line % inner);
    });
  }
};

void softmaxLine(const float *x, float *y, int64_t length, int64_t step, bool logarithm) {
  float largest = x[0];
  for (int64_t i = 1; i < length; ++i)
    largest = std::max(largest, x[i * step]);
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    const float power = std::exp(x[i * step] - largest);
    sum += static_cast<double>(power);
    if (!logarithm)
      y[i * step] = power;
  }
  const auto shift = static_cast<float>(std::log(sum)), factor = static_cast<float>(1 / sum);
  for (int64_t i = 0; i < length; ++i)
    y[i * step] = logarithm ? x[i * step] - largest - shift : y[i * step] * factor;
}

void softmaxLineBackward(const float *dy, const float *y, float *dx, int64_t length, int64_t step, bool logarithm) {
  double sum = 0;
  for (int64_t i = 0; i < length; ++i)
    sum += static_cast<double>(logarithm ? dy[i * step] : dy[i * step] * y[i * step]);
  const auto total = static_cast<float>(sum);
  for (int64_t i = 0; i < length; ++i)
    dx[i * step] = logarithm ? dy[i * step] - std::exp(y[i * step]) * total : y[i * step] * (dy[i * step] - total);
}

} // namespace

Softmax::Softmax(const char *node, Shape x, int axis, bool logarithm)
    : Kernel(node), x(x), axis(axis < 0 ? axis + x.rank : axis), logarithm(logarithm) {
  if (this->axis < 0 || this->axis >= x.rank)
    throw std::invalid_argument(std::string("softmax '") + node + "' along axis " + std::to_string(axis) + " of rank " +
                                std::to_string(x.rank));
}

void Softmax::forward(Stream &stream, const Tensor &input, const Tensor &output) const {
  const float *px = stream.data<float>(input);
  float *py = stream.data<float>(output);
  stream.launch(node, "softmax", [this, px, py] {
    const View view(x, axis);
    view.forLines([&](int64_t at) { softmaxLine(px + at, py + at, view.length, view.inner, logarithm); });
  });
}

void Softmax::backward(Stream &stream, const Tensor &dy, const Tensor &y, const Tensor &dx) const {
  const float *pdy = stream.data<float>(dy), *py = stream.data<float>(y);
  float *pdx = stream.data<float>(dx);
  stream.launch(node, "softmax_backward", [this, pdy, py, pdx] {
    const View view(x, axis);
    view.forLines([&](int64_t at) { softmaxLineBackward(pdy + at, py + at, pdx + at, view.length, view.inner, logarithm); });
  });
}

} // namespace sluice
