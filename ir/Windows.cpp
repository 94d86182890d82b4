// SPDX-License-Identifier: Apache-2.0
// Pools and resizes of images, and their gradients.
#include "ir/Rules.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Result type of a pooling window, null after an error.
static RankedTensorType poolType(MaybeLoc loc, RankedTensorType x, ArrayRef<int64_t> k, ArrayRef<int64_t> s,
                                 ArrayRef<int64_t> p, ArrayRef<int64_t> d, bool ceil) {
  const int64_t spatial = x.getRank() - 2;
  if ((spatial != 2 && spatial != 3) || !positive(k, spatial) || !positive(s, spatial) ||
      !nonNegative(p, 2 * spatial) || !positive(d, spatial)) {
    (void)fail(loc,
               "pooling needs rank 4 or 5, and for each of 2 or 3 dimensions a positive kernel extent, stride and "
               "dilation and 2 pads >= 0, has ",
               x);
    return {};
  }
  SmallVector<int64_t> shape{x.getDimSize(0), x.getDimSize(1)};
  bool fits = true; // C1: a window that lies in the padding alone has no value
  for (int64_t i = 0; i < spatial; ++i) {
    shape.push_back(windowExtent(x.getDimSize(2 + i), k[i], s[i], p[i], p[spatial + i], d[i], ceil));
    fits &= shape.back() >= 1 && p[i] < (k[i] - 1) * d[i] + 1;
  }
  if (!fits) {
    auto text = [](int64_t number) { return std::to_string(number); };
    (void)fail(loc, "pooling window ", llvm::join(llvm::map_range(k, text), "x"), " with pads ",
               llvm::join(llvm::map_range(p, text), ","), " does not fit ", x);
    return {};
  }
  return like(x, shape);
}

/// Absent dilations are 1.
static SmallVector<int64_t> dilationsOf(std::optional<ArrayRef<int64_t>> given, ArrayRef<int64_t> kernel) {
  return given ? SmallVector<int64_t>(*given) : SmallVector<int64_t>(kernel.size(), 1);
}

// y, and for each of its elements the position of the largest one in the window, counted in row-major order: in a byte
// where all of them fit.
INFER(MaxPoolOp) {
  auto y = poolType(loc, ranked(op.getX()), op.getKernel(), op.getStrides(), op.getPads(), op.getDilations(),
                    op.getCeilMode());
  if (!y)
    return failure();
  int64_t positions = saturatedProduct(op.getKernel()); // C2
  types.append(
      {y, RankedTensorType::get(y.getShape(), IntegerType::get(context, positions < 256 ? 8 : 32), y.getEncoding())});
  return success();
}

INFER(AveragePoolOp) {
  auto y = poolType(loc, ranked(op.getX()), op.getKernel(), op.getStrides(), op.getPads(),
                    dilationsOf(op.getDilations(), op.getKernel()), op.getCeilMode());
  if (!y)
    return failure();
  types.push_back(y);
  return success();
}

INFER(ResizeOp) {
  auto x = ranked(op.getX());
  if (x.getRank() != 4 || !positive(op.getSize(), 2) || !(op.getScaleH().convertToDouble() > 0) ||
      !(op.getScaleW().convertToDouble() > 0)) // C1
    return fail(loc, "resize needs rank 4, 2 positive extents and positive scales, has ", x);
  types.push_back(like(x, {x.getDimSize(0), x.getDimSize(1), op.getSize()[0], op.getSize()[1]}));
  return success();
}

SINGLE(MaxPoolOp, MaxPoolBackwardOp::create(b, getLoc(), getX().getType(), dy, getIndices(), getKernelAttr(),
                                            getStridesAttr(), getPadsAttr(), getDilationsAttr()))
SINGLE(AveragePoolOp,
       AveragePoolBackwardOp::create(b, getLoc(), getX().getType(), dy, getKernelAttr(), getStridesAttr(),
                                     getPadsAttr(), getCountIncludePadAttr(), getDilationsAttr()))
SINGLE(ResizeOp, ResizeBackwardOp::create(b, getLoc(), getX().getType(), dy, getScaleHAttr(), getScaleWAttr(),
                                          getModeAttr(), getCoordinatesAttr(), getNearestAttr()))

/// The backward op does not know whether the forward one rounded up: either result will do.
template <typename Forward, typename Op>
static LogicalResult mirrorsPool(Op op, typename Forward::Properties p, ValueRange wanted) {
  p.kernel = op.getKernelAttr(), p.strides = op.getStridesAttr(), p.pads = op.getPadsAttr();
  p.ceil_mode = BoolAttr::get(op.getContext(), true);
  if (succeeded(mirrors<Forward>(op, {op.getDx()}, p, wanted, /*silent=*/true)))
    return success();
  p.ceil_mode = BoolAttr::get(op.getContext(), false);
  return mirrors<Forward>(op, {op.getDx()}, p, wanted);
}

LogicalResult MaxPoolBackwardOp::verify() {
  MaxPoolOp::Properties p;
  p.dilations = getDilationsAttr();
  return mirrorsPool<MaxPoolOp>(*this, p, {getDy(), getIndices()});
}

LogicalResult AveragePoolBackwardOp::verify() {
  AveragePoolOp::Properties p;
  p.count_include_pad = getCountIncludePadAttr(), p.dilations = getDilationsAttr();
  return mirrorsPool<AveragePoolOp>(*this, p, {getDy()});
}

// The size that the forward op was asked for is that of dy; scales are not its quotient with x where the model gave
// them.
LogicalResult ResizeBackwardOp::verify() {
  ArrayRef<int64_t> dy = extents(getDy());
  if (dy.size() != 4)
    return emitOpError() << "needs rank 4, has " << getDy().getType();
  ResizeOp::Properties p;
  p.size = DenseI64ArrayAttr::get(getContext(), dy.take_back(2));
  p.scale_h = getScaleHAttr(), p.scale_w = getScaleWAttr();
  return mirrors<ResizeOp>(*this, {getDx()}, p, {getDy()});
}

template <typename Op> static Window poolWindow(Op pool) {
  return windowOf(pool.getKernel(), pool.getStrides(), pool.getPads(), pool.getDilationsAttr());
}

KERNEL(MaxPoolOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::MaxPool{calls.shape(in(0)), calls.shape(out(0)), poolWindow(*this)}, "forward",
                      {in(0), out(0), out(1), scratchSlot});
}

KERNEL(MaxPoolBackwardOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::MaxPool{calls.shape(out(0)), calls.shape(in(0)), poolWindow(*this)}, "backward",
                      {in(0), in(1), out(0), scratchSlot});
}

KERNEL(AveragePoolOp) {
  KernelCalls calls(*this);
  return calls.object(
      arguments::AveragePool{calls.shape(in(0)), calls.shape(out(0)), poolWindow(*this), getCountIncludePad()},
      "forward", {in(0), out(0), scratchSlot});
}

KERNEL(AveragePoolBackwardOp) {
  KernelCalls calls(*this);
  return calls.object(
      arguments::AveragePool{calls.shape(out(0)), calls.shape(in(0)), poolWindow(*this), getCountIncludePad()},
      "backward", {in(0), out(0), scratchSlot});
}

/// Forward and backward are methods of one class, constructed with x and y of the forward op.
template <typename Op> static Calls resize(Op op, StringRef method, Slot x, Slot y) {
  KernelCalls calls(op);
  arguments::Resize kernel{};
  kernel.x = calls.shape(x), kernel.y = calls.shape(y);
  kernel.scaleH = op.getScaleH().convertToFloat(), kernel.scaleW = op.getScaleW().convertToFloat();
  static_assert(static_cast<int>(train::ResizeMode::Linear) == static_cast<int>(sluice::ResizeMode::Linear) &&
                static_cast<int>(Coordinates::Asymmetric) == static_cast<int>(ResizeCoordinates::Asymmetric) &&
                static_cast<int>(NearestMode::Ceil) == static_cast<int>(NearestRounding::Ceil));
  kernel.mode = static_cast<sluice::ResizeMode>(op.getMode());
  kernel.coordinates = static_cast<ResizeCoordinates>(op.getCoordinates());
  kernel.rounding = static_cast<NearestRounding>(op.getNearest());
  return calls.object(kernel, method, {in(0), out(0)});
}

KERNEL(ResizeOp) { return resize(*this, "forward", in(0), out(0)); }
KERNEL(ResizeBackwardOp) { return resize(*this, "backward", out(0), in(0)); }
