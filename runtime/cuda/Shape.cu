// SPDX-License-Identifier: Apache-2.0
// Kernels that only move elements: permutations, changes of layout and of element type (Reorder), slicing (Slab) and
// concatenation (join).
#include "runtime/Join.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Gather.h"
#include "runtime/kernels/Strides.h"

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
  DataType from = DataType::F32, to = DataType::F32;
  bool contiguous = false; ///< both sides in one run
  int64_t given = 0; ///< where y has more of a dimension than x: what a row of y has from x; 0 elsewhere. Rows are
                     ///< of channels, which x has `across`, or of the dimension and all behind it

  void add(const StridedDimension &d) {
    extent[outer] = d.extent, strideX[outer] = d.strideX, strideY[outer] = d.strideY;
    ++outer;
    outerCount *= d.extent;
  }
  /// Weights from [O, I, window] to [O, window, I], or as they are.
  bool turnsWeights() const {
    const bool turned = across.strideX == 1 && row.strideX == across.extent && row.strideY == 1 &&
                        across.strideY == row.extent && outer <= 1;
    const int64_t step = across.extent * row.extent;
    return contiguous || (turned && (outer == 0 || (strideX[0] == step && strideY[0] == step)));
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

template <typename T> __device__ inline void moveElement(T *to, T from) { *to = from; }
__device__ inline void moveElement(BFloat16 *to, float from) { store(to, from); }
__device__ inline void moveElement(Float16 *to, float from) { store(to, from); }
__device__ inline void moveElement(float *to, BFloat16 from) { *to = widened(from); }
__device__ inline void moveElement(float *to, Float16 from) { *to = widened(from); }
__device__ inline void moveElement(float *to, int64_t from) { *to = static_cast<float>(from); }
__device__ inline void moveElement(int64_t *to, float from) { *to = wholeNumber(from); }

/// A weight that is rounded on its way from [O, given, window] to [O, window, inner], where 0 is in what is not given;
/// an image in rows of channels alike, and a matrix, with a window of 1.
template <typename Half> struct Turn {
  const float *from;
  Half *to;
  int64_t count, inner, window, given;
};

/// Eight neighbours of `to` a thread.
template <typename Half> __global__ void turnKernel(Pieces<Turn<Half>> all) {
  constexpr int group = 8;
  const int own = all.own();
  const Turn<Half> &p = all.piece[own];
  for (int64_t at = group * all.thread(own); at < p.count; at += group * all.threads(own)) {
    const int64_t inner = at % p.inner, window = at / p.inner % p.window;
    const float *from = p.from + ((at / p.inner - window) * p.given + inner * p.window + window);
    float values[group];
    if (p.inner % group == 0) { // all of them in one row
      if (p.window == 1 && p.given % group == 0 && inner + group <= p.given)
        loadVector(values, from);
      else
        for (int i = 0; i < group; ++i)
          values[i] = inner + i < p.given ? from[i * p.window] : 0.0f;
      storeVector(p.to + at, values);
    } else {
      for (int64_t i = at; i < at + group && i < p.count; ++i) {
        const int64_t position = i / p.inner % p.window;
        const int64_t from = (i / p.inner - position) * p.given + i % p.inner * p.window + position;
        store(p.to + i, i % p.inner < p.given ? p.from[from] : 0.0f);
      }
    }
  }
}

template <typename Half> void turnPieces(cudaStream_t stream, const Pieces<Turn<Half>> &all, const DeviceState *) {
  const auto kernel = turnKernel<Half>;
  kernel<<<all.blocks(), blockThreads, 0, stream>>>(all);
}

/// The gradient of a weight, back from [O, window, inner] to [O, inner, window].
template <typename Half> struct TurnBack {
  const Half *from;
  float *to;
  int64_t count, inner, window;
};

/// In the order that is written.
template <typename Half> __global__ void turnBackKernel(Pieces<TurnBack<Half>> all) {
  const int own = all.own();
  const TurnBack<Half> &p = all.piece[own];
  for (int64_t at = all.thread(own); at < p.count; at += all.threads(own)) {
    const int64_t window = at % p.window, inner = at / p.window % p.inner;
    p.to[at] = widened(p.from[at - inner * p.window - window + window * p.inner + inner]);
  }
}

template <typename Half>
void turnPiecesBack(cudaStream_t stream, const Pieces<TurnBack<Half>> &all, const DeviceState *) {
  const auto kernel = turnBackKernel<Half>;
  kernel<<<all.blocks(), blockThreads, 0, stream>>>(all);
}

/// A change of element type alone, eight neighbours a thread.
template <typename X, typename Y> __global__ void castRun(const X *x, Y *y, int64_t count) {
  constexpr int group = 8;
  SLUICE_GRID_LOOP(g, (count + group - 1) / group) {
    const int64_t at = g * group;
    if (at + group <= count) {
      float values[group];
      loadVector(values, x + at);
      storeVector(y + at, values);
    } else {
      for (int64_t i = at; i < count; ++i)
        moveElement(y + i, x[i]);
    }
  }
}

template <typename X, typename Y> __global__ void copyRows(Reorder::Impl plan, const X *x, Y *y) {
  SLUICE_GRID_LOOP(i, plan.outerCount * plan.row.extent) {
    int64_t fromX, toY;
    plan.offsets(i / plan.row.extent, fromX, toY);
    const int64_t at = i % plan.row.extent;
    moveElement(y + toY + at * plan.row.strideY, x[fromX + at * plan.row.strideX]);
  }
}

template <typename X, typename Y> __global__ void copyTiles(Reorder::Impl plan, const X *x, Y *y) {
  __shared__ X tile[side][side + 1];
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
        moveElement(y + toY + (across + i) * plan.across.strideY + (row + threadIdx.x) * plan.row.strideY,
                    tile[threadIdx.x][i]);
    __syncthreads();
  }
}

template <typename X, typename Y>
void reorder(const Reorder::Impl &plan, const void *from, void *to, cudaStream_t stream) {
  const X *x = static_cast<const X *>(from);
  Y *y = static_cast<Y *>(to);
  if (plan.across.extent == 1) {
    copyRows<<<blocksFor(plan.outerCount * plan.row.extent, blockThreads), blockThreads, 0, stream>>>(plan, x, y);
    return;
  }
  const int64_t tiles = ((plan.across.extent + side - 1) / side) * ((plan.row.extent + side - 1) / side);
  copyTiles<<<blocksFor(plan.outerCount * tiles, 1), dim3(side, sideLanes), 0, stream>>>(plan, x, y);
}

/// From one float to the other; `contiguous` runs begin at multiples of 16 bytes, as slots do.
template <typename X, typename Y>
void castElements(const Reorder::Impl &plan, const void *from, void *to, cudaStream_t stream) {
  if (!plan.contiguous)
    return reorder<X, Y>(plan, from, to, stream);
  const X *x = static_cast<const X *>(from);
  Y *y = static_cast<Y *>(to);
  castRun<<<blocksFor(plan.row.extent, 8 * blockThreads), blockThreads, 0, stream>>>(x, y, plan.row.extent);
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

/// The dimension of which y, in 16 bits, has more than x, with zeros in what is more: channels of an image or of its
/// weights, or one of a matrix or vector. -1: none.
static int paddedDimension(const Tensor &x, const Tensor &y) {
  const Shape &from = x.shape, &to = y.shape;
  const bool image = from.rank >= 4;
  if (x.type != DataType::F32 || !isHalf(y.type) || from.rank != to.rank ||
      (image ? y.layout != Layout::NHWC : from.rank > 2))
    return -1;
  int padded = -1;
  for (int d = 0; d < from.rank; ++d) {
    if (from[d] == to[d])
      continue;
    if (padded >= 0 || from[d] > to[d] || (image && d != 1))
      return -1;
    padded = d;
  }
  return padded;
}

Reorder::Reorder(Node node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation) : Kernel(node) {
  auto plan = std::make_shared<Impl>();
  impl = plan;
  plan->from = x.type, plan->to = y.type;
  if (const int padded = paddedDimension(x, y); padded >= 0) {
    plan->given = x.shape[padded], plan->row.extent = y.shape[padded];
    if (x.shape.rank >= 4 && x.layout != Layout::NHWC)
      plan->across.extent = y.shape.elements() / (y.shape[0] * y.shape[1]);
    for (int d = padded + 1; x.shape.rank < 4 && d < x.shape.rank; ++d)
      plan->given *= x.shape[d], plan->row.extent *= x.shape[d];
    return;
  }
  std::vector<StridedDimension> all = reorderDimensions(node, x, y, permutation);
  plan->row = all.back();
  all.pop_back();
  for (const StridedDimension &d : all)
    if (d.strideX == 1 && plan->row.strideX != 1 && plan->across.extent == 1)
      plan->across = d;
    else
      plan->add(d);
  plan->contiguous = plan->outer == 0 && plan->across.extent == 1 && plan->row.strideX == 1 && plan->row.strideY == 1;
}

template <typename Half>
static void turn(Stream &stream, Node node, const Reorder::Impl &plan, const Tensor &x, const Tensor &y) {
  const Turn<Half> piece{stream.data<float>(x),
                         stream.data<Half>(y),
                         y.shape.elements(),
                         plan.row.extent,
                         plan.contiguous ? 1 : plan.across.extent,
                         plan.given ? plan.given : plan.row.extent};
  launchPiece<Turn<Half>>(stream, node, "cast", turnPieces<Half>, piece, piece.count);
}

template <typename Half>
static void turnBack(Stream &stream, Node node, const Reorder::Impl &plan, const Tensor &x, const Tensor &y) {
  const int64_t window = plan.contiguous ? 1 : plan.row.extent;
  const TurnBack<Half> piece{stream.data<Half>(x), stream.data<float>(y), y.shape.elements(),
                             plan.contiguous ? plan.row.extent : plan.across.extent, window};
  launchPiece<TurnBack<Half>>(stream, node, "cast", turnPiecesBack<Half>, piece, piece.count);
}

using Move = void (*)(const Reorder::Impl &plan, const void *from, void *to, cudaStream_t stream);

/// Between different types, of which one is F32.
static Move castBetween(DataType from, DataType to) {
  return from == DataType::I64    ? reorder<int64_t, float>
         : to == DataType::I64    ? reorder<float, int64_t>
         : to == DataType::BF16   ? castElements<float, BFloat16>
         : to == DataType::F16    ? castElements<float, Float16>
         : from == DataType::BF16 ? castElements<BFloat16, float>
                                  : castElements<Float16, float>;
}

static Move moveOf(size_t width) {
  return width == 1   ? reorder<uint8_t, uint8_t>
         : width == 2 ? reorder<uint16_t, uint16_t>
         : width == 4 ? reorder<uint32_t, uint32_t>
                      : reorder<uint64_t, uint64_t>;
}

void Reorder::run(Stream &stream, const Tensor &x, const Tensor &y) const {
  const void *from = stream.address(x);
  void *to = stream.address(y);
  const bool casts = impl->from != impl->to;
  const bool gathered = gathers(stream) && impl->turnsWeights();
  if (impl->given || (gathered && impl->from == DataType::F32 && isHalf(impl->to)))
    return impl->to == DataType::BF16 ? turn<BFloat16>(stream, node, *impl, x, y)
                                      : turn<Float16>(stream, node, *impl, x, y);
  if (gathered && isHalf(impl->from) && impl->to == DataType::F32)
    return impl->from == DataType::BF16 ? turnBack<BFloat16>(stream, node, *impl, x, y)
                                        : turnBack<Float16>(stream, node, *impl, x, y);
  stream.launch(node, casts ? "cast" : "reorder", [&] {
    const Move move = casts ? castBetween(impl->from, impl->to) : moveOf(byteWidth(impl->from));
    move(*impl, from, to, native(stream));
  });
}

/// Copies `outer` runs of `width` bytes, by the widest type that every one begins and ends on.
static void copyRuns(const char *from, int64_t fromStride, char *to, int64_t toStride, int64_t width, int64_t outer,
                     cudaStream_t stream) {
  if (outer == 0 || width == 0)
    return;
  const int64_t together = width | fromStride | toStride | static_cast<int64_t>(reinterpret_cast<size_t>(from)) |
                           static_cast<int64_t>(reinterpret_cast<size_t>(to));
  const auto move = together % 16 == 0  ? slab<uint4>
                    : together % 4 == 0 ? slab<uint32_t>
                    : together % 2 == 0 ? slab<uint16_t>
                                        : slab<uint8_t>;
  move(from, fromStride, to, toStride, width, outer, stream);
}

/// A kernel for each of the xs.
void join(Stream &stream, const Tensor &y, TensorList xs, int axis, Node node) {
  const JoinedRows rows = joinedRows(node, y, xs, axis);
  char *to = stream.data<char>(y);
  stream.launch(node, "insert", [&] {
    for (size_t i = 0; i < xs.count; ++i) {
      copyRuns(stream.data<char>(xs.first[i]), rows.widths[i], to, rows.bytes, rows.widths[i], rows.outer,
               native(stream));
      to += rows.widths[i];
    }
  });
}

void Slab::copy(Stream &stream, const char *op, const char *from, int64_t fromStride, char *to,
                int64_t toStride) const {
  stream.launch(node, op, [&] { copyRuns(from, fromStride, to, toStride, smallStride, outer, native(stream)); });
}

void Slab::insert(Stream &stream, const Tensor &small, const Tensor &large) const {
  copy(stream, "insert", stream.data<char>(small), smallStride, stream.data<char>(large) + start, largeStride);
}

void Slab::extract(Stream &stream, const Tensor &large, const Tensor &small) const {
  copy(stream, "extract", stream.data<char>(large) + start, largeStride, stream.data<char>(small), smallStride);
}

} // namespace sluice
