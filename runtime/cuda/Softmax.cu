// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one axis of a row-major tensor, seen as [outer, axis, inner]: a warp a line where lines
// are contiguous, else a thread a line, so that neighbouring threads read neighbouring elements. y may be x.
#include "runtime/Math.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

struct View {
  int64_t outer = 1, length = 1, inner = 1;
  View(const Shape &x, int axis) : length(x[axis]) {
    for (int i = 0; i < x.rank; ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : x[i];
  }
};

/// The threads of one line: `width` of them (a warp or one), this one being `lane`.
template <int Width> struct Line {
  int64_t at, step;
  int lane;
  __device__ Line(const View &view, int64_t line)
      : at(line / view.inner * view.length * view.inner + line % view.inner), step(view.inner),
        lane(Width == 1 ? 0 : static_cast<int>(threadIdx.x) % Width) {}
  static __device__ double sum(double value) { return Width == 1 ? value : warpSum(value); }
  static __device__ float maximum(float value) { return Width == 1 ? value : warpMaximum(value); }
};

template <int Width, typename T> __device__ float largestOf(const View &view, const Line<Width> &line, const T *x) {
  float largest = widened(x[line.at]);
  for (int64_t i = line.lane; i < view.length; i += Width) {
    const float value = widened(x[line.at + i * line.step]);
    largest = value > largest ? value : largest;
  }
  return line.maximum(largest);
}

template <int Width, typename T> __global__ void softmaxKernel(View view, const T *x, T *y, bool logarithm) {
  const int64_t lines = view.outer * view.inner, stride = static_cast<int64_t>(gridDim.x) * blockThreads / Width;
  for (int64_t index = (blockIdx.x * static_cast<int64_t>(blockThreads) + threadIdx.x) / Width; index < lines;
       index += stride) {
    const Line<Width> line(view, index);
    const float largest = largestOf(view, line, x);
    double sum = 0;
    for (int64_t i = line.lane; i < view.length; i += Width)
      sum += static_cast<double>(exponential(widened(x[line.at + i * line.step]) - largest));
    sum = line.sum(sum);
    const float shift = static_cast<float>(log(sum)), factor = static_cast<float>(1 / sum);
    for (int64_t i = line.lane; i < view.length; i += Width) {
      const float distance = widened(x[line.at + i * line.step]) - largest;
      store(y + line.at + i * line.step, logarithm ? distance - shift : exponential(distance) * factor);
    }
  }
}

template <int Width, typename T>
__global__ void softmaxBackwardKernel(View view, const T *dy, const T *y, T *dx, bool logarithm) {
  const int64_t lines = view.outer * view.inner, stride = static_cast<int64_t>(gridDim.x) * blockThreads / Width;
  for (int64_t index = (blockIdx.x * static_cast<int64_t>(blockThreads) + threadIdx.x) / Width; index < lines;
       index += stride) {
    const Line<Width> line(view, index);
    double sum = 0;
    for (int64_t i = line.lane; i < view.length; i += Width) {
      const int64_t at = line.at + i * line.step;
      sum += static_cast<double>(logarithm ? widened(dy[at]) : widened(dy[at]) * widened(y[at]));
    }
    const auto total = static_cast<float>(line.sum(sum));
    for (int64_t i = line.lane; i < view.length; i += Width) {
      const int64_t at = line.at + i * line.step;
      const float gradient = widened(dy[at]), result = widened(y[at]);
      store(dx + at, logarithm ? gradient - exponential(result) * total : result * (gradient - total));
    }
  }
}

} // namespace

Softmax::Softmax(Node node, Shape x, int axis, bool logarithm)
    : Kernel(node), x(x), axis(axis < 0 ? axis + x.rank : axis), logarithm(logarithm) {
  if (this->axis < 0 || this->axis >= x.rank)
    throw std::invalid_argument(std::string("softmax '") + node + "' along axis " + std::to_string(axis) + " of rank " +
                                std::to_string(x.rank));
}

void Softmax::forward(Stream &stream, const Tensor &input, const Tensor &output) const {
  const void *from = stream.address(input);
  void *to = stream.address(output);
  const View view(x, axis);
  const int width = view.inner == 1 ? 32 : 1;
  const unsigned blocks = blocksFor(view.outer * view.inner * width, blockThreads);
  stream.launch(node, "softmax", [&] {
    forStored(input.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = width == 32 ? softmaxKernel<32, T> : softmaxKernel<1, T>;
      const T *px = static_cast<const T *>(from);
      T *py = static_cast<T *>(to);
      kernel<<<blocks, blockThreads, 0, native(stream)>>>(view, px, py, logarithm);
    });
  });
}

void Softmax::backward(Stream &stream, const Tensor &dy, const Tensor &y, const Tensor &dx) const {
  const void *gradient = stream.address(dy), *result = stream.address(y);
  void *to = stream.address(dx);
  const View view(x, axis);
  const int width = view.inner == 1 ? 32 : 1;
  const unsigned blocks = blocksFor(view.outer * view.inner * width, blockThreads);
  stream.launch(node, "softmax_backward", [&] {
    forStored(dy.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = width == 32 ? softmaxBackwardKernel<32, T> : softmaxBackwardKernel<1, T>;
      const T *pdy = static_cast<const T *>(gradient), *py = static_cast<const T *>(result);
      T *pdx = static_cast<T *>(to);
      kernel<<<blocks, blockThreads, 0, native(stream)>>>(view, pdy, py, pdx, logarithm);
    });
  });
}

} // namespace sluice
