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
  if (x.getRank() != 4 || !positive(k, 2) || !positive(s, 2) || !nonNegative(p, 4) || !positive(d, 2)) {
    (void)fail(loc, "pooling needs rank 4, 2 positive kernel extents, strides and dilations and 4 pads >= 0, has ", x);
    return {};
  }
  int64_t h = windowExtent(x.getDimSize(2), k[0], s[0], p[0], p[2], d[0], ceil);
  int64_t v = windowExtent(x.getDimSize(3), k[1], s[1], p[1], p[3], d[1], ceil);
  bool outside = false; // C1: a window that lies in the padding alone has no value
  for (int i = 0; i < 2; ++i)
    outside |= p[i] >= (k[i] - 1) * d[i] + 1;
  if (h < 1 || v < 1 || outside) {
    (void)fail(loc, "pooling window ", k[0], "x", k[1], " with pads ", p[0], ",", p[1], ",", p[2], ",", p[3],
               " does not fit ", x);
    return {};
  }
  return like(x, {x.getDimSize(0), x.getDimSize(1), h, v});
}

INFER(MaxPoolOp) {
  auto y = poolType(loc, ranked(op.getX()), op.getKernel(), op.getStrides(), op.getPads(), op.getDilations(),
                    op.getCeilMode());
  if (!y)
    return failure();
  int64_t positions = op.getKernel()[0] * op.getKernel()[1]; // C2
  types.append(
      {y, RankedTensorType::get(y.getShape(), IntegerType::get(context, positions < 256 ? 8 : 32), y.getEncoding())});
  return success();
}

INFER(AveragePoolOp) {
  auto y = poolType(loc, ranked(op.getX()), op.getKernel(), op.getStrides(), op.getPads(), {1, 1}, op.getCeilMode());
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
SINGLE(AveragePoolOp, AveragePoolBackwardOp::create(b, getLoc(), getX().getType(), dy, getKernelAttr(),
                                                    getStridesAttr(), getPadsAttr(), getCountIncludePadAttr()))
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
  p.count_include_pad = getCountIncludePadAttr();
  return mirrorsPool<AveragePoolOp>(*this, p, {getDy()});
}

LogicalResult ResizeBackwardOp::verify() {
  ArrayRef<int64_t> dy = extents(getDy());
  if (dy.size() != 4)
    return emitOpError() << "needs rank 4, has " << getDy().getType();
  ResizeOp::Properties p;
  p.size = DenseI64ArrayAttr::get(getContext(), dy.take_back(2));
  p.scale_h = getScaleHAttr(), p.scale_w = getScaleWAttr();
  return mirrors<ResizeOp>(*this, {getDx()}, p, {getDy()});
}

KERNEL(MaxPoolOp) {
  KernelCalls calls(*this);
  return calls.object("MaxPool", "forward", {in(0), out(0), out(1), scratchSlot}, calls.shape(in(0)),
                      calls.shape(out(0)),
                      windowOf(getContext(), getKernel(), getStrides(), getPads(), getDilationsAttr()));
}

KERNEL(MaxPoolBackwardOp) {
  KernelCalls calls(*this);
  return calls.object("MaxPool", "backward", {in(0), in(1), out(0), scratchSlot}, calls.shape(out(0)),
                      calls.shape(in(0)),
                      windowOf(getContext(), getKernel(), getStrides(), getPads(), getDilationsAttr()));
}

KERNEL(AveragePoolOp) {
  KernelCalls calls(*this);
  return calls.object("AveragePool", "forward", {in(0), out(0), scratchSlot}, calls.shape(in(0)), calls.shape(out(0)),
                      windowOf(getContext(), getKernel(), getStrides(), getPads()), getCountIncludePad());
}

KERNEL(AveragePoolBackwardOp) {
  KernelCalls calls(*this);
  return calls.object("AveragePool", "backward", {in(0), out(0), scratchSlot}, calls.shape(out(0)), calls.shape(in(0)),
                      windowOf(getContext(), getKernel(), getStrides(), getPads()), getCountIncludePad());
}

template <typename Op> static Calls resize(Op op, StringRef method, Slot x, Slot y) {
  auto named = [](StringRef type, StringRef word) {
    return Enumerator{type, llvm::convertToCamelFromSnakeCase(word, /*capitalizeFirst=*/true)};
  };
  KernelCalls calls(op);
  return calls.object("Resize", method, {in(0), out(0)}, calls.shape(x), calls.shape(y), op.getScaleH(), op.getScaleW(),
                      named("ResizeMode", stringifyResizeMode(op.getMode())),
                      named("ResizeCoordinates", stringifyCoordinates(op.getCoordinates())),
                      named("NearestRounding", stringifyNearestMode(op.getNearest())));
}

KERNEL(ResizeOp) { return resize(*this, "forward", in(0), out(0)); }
KERNEL(ResizeBackwardOp) { return resize(*this, "backward", out(0), in(0)); }
