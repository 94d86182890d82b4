// SPDX-License-Identifier: Apache-2.0
// A row of threads walks the channels of a pixel; an element of dw is summed by a block, in a fixed order.
#include "runtime/cuda/DirectConv.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

namespace sluice {

namespace {

template <typename T> __global__ void forwardKernel(ConvGeometry g, const T *x, const T *w, T *y) {
  SLUICE_PIXEL_LOOP(pixel, pixelsOf(g.y))
  for (int64_t o = threadIdx.x; o < g.y[1]; o += blockDim.x)
    store(y + pixel * g.y[1] + o, convForwardAt(g, x, w, pixelAt(g.y, pixel), o));
}

template <typename T> __global__ void backwardDataKernel(ConvGeometry g, const T *dy, const T *w, T *dx) {
  SLUICE_PIXEL_LOOP(pixel, pixelsOf(g.x))
  for (int64_t c = threadIdx.x; c < g.x[1]; c += blockDim.x)
    store(dx + pixel * g.x[1] + c, convBackwardDataAt(g, dy, w, pixelAt(g.x, pixel), c));
}

/// Where element i of weights [O,I,window] lies: there, or as halves in [O,window,I].
__device__ inline int64_t placeOf(const ConvGeometry &, int64_t i, const float *) { return i; }
template <typename Half> __device__ inline int64_t placeOf(const ConvGeometry &g, int64_t i, const Half *) {
  const int64_t ins = g.w[1], window = g.w.elements() / (g.w[0] * ins), out = i / (ins * window);
  return (out * window + i % window) * ins + i / window % ins;
}

template <typename T, typename W> __global__ void backwardWeightKernel(ConvGeometry g, const T *dy, const T *x, W *dw) {
  __shared__ double shared[blockThreads / 32];
  const int64_t pixels = pixelsOf(g.y);
  for (int64_t element = blockIdx.x; element < g.w.elements(); element += gridDim.x) {
    double total = 0;
    for (int64_t pixel = threadIdx.x; pixel < pixels; pixel += blockThreads)
      total += static_cast<double>(convBackwardWeightTerm(g, dy, x, pixel, element));
    total = blockSum(total, shared);
    if (threadIdx.x == 0)
      store(dw + placeOf(g, element, dw), static_cast<float>(total));
  }
}

} // namespace

void directConvolution(cudaStream_t stream, const ConvGeometry &geometry, const void *first, const void *second,
                       void *result, DataType gradient) {
  const ConvGeometry g = geometry.asVolume();
  forStored(g.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *a = static_cast<const T *>(first), *b = static_cast<const T *>(second);
    if (g.pass == ConvPass::BackwardWeight) {
      const auto launch = [&](auto *dw) {
        const auto kernel = backwardWeightKernel<T, std::remove_pointer_t<decltype(dw)>>;
        kernel<<<blocksFor(g.w.elements(), 1), blockThreads, 0, stream>>>(g, a, b, dw);
      };
      isHalf(gradient) ? launch(static_cast<T *>(result)) : launch(static_cast<float *>(result));
      return;
    }
    const bool forward = g.pass == ConvPass::Forward;
    const Shape &written = forward ? g.y : g.x;
    const PixelGrid shape(pixelsOf(written), written[1]);
    const auto kernel = forward ? forwardKernel<T> : backwardDataKernel<T>;
    T *to = static_cast<T *>(result);
    kernel<<<shape.grid, shape.block, 0, stream>>>(g, a, b, to);
  });
}

} // namespace sluice
