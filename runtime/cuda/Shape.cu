// SPDX-License-Identifier: Apache-2.0
// Kernels that only move elements: permutations and changes of layout (Reorder), concatenation and slicing (Slab).
#include "runtime/common/Strides.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

/// y's memory in order: `outer`, then `across`, which x walks with stride 1, wherever it lies in y, then `row`, y's
/// innermost dimension. Square tiles of across by row go through shared memory, so that both sides are read and written
/// in runs. Without such a dimension (across.extent 1, or rows that x walks with stride 1 too) elements are copied in
/// y's order.
struct Reorder::Impl {
  int outer = 0;
  int64_t extent[2 * Shape::maxRank] = {}, strideX[2 * Shape::maxRank] = {}, strideY[2 * Shape::maxRank] = {};
  StridedDimension across{1, 0, 0}, row{1, 1, 1};
  int64_t outerCount = 1;
  size_t width = 4;

  void add(const StridedDimension &d) {
    extent[outer] = d.extent, strideX[outer] = d.strideX, strideY[outer] = d.strideY;
    ++outer;
    outerCount *= d.extent;
  }
  /// Where the outer position begins in x and y.
  __device__ void offsets(int64_t index, int64_t &x, int64_t &y) const {
    x = y = 0;
    for (int d = outer - 1; d >= 0; --d) {
      const int64_t at = index % extent[d];
      x += at * strideX[d], y += at * strideY[d];
      index /= extent[d];
    }
  }
};

namespace {

constexpr int side = 32, sideLanes = 8;

template <typename T> __global__ void copyRows(Reorder::Impl plan, const T *x, T *y) {
  SLUICE_GRID_LOOP(i, plan.outerCount * plan.row.extent) {
    int64_t fromX, toY;
    plan.offsets(i / plan.row.extent, fromX, toY);
    const int64_t at = i % plan.row.extent;
    y[toY + at * plan.row.strideY] = x[fromX + at * plan.row.strideX];
  }
}

template <typename T> __global__ void copyTiles(Reorder::Impl plan, const T *x, T *y) {
  __shared__ T tile[side][side + 1];
  const int64_t tilesAcross = (plan.across.extent + side - 1) / side, tilesRow = (plan.row.extent + side - 1) / side;
  const int64_t tasks = plan.outerCount * tilesAcross * tilesRow;
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    int64_t fromX, toY;
    plan.offsets(task / tilesRow / tilesAcross, fromX, toY);
    const int64_t across = task / tilesRow % tilesAcross * side, row = task % tilesRow * side;
    for (int i = threadIdx.y; i < side; i += sideLanes)
      if (row + i < plan.row.extent && across + threadIdx.x < plan.across.extent)
        tile[i][threadIdx.x] = x[fromX + (across + threadIdx.x) * plan.across.strideX + (row + i) * plan.row.strideX];
    __syncthreads();
    for (int i = threadIdx.y; i < side; i += sideLanes)
      if (across + i < plan.across.extent && row + threadIdx.x < plan.row.extent)
        y[toY + (across + i) * plan.across.strideY + (row + threadIdx.x) * plan.row.strideY] = tile[threadIdx.x][i];
    __syncthreads();
  }
}

template <typename T> void reorder(const Reorder::Impl &plan, const void *from, void *to, cudaStream_t stream) {
  const T *x = static_cast<const T *>(from);
  T *y = static_cast<T *>(to);
  if (plan.across.extent == 1) {
    copyRows<<<blocksFor(plan.outerCount * plan.row.extent, blockThreads), blockThreads, 0, stream>>>(plan, x, y);
    return;
  }
  const int64_t tiles = ((plan.across.extent + side - 1) / side) * ((plan.row.extent + side - 1) / side);
  copyTiles<<<blocksFor(plan.outerCount * tiles, 1), dim3(side, sideLanes), 0, stream>>>(plan, x, y);
}

template <typename T>
__global__ void copySlab(const T *from, int64_t fromStride, T *to, int64_t toStride, int64_t width, int64_t outer) {
  for (int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.y) + threadIdx.y; row < outer;
       row += static_cast<int64_t>(gridDim.x) * blockDim.y)
    for (int64_t i = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < width;
         i += static_cast<int64_t>(gridDim.y) * blockDim.x)
      to[row * toStride + i] = from[row * fromStride + i];
}

/// `width` bytes of each of `outer` rows.
template <typename T>
void slab(const char *from, int64_t fromStride, char *to, int64_t toStride, int64_t width, int64_t outer,
          cudaStream_t stream) {
  const auto size = static_cast<int64_t>(sizeof(T));
  const PixelGrid shape(outer, width / size);
  const int64_t bands = (width / size + 4095) / 4096; // long rows are cut
  const dim3 grid(shape.grid.x, static_cast<unsigned>(std::min<int64_t>(bands, 65535)));
  copySlab<<<grid, shape.block, 0, stream>>>(reinterpret_cast<const T *>(from), fromStride / size,
                                             reinterpret_cast<T *>(to), toStride / size, width / size, outer);
}

} // namespace

Reorder::Reorder(const char *node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation)
    : Kernel(node) {
  auto plan = std::make_shared<Impl>();
  std::vector<StridedDimension> all = reorderDimensions(node, x, y, permutation);
  plan->row = all.back();
  all.pop_back();
  for (const StridedDimension &d : all)
    if (d.strideX == 1 && plan->row.strideX != 1 && plan->across.extent == 1)
      plan->across = d;
    else
      plan->add(d);
  plan->width = byteWidth(x.type);
  impl = plan;
}

void Reorder::run(Stream &stream, const Tensor &x, const Tensor &y) const {
  const void *from = stream.address(x);
  void *to = stream.address(y);
  stream.launch(node, "reorder", [&] {
    if (impl->width == 1)
      reorder<uint8_t>(*impl, from, to, native(stream));
    else if (impl->width == 4)
      reorder<uint32_t>(*impl, from, to, native(stream));
    else
      reorder<uint64_t>(*impl, from, to, native(stream));
  });
}

void Slab::copy(Stream &stream, const char *op, const char *from, int64_t fromStride, char *to,
                int64_t toStride) const {
  if (outer == 0 || smallStride == 0)
    return;
  // The widest type that every row begins and ends on.
  const int64_t together = smallStride | fromStride | toStride | static_cast<int64_t>(reinterpret_cast<size_t>(from)) |
                           static_cast<int64_t>(reinterpret_cast<size_t>(to));
  stream.launch(node, op, [&] {
    const auto move = together % 16 == 0  ? slab<uint4>
                      : together % 4 == 0 ? slab<uint32_t>
                                          : slab<uint8_t>;
    move(from, fromStride, to, toStride, smallStride, outer, native(stream));
  });
}

void Slab::insert(Stream &stream, const Tensor &small, const Tensor &large) const {
  copy(stream, "insert", stream.data<char>(small), smallStride, stream.data<char>(large) + start, largeStride);
}

void Slab::extract(Stream &stream, const Tensor &large, const Tensor &small) const {
  copy(stream, "extract", stream.data<char>(large) + start, largeStride, stream.data<char>(small), smallStride);
}

} // namespace sluice
