// SPDX-License-Identifier: Apache-2.0
// A row of threads walks the channels of a pixel; an element of dw is summed by a block, in a fixed order.
#include "runtime/cuda/DirectConv.h"

#include "runtime/cuda/Launch.h"

namespace sluice {

namespace {

__global__ void forwardKernel(ConvGeometry g, const float *x, const float *w, float *y) {
  SLUICE_PIXEL_LOOP(pixel, g.y[0] * g.y[2] * g.y[3])
  for (int64_t o = threadIdx.x; o < g.y[1]; o += blockDim.x)
    y[pixel * g.y[1] + o] =
        convForwardAt(g, x, w, pixel / g.y[3] / g.y[2], pixel / g.y[3] % g.y[2], pixel % g.y[3], o);
}

__global__ void backwardDataKernel(ConvGeometry g, const float *dy, const float *w, float *dx) {
  SLUICE_PIXEL_LOOP(pixel, g.x[0] * g.x[2] * g.x[3])
  for (int64_t c = threadIdx.x; c < g.x[1]; c += blockDim.x)
    dx[pixel * g.x[1] + c] =
        convBackwardDataAt(g, dy, w, pixel / g.x[3] / g.x[2], pixel / g.x[3] % g.x[2], pixel % g.x[3], c);
}

__global__ void backwardWeightKernel(ConvGeometry g, const float *dy, const float *x, float *dw) {
  __shared__ double shared[blockThreads / 32];
  const int64_t pixels = g.y[0] * g.y[2] * g.y[3];
  for (int64_t element = blockIdx.x; element < g.w.elements(); element += gridDim.x) {
    const int64_t kx = element % g.w[3], ky = element / g.w[3] % g.w[2], i = element / g.w[3] / g.w[2] % g.w[1],
                  o = element / g.w[3] / g.w[2] / g.w[1];
    double total = 0;
    for (int64_t pixel = threadIdx.x; pixel < pixels; pixel += blockThreads)
      total += static_cast<double>(convBackwardWeightTerm(g, dy, x, pixel, o, i, ky, kx));
    total = blockSum(total, shared);
    if (threadIdx.x == 0)
      dw[element] = static_cast<float>(total);
  }
}

} // namespace

void directConvolution(cudaStream_t stream, const ConvGeometry &g, const float *first, const float *second,
                       float *result) {
  if (g.pass == ConvPass::BackwardWeight) {
    backwardWeightKernel<<<blocksFor(g.w.elements(), 1), blockThreads, 0, stream>>>(g, first, second, result);
    return;
  }
  const bool forward = g.pass == ConvPass::Forward;
  const Shape &written = forward ? g.y : g.x;
  const PixelGrid shape(written[0] * written[2] * written[3], written[1]);
  const auto kernel = forward ? forwardKernel : backwardDataKernel;
  kernel<<<shape.grid, shape.block, 0, stream>>>(g, first, second, result);
}

} // namespace sluice
