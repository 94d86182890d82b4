// SPDX-License-Identifier: Apache-2.0
// Result types of the forward ops from operands and attributes, and with them the verifiers: what inference refuses
// does not verify. Inferred types keep the encoding of the first operand where the result is a tensor of the same kind;
// declared types may differ from inferred ones in their encoding alone.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

using Types = SmallVectorImpl<Type>;
using MaybeLoc = std::optional<Location>;

template <typename... Parts> static LogicalResult fail(MaybeLoc loc, Parts &&...parts) {
  if (!loc)
    return failure();
  InFlightDiagnostic diagnostic = emitError(*loc);
  (diagnostic << ... << parts);
  return failure();
}

static RankedTensorType ranked(Value value) { return cast<RankedTensorType>(value.getType()); }
static RankedTensorType like(RankedTensorType type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, type.getElementType(),
                               shape.size() == 4 && type.getRank() == 4 ? type.getEncoding() : Attribute());
}
static bool positive(ArrayRef<int64_t> list, size_t count) {
  return list.size() == count && llvm::all_of(list, [](int64_t v) { return v > 0; });
}
static bool nonNegative(ArrayRef<int64_t> list, size_t count) {
  return list.size() == count && llvm::all_of(list, [](int64_t v) { return v >= 0; });
}

/// Output extent of a sliding window, or -1 when no window fits.
static int64_t windowExtent(int64_t in, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation,
                            bool ceil = false) {
  int64_t span = (kernel - 1) * dilation + 1, room = in + before + after - span;
  if (room < (ceil ? 1 - stride : 0)) // ceil_mode takes a window that is only begun
    return -1;
  int64_t out = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
  // With ceil_mode the last window must start inside the image or its leading padding (ONNX and PyTorch).
  if (ceil && (out - 1) * stride >= in + before)
    --out;
  return out;
}

/// Declared types may differ from inferred ones in their encoding, and floats in their width: layouts and precision are
/// assigned after the op is made, and have verifiers of their own.
static bool compatible(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = cast<RankedTensorType>(x), t = cast<RankedTensorType>(y);
    if (s.getShape() != t.getShape() || (s.getElementType() != t.getElementType() && !(isReal(s) && isReal(t))))
      return false;
  }
  return true;
}
#define COMPATIBLE(Op)                                                                                                 \
  bool Op::isCompatibleReturnTypes(TypeRange a, TypeRange b) { return compatible(a, b); }
#define INFER(Op)                                                                                                      \
  COMPATIBLE(Op)                                                                                                       \
  LogicalResult Op::inferReturnTypes([[maybe_unused]] MLIRContext *context, [[maybe_unused]] MaybeLoc loc,             \
                                     Op::Adaptor op, Types &types)

INFER(ConvOp) {
  auto x = ranked(op.getX()), w = ranked(op.getW());
  int64_t group = op.getGroup();
  if (x.getRank() != 4 || w.getRank() != 4 || group < 1 || x.getDimSize(1) != group * w.getDimSize(1) ||
      w.getDimSize(0) % group) // C1
    return fail(loc, "convolution of ", x, " with weights ", w, " in ", group, " groups does not fit");
  auto s = op.getStrides(), p = op.getPads(), d = op.getDilations();
  if (!positive(s, 2) || !nonNegative(p, 4) || !positive(d, 2)) // C2
    return fail(loc, "convolution needs 2 positive strides, 4 pads >= 0 and 2 positive dilations");
  int64_t h = windowExtent(x.getDimSize(2), w.getDimSize(2), s[0], p[0], p[2], d[0]);
  int64_t v = windowExtent(x.getDimSize(3), w.getDimSize(3), s[1], p[1], p[3], d[1]);
  if (h < 1 || v < 1)
    return fail(loc, "convolution window ", w.getDimSize(2), "x", w.getDimSize(3),
                " does not fit into the padded image of ", x);
  if (op.getBias() && ranked(op.getBias()).getShape() != ArrayRef<int64_t>{w.getDimSize(0)}) // C3
    return fail(loc, "convolution has ", w.getDimSize(0), " outputs but a bias ", ranked(op.getBias()));
  types.push_back(like(x, {x.getDimSize(0), w.getDimSize(0), h, v}));
  return success();
}

INFER(ConvTransposeOp) {
  auto x = ranked(op.getX()), w = ranked(op.getW());
  int64_t group = op.getGroup();
  auto size = op.getOutputSize(), s = op.getStrides(), p = op.getPads(), d = op.getDilations();
  if (x.getRank() != 4 || w.getRank() != 4 || group < 1 || x.getDimSize(1) != w.getDimSize(0) ||
      w.getDimSize(0) % group) // C1
    return fail(loc, "transposed convolution of ", x, " with weights ", w, " in ", group, " groups does not fit");
  if (!positive(s, 2) || !nonNegative(p, 4) || !positive(d, 2) || !positive(size, 2))
    return fail(loc, "transposed convolution needs 2 positive strides, 4 pads >= 0, 2 positive dilations and a "
                     "positive output size");
  for (int i = 0; i < 2; ++i) // C2
    if (windowExtent(size[i], w.getDimSize(2 + i), s[i], p[i], p[2 + i], d[i]) != x.getDimSize(2 + i))
      return fail(loc, "transposed convolution cannot map extent ", x.getDimSize(2 + i), " to ", size[i]);
  types.push_back(like(x, {x.getDimSize(0), w.getDimSize(1) * group, size[0], size[1]}));
  return success();
}

INFER(BatchNormOp) {
  auto x = ranked(op.getX()), scale = ranked(op.getScale());
  if (x.getRank() < 2 || scale.getShape() != ArrayRef<int64_t>{x.getDimSize(1)} || ranked(op.getBias()) != scale) // C1
    return fail(loc, "batch normalization of ", x, " has scale ", scale, " and bias ", ranked(op.getBias()));
  types.append({x, scale, scale});
  return success();
}

INFER(BatchNormStatisticsOp) {
  auto x = ranked(op.getX());
  if (x.getRank() < 2)
    return fail(loc, "batch normalization needs rank 2 or more, has ", x);
  auto channel = RankedTensorType::get({x.getDimSize(1)}, Float32Type::get(context));
  types.append({channel, channel});
  return success();
}

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

INFER(LrnOp) {
  if (ranked(op.getX()).getRank() != 4 || op.getSize() < 1)
    return fail(loc, "lrn needs rank 4 and a positive size, has ", ranked(op.getX()), " and ", op.getSize());
  types.push_back(op.getX().getType());
  return success();
}

bool sluice::train::broadcast(ArrayRef<int64_t> a, ArrayRef<int64_t> b, SmallVectorImpl<int64_t> &out) {
  out.assign(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return false;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

INFER(MatmulOp) {
  auto a = ranked(op.getA()), b = ranked(op.getB());
  if (a.getRank() < 2 || b.getRank() < 2)
    return fail(loc, "matrix product needs rank 2 or more, has ", a, " and ", b);
  int64_t m = a.getDimSize(a.getRank() - (op.getTransposeA() ? 1 : 2)),
          k = a.getDimSize(a.getRank() - (op.getTransposeA() ? 2 : 1));
  int64_t l = b.getDimSize(b.getRank() - (op.getTransposeB() ? 1 : 2)),
          n = b.getDimSize(b.getRank() - (op.getTransposeB() ? 2 : 1));
  SmallVector<int64_t> shape;
  if (k != l || !broadcast(a.getShape().drop_back(2), b.getShape().drop_back(2), shape)) // C1
    return fail(loc, "matrix product of ", a, " and ", b, " does not fit: inner extents ", k, " and ", l);
  if (op.getBias()) { // C2
    SmallVector<int64_t> out;
    auto bias = ranked(op.getBias());
    if (a.getRank() != 2 || b.getRank() != 2 || bias.getRank() > 2 || !broadcast(bias.getShape(), {m, n}, out) ||
        out != SmallVector<int64_t>{m, n})
      return fail(loc, "bias ", bias, " does not broadcast to ", m, "x", n);
  }
  shape.append({m, n});
  types.push_back(RankedTensorType::get(shape, a.getElementType()));
  return success();
}

INFER(SoftmaxOp) {
  auto x = ranked(op.getX());
  if (op.getAxis() >= static_cast<uint64_t>(x.getRank())) // C1
    return fail(loc, "softmax axis ", op.getAxis(), " of ", x);
  types.push_back(x);
  return success();
}

INFER(ConcatOp) {
  if (op.getXs().empty())
    return fail(loc, "concat of nothing");
  auto first = ranked(op.getXs().front());
  auto axis = op.getAxis();
  SmallVector<int64_t> shape(first.getShape());
  if (axis >= shape.size())
    return fail(loc, "concat axis ", axis, " of ", first);
  shape[axis] = 0;
  for (Value x : op.getXs()) { // C1
    auto type = ranked(x);
    for (size_t i = 0; i < shape.size(); ++i)
      if (type.getRank() != first.getRank() || (i != axis && type.getDimSize(i) != shape[i]))
        return fail(loc, "concat of ", first, " and ", type, " along dimension ", axis);
    shape[axis] += type.getDimSize(axis);
  }
  types.push_back(like(first, shape));
  return success();
}

INFER(SliceOp) {
  auto x = ranked(op.getX());
  int64_t axis = op.getAxis(), start = op.getStart(), length = op.getLength();
  if (axis < 0 || axis >= x.getRank() || start < 0 || length < 1 || start > x.getDimSize(axis) - length) // C1
    return fail(loc, "slice [", start, ", ", start, " + ", length, ") of dimension ", axis, " of ", x);
  SmallVector<int64_t> shape(x.getShape());
  shape[axis] = length;
  types.push_back(like(x, shape));
  return success();
}

INFER(TransposeOp) {
  auto x = ranked(op.getX());
  SmallVector<int64_t> shape, seen(op.getPermutation());
  llvm::sort(seen);
  if (seen != llvm::to_vector(llvm::seq<int64_t>(0, x.getRank()))) // C1
    return fail(loc, "transpose of ", x, " by something that is no permutation of its dimensions");
  for (int64_t i : op.getPermutation())
    shape.push_back(x.getDimSize(i));
  types.push_back(RankedTensorType::get(shape, x.getElementType()));
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

static LogicalResult lossType(MaybeLoc loc, RankedTensorType x, RankedTensorType target, bool classes, Types &types) {
  SmallVector<int64_t> wanted(x.getShape());
  if (classes && x.getRank() >= 2)
    wanted.erase(wanted.begin() + 1);
  if (x.getRank() < (classes ? 2 : 0) || target.getShape() != ArrayRef<int64_t>(wanted)) // C1
    return fail(loc, "loss of ", x, " against a target of ", target);
  types.push_back(RankedTensorType::get({}, x.getElementType()));
  return success();
}
INFER(SoftmaxCrossEntropyOp) { return lossType(loc, ranked(op.getX()), ranked(op.getTarget()), true, types); }
INFER(MseOp) { return lossType(loc, ranked(op.getX()), ranked(op.getTarget()), false, types); }
INFER(BceWithLogitsOp) { return lossType(loc, ranked(op.getX()), ranked(op.getTarget()), false, types); }

INFER(DropoutOp) {
  const int64_t count = elements(op.getX().getType()), group = op.getGroup();
  if (group < 1 || count % group) // C1
    return fail(loc, "groups of ", group, " do not divide ", count, " elements");
  types.push_back(op.getX().getType());
  return success();
}

#define SAME_TYPE(Op)                                                                                                  \
  INFER(Op) {                                                                                                          \
    types.push_back(op.getX().getType());                                                                              \
    return success();                                                                                                  \
  }
SAME_TYPE(ReluOp)
SAME_TYPE(LeakyReluOp)
SAME_TYPE(ClipOp)
SAME_TYPE(SigmoidOp)
SAME_TYPE(TanhOp)
SAME_TYPE(ScaleOp)
SAME_TYPE(ChannelAffineOp)

static LogicalResult broadcastType(MaybeLoc loc, RankedTensorType a, RankedTensorType b, Types &types) {
  SmallVector<int64_t> shape;
  if (!broadcast(a.getShape(), b.getShape(), shape))
    return fail(loc, "operands ", a, " and ", b, " do not broadcast");
  types.push_back(RankedTensorType::get(shape, a.getElementType(),
                                        a.getShape() == ArrayRef<int64_t>(shape) ? a.getEncoding() : b.getEncoding()));
  return success();
}
INFER(AddOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(SubOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(MulOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(DivOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
