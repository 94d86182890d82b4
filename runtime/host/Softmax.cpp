// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one axis of a row-major tensor, seen as [outer, axis, inner].
#include "runtime/Kernels.h"
#include "runtime/Math.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/LineSum.h"
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
    parallelRanges(outer * inner, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t line = begin; line < end; ++line)
                       body(line / inner * length * inner + line % inner);
                   });
  }
};

template <typename T> float lineMaximum(const T *x, int64_t length, int64_t step) {
  constexpr int64_t lanes = 32;
  float most[lanes];
  std::fill_n(most, lanes, widened(x[0]));
  int64_t i = 0;
  for (; i + lanes <= length; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const float value = widened(x[(i + lane) * step]);
      most[lane] = most[lane] < value ? value : most[lane];
    }
  for (; i < length; ++i)
    most[0] = std::max(most[0], widened(x[i * step]));
  return *std::max_element(most, most + lanes);
}

/// y = exp(x - shift). A function of its own, whose loop the compiler vectorizes; inlined, it does not. y may be x.
__attribute__((noinline)) void exponentials(const float *x, float *y, int64_t length, float shift) {
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i)
    y[i] = exponential(x[i] - shift);
}

/// y = exp(x - largest) / their sum. y may be x.
template <bool Contiguous> void normalizeLine(const float *x, float *y, int64_t length, int64_t step, float largest) {
  if (Contiguous)
    exponentials(x, y, length, largest);
  else
    for (int64_t i = 0; i < length; ++i)
      y[i * step] = exponential(x[i * step] - largest);
  const auto factor = static_cast<float>(1 / lineSum(length, [&](int64_t i) { return y[i * step]; }));
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i)
    y[i * step] *= factor;
}
/// The same, but that y cannot hold the exponentials as they are: they are computed twice.
template <bool Contiguous>
void normalizeLine(const BFloat16 *x, BFloat16 *y, int64_t length, int64_t step, float largest) {
  const auto power = [&](int64_t i) { return exponential(widened(x[i * step]) - largest); };
  const auto factor = static_cast<float>(1 / lineSum(length, power));
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i)
    store(y + i * step, power(i) * factor);
}

/// `Contiguous` lines are the usual ones, and vectorize. y may be x.
template <bool Contiguous, typename T>
void softmaxLine(const T *x, T *y, int64_t length, int64_t stride, bool logarithm) {
  const int64_t step = Contiguous ? 1 : stride;
  const float largest = lineMaximum(x, length, step);
  if (!logarithm)
    return normalizeLine<Contiguous>(x, y, length, step, largest);
  const double sum = lineSum(length, [&](int64_t i) { return exponential(widened(x[i * step]) - largest); });
  const auto shift = static_cast<float>(std::log(sum));
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i)
    store(y + i * step, widened(x[i * step]) - largest - shift);
}

template <bool Contiguous, typename T>
void softmaxLineBackward(const T *dy, const T *y, T *dx, int64_t length, int64_t stride, bool logarithm) {
  const int64_t step = Contiguous ? 1 : stride;
  const auto slope = [&](int64_t i) { return widened(dy[i * step]); };
  const auto value = [&](int64_t i) { return widened(y[i * step]); };
  const auto total = static_cast<float>(logarithm ? lineSum(length, slope)
                                                  : lineSum(length, [&](int64_t i) { return slope(i) * value(i); }));
  if (logarithm)
#pragma GCC ivdep
    for (int64_t i = 0; i < length; ++i)
      store(dx + i * step, slope(i) - exponential(value(i)) * total);
  else
#pragma GCC ivdep
    for (int64_t i = 0; i < length; ++i)
      store(dx + i * step, value(i) * (slope(i) - total));
}

} // namespace

Softmax::Softmax(Node node, Shape x, int axis, bool logarithm)
    : Kernel(node), x(x), axis(axis < 0 ? axis + x.rank : axis), logarithm(logarithm) {
  if (this->axis < 0 || this->axis >= x.rank)
    throw std::invalid_argument(std::string("softmax '") + node + "' along axis " + std::to_string(axis) + " of rank " +
                                std::to_string(x.rank));
}

void Softmax::forward(Stream &stream, const Tensor &input, const Tensor &output) const {
  forStored(node, input.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(input);
    T *py = stream.data<T>(output);
    stream.launch(node, "softmax", [this, px, py] {
      const View view(x, axis);
      const auto line = view.inner == 1 ? softmaxLine<true, T> : softmaxLine<false, T>;
      view.forLines([&](int64_t at) { line(px + at, py + at, view.length, view.inner, logarithm); });
    });
  });
}

void Softmax::backward(Stream &stream, const Tensor &dy, const Tensor &y, const Tensor &dx) const {
  forStored(node, y.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pdy = stream.data<T>(dy), *py = stream.data<T>(y);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "softmax_backward", [this, pdy, py, pdx] {
      const View view(x, axis);
      const auto line = view.inner == 1 ? softmaxLineBackward<true, T> : softmaxLineBackward<false, T>;
      view.forLines([&](int64_t at) { line(pdy + at, py + at, pdx + at, view.length, view.inner, logarithm); });
    });
  });
}

} // namespace sluice
