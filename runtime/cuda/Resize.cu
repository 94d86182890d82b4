// SPDX-License-Identifier: Apache-2.0
// Resize: taps are computed where they are used. The backward pass gathers from the outputs that read a position, which
// are neighbours.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/ResizeTaps.h"

namespace sluice {

struct Resize::Impl {
  Shape x, y;
  ResizeAxis rows, columns;
};

namespace {

template <typename T> __global__ void resizeForward(Resize::Impl plan, const T *px, T *py) {
  const Shape &x = plan.x, &y = plan.y;
  SLUICE_PIXEL_LOOP(index, y[0] * y[2] * y[3]) {
    const int64_t n = index / y[3] / y[2];
    const ResizeTap row = resizeTap(plan.rows, index / y[3] % y[2]), column = resizeTap(plan.columns, index % y[3]);
    for (int64_t c = threadIdx.x; c < y[1]; c += blockDim.x) {
      float sum = 0;
      for (int64_t iy = row.low; iy <= row.low + (row.weight > 0); ++iy)
        for (int64_t ix = column.low; ix <= column.low + (column.weight > 0); ++ix)
          sum +=
              resizeWeight(row, iy) * resizeWeight(column, ix) * widened(px[((n * x[2] + iy) * x[3] + ix) * x[1] + c]);
      store(py + index * y[1] + c, sum);
    }
  }
}

template <typename T> __global__ void resizeBackward(Resize::Impl plan, const T *pdy, T *pdx) {
  const Shape &x = plan.x, &y = plan.y;
  SLUICE_PIXEL_LOOP(index, x[0] * x[2] * x[3]) {
    const int64_t n = index / x[3] / x[2], iy = index / x[3] % x[2], ix = index % x[3];
    const int64_t firstRow = firstOutputAt(plan.rows, iy - 1), endRow = firstOutputAt(plan.rows, iy + 1);
    const int64_t firstColumn = firstOutputAt(plan.columns, ix - 1), endColumn = firstOutputAt(plan.columns, ix + 1);
    for (int64_t c = threadIdx.x; c < x[1]; c += blockDim.x) {
      float sum = 0;
      for (int64_t oy = firstRow; oy < endRow; ++oy) {
        const float vertical = resizeWeight(resizeTap(plan.rows, oy), iy);
        for (int64_t ox = firstColumn; ox < endColumn && vertical != 0; ++ox) {
          const float weight = vertical * resizeWeight(resizeTap(plan.columns, ox), ix);
          if (weight != 0)
            sum += weight * widened(pdy[((n * y[2] + oy) * y[3] + ox) * y[1] + c]);
        }
      }
      store(pdx + index * x[1] + c, sum);
    }
  }
}

PixelGrid gridOf(const Shape &shape) { return {shape[0] * shape[2] * shape[3], shape[1]}; }

} // namespace

Resize::Resize(Node node, Shape x, Shape y, float scaleH, float scaleW, ResizeMode mode, ResizeCoordinates coordinates,
               NearestRounding rounding)
    : Kernel(node) {
  auto plan = std::make_shared<Impl>();
  plan->x = x, plan->y = y;
  plan->rows = resizeAxis(node, x, y, 2, scaleH, mode, coordinates, rounding);
  plan->columns = resizeAxis(node, x, y, 3, scaleW, mode, coordinates, rounding);
  impl = plan;
}

void Resize::forward(Stream &stream, const Tensor &x, const Tensor &y) const {
  const void *from = stream.address(x);
  void *to = stream.address(y);
  const PixelGrid shape = gridOf(impl->y);
  stream.launch(node, "resize", [&] {
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = resizeForward<T>;
      const T *px = static_cast<const T *>(from);
      T *py = static_cast<T *>(to);
      kernel<<<shape.grid, shape.block, 0, native(stream)>>>(*impl, px, py);
    });
  });
}

void Resize::backward(Stream &stream, const Tensor &dy, const Tensor &dx) const {
  const void *from = stream.address(dy);
  void *to = stream.address(dx);
  const PixelGrid shape = gridOf(impl->x);
  stream.launch(node, "resize_backward", [&] {
    forStored(dy.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const auto kernel = resizeBackward<T>;
      const T *pdy = static_cast<const T *>(from);
      T *pdx = static_cast<T *>(to);
      kernel<<<shape.grid, shape.block, 0, native(stream)>>>(*impl, pdy, pdx);
    });
  });
}

} // namespace sluice
