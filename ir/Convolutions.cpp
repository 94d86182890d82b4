// SPDX-License-Identifier: Apache-2.0
// Convolutions, transposed ones and their gradients.
#include "ir/Rules.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Whether x and w are both images or both volumes.
static bool haveOneRank(RankedTensorType x, RankedTensorType w) {
  return (x.getRank() == 4 || x.getRank() == 5) && w.getRank() == x.getRank();
}

// y [N,O,d..] of x [N,C,d..] and w [O,C/group,k..]. Pads are those before each spatial dimension, then those after, as
// ONNX lists them.
INFER(ConvOp) {
  auto x = ranked(op.getX()), w = ranked(op.getW());
  int64_t group = op.getGroup();
  if (!haveOneRank(x, w) || group < 1 || x.getDimSize(1) != group * w.getDimSize(1) || w.getDimSize(0) % group) // C1
    return fail(loc, "convolution of ", x, " with weights ", w, " in ", group, " groups does not fit");
  const int64_t spatial = x.getRank() - 2;
  auto s = op.getStrides(), p = op.getPads(), d = op.getDilations();
  if (!positive(s, spatial) || !nonNegative(p, 2 * spatial) || !positive(d, spatial)) // C2
    return fail(loc, "convolution needs ", spatial, " positive strides, ", 2 * spatial, " pads >= 0 and ", spatial,
                " positive dilations");
  SmallVector<int64_t> shape{x.getDimSize(0), w.getDimSize(0)};
  for (int64_t i = 0; i < spatial; ++i)
    shape.push_back(windowExtent(x.getDimSize(2 + i), w.getDimSize(2 + i), s[i], p[i], p[spatial + i], d[i]));
  if (llvm::any_of(ArrayRef(shape).drop_front(2), [](int64_t extent) { return extent < 1; })) {
    auto kernel = llvm::map_range(w.getShape().drop_front(2), [](int64_t extent) { return std::to_string(extent); });
    return fail(loc, "convolution window ", llvm::join(kernel, "x"), " does not fit into the padded image of ", x);
  }
  if (op.getBias() && ranked(op.getBias()).getShape() != ArrayRef<int64_t>{w.getDimSize(0)}) // C3
    return fail(loc, "convolution has ", w.getDimSize(0), " outputs but a bias ", ranked(op.getBias()));
  types.push_back(like(x, shape));
  return success();
}

// y [N,O,size..] of x [N,C,d..] and w [C,O/group,k..], the weights of the convolution that maps y to x. The size is an
// attribute because strides above 1 map several sizes to one x.
INFER(ConvTransposeOp) {
  auto x = ranked(op.getX()), w = ranked(op.getW());
  int64_t group = op.getGroup();
  auto size = op.getOutputSize(), s = op.getStrides(), p = op.getPads(), d = op.getDilations();
  if (!haveOneRank(x, w) || group < 1 || x.getDimSize(1) != w.getDimSize(0) || w.getDimSize(0) % group) // C1
    return fail(loc, "transposed convolution of ", x, " with weights ", w, " in ", group, " groups does not fit");
  const int64_t spatial = x.getRank() - 2;
  if (!positive(s, spatial) || !nonNegative(p, 2 * spatial) || !positive(d, spatial) || !positive(size, spatial))
    return fail(loc, "transposed convolution needs ", spatial, " positive strides, ", 2 * spatial, " pads >= 0, ",
                spatial, " positive dilations and a positive output size");
  for (int64_t i = 0; i < spatial; ++i) // C2
    if (windowExtent(size[i], w.getDimSize(2 + i), s[i], p[i], p[spatial + i], d[i]) != x.getDimSize(2 + i))
      return fail(loc, "transposed convolution cannot map extent ", x.getDimSize(2 + i), " to ", size[i]);
  SmallVector<int64_t> shape{x.getDimSize(0), w.getDimSize(1) * group};
  llvm::append_range(shape, size);
  types.push_back(like(x, shape));
  return success();
}

// The weights' gradient comes first: it is mostly the last op that reads x, whose bytes are free by the time dx is
// made. One op gives both gradients of weights and bias, so dw is there even where the bias alone is trained.
GRADIENT(ConvOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  bool bias = getBias() && gradients.wanted(getBias());
  if (gradients.wanted(getW()) || bias) {
    auto op = ConvBackwardWeightOp::create(b, getLoc(), getW().getType(), bias ? getBias().getType() : Type(), dy,
                                           getX(), getStridesAttr(), getPadsAttr(), getDilationsAttr(), getGroupAttr());
    if (gradients.wanted(getW()))
      gradients.add(b, getLoc(), getW(), op.getDw());
    if (bias)
      gradients.add(b, getLoc(), getBias(), op.getDbias());
  }
  if (gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(),
                  ConvBackwardDataOp::create(b, getLoc(), getX().getType(), dy, getW(), getStridesAttr(), getPadsAttr(),
                                             getDilationsAttr(), getGroupAttr()));
  return success();
}

bool ConvOp::isWeightOperand(unsigned i) { return i >= 1; }

// y is the data gradient of a convolution that maps y to x: its gradients are that convolution and its weight gradient.
GRADIENT(ConvTransposeOp) {
  Value dy = gradients.of(getY());
  if (dy && gradients.wanted(getW())) {
    auto op = ConvBackwardWeightOp::create(b, getLoc(), getW().getType(), Type(), getX(), dy, getStridesAttr(),
                                           getPadsAttr(), getDilationsAttr(), getGroupAttr());
    gradients.add(b, getLoc(), getW(), op.getDw());
  }
  if (dy && gradients.wanted(getX()))
    gradients.add(b, getLoc(), getX(),
                  ConvOp::create(b, getLoc(), dy, getW(), Value(), getStridesAttr(), getPadsAttr(), getDilationsAttr(),
                                 getGroupAttr()));
  return success();
}

bool ConvTransposeOp::isWeightOperand(unsigned i) { return i == 1; }

/// The attributes of the convolution that a gradient op, or one with statistics, belongs to: they have the same names.
template <typename Op> static ConvOp::Properties convolutionOf(Op op) {
  ConvOp::Properties p;
  p.strides = op.getStridesAttr(), p.pads = op.getPadsAttr(), p.dilations = op.getDilationsAttr(),
  p.group = op.getGroupAttr();
  return p;
}

LogicalResult ConvBackwardDataOp::verify() {
  return mirrors<ConvOp>(*this, {getDx(), getW()}, convolutionOf(*this), {getDy()});
}

INFER(ConvStatisticsOp) {
  ConvOp::Adaptor convolution({op.getX(), op.getW()}, DictionaryAttr::get(context), convolutionOf(op));
  if (failed(ConvOp::inferReturnTypes(context, loc, convolution, types))) // C1
    return failure();
  auto channel = RankedTensorType::get({ranked(op.getW()).getDimSize(0)}, Float32Type::get(context));
  types.append({channel, channel});
  return success();
}

LogicalResult ConvBackwardNormOp::verify() {
  SmallVector<Value> full{getDz(), getZ(), getX()};
  if (getAddend())
    full.push_back(getAddend());
  if (failed(sameShapes(*this, full)) ||
      failed(mirrors<ConvOp>(*this, {getDz(), getW()}, convolutionOf(*this), {getDy()})))
    return failure(); // C1
  const int64_t channels = ranked(getDz()).getDimSize(1);
  for (Value vector : {getMean(), getRstd(), getDscale(), getDbias()})
    if (extents(vector) != ArrayRef<int64_t>{channels}) // C2
      return emitOpError() << "has statistics " << vector.getType() << " of " << channels << " channels";
  return success();
}

LogicalResult ConvBackwardWeightOp::verify() {
  SmallVector<Value> operands{getX(), getDw()};
  if (getDbias())
    operands.push_back(getDbias());
  return mirrors<ConvOp>(*this, operands, convolutionOf(*this), {getDy()});
}

/// What both classes of convolutions take.
template <typename Kernel, typename Op> static Kernel convolution(Op op, ConvPass pass, Slot x, Slot w, Slot y) {
  const KernelCalls calls(op);
  const Shape weight = calls.shape(w);
  Kernel kernel{};
  kernel.pass = pass;
  kernel.x = calls.shape(x), kernel.w = weight, kernel.y = calls.shape(y);
  kernel.window = windowOf({weight.dims + 2, static_cast<size_t>(weight.rank - 2)}, op.getStrides(), op.getPads(),
                           op.getDilationsAttr());
  kernel.groups = static_cast<int64_t>(op.getGroup());
  kernel.algorithm = calls.algorithm();
  kernel.type = calls.type(x);
  return kernel;
}

template <typename Op>
static Calls convolution(Op op, ConvPass pass, Slot x, Slot w, Slot y, bool bias, StringRef method,
                         ArrayRef<Slot> operands) {
  auto kernel = convolution<arguments::Conv>(op, pass, x, w, y);
  kernel.bias = bias;
  return KernelCalls(op).object(kernel, method, operands);
}

KERNEL(ConvOp) {
  return convolution(*this, ConvPass::Forward, in(0), in(1), out(0), !!getBias(), "forward",
                     {in(0), in(1), getBias() ? in(2) : noSlot, out(0), scratchSlot});
}

KERNEL(ConvBackwardDataOp) {
  return convolution(*this, ConvPass::BackwardData, out(0), in(1), in(0), false, "backwardData",
                     {in(0), in(1), out(0), scratchSlot});
}

KERNEL(ConvBackwardWeightOp) {
  return convolution(*this, ConvPass::BackwardWeight, in(1), out(0), in(0), !!getDbias(), "backwardWeight",
                     {in(0), in(1), out(0), getDbias() ? out(1) : noSlot, scratchSlot});
}

KERNEL(ConvStatisticsOp) {
  auto kernel = convolution<arguments::ConvNorm>(*this, ConvPass::Forward, in(0), in(1), out(0));
  kernel.epsilon = getEpsilon().convertToFloat();
  return KernelCalls(*this).object(kernel, "statistics", {in(0), in(1), out(0), out(1), out(2), scratchSlot});
}

KERNEL(ConvBackwardNormOp) {
  auto kernel = convolution<arguments::ConvNorm>(*this, ConvPass::BackwardData, out(0), in(1), in(0));
  kernel.addend = !!getAddend();
  return KernelCalls(*this).object(
      kernel, "gradient",
      {in(0), in(1), in(2), in(3), in(4), in(5), getAddend() ? in(6) : noSlot, out(0), out(1), out(2), scratchSlot});
}

KERNEL(ConvTransposeOp) { // the data gradient of the convolution that maps y to x
  return convolution(*this, ConvPass::BackwardData, out(0), in(1), in(0), false, "backwardData",
                     {in(0), in(1), out(0), scratchSlot});
}

/// Every element of `output` takes one multiply-add for every weight of its filter.
static int64_t convFlops(Type output, Type weights) {
  auto w = cast<RankedTensorType>(weights);
  return saturatedProduct({2, elements(output), elements(w) / w.getDimSize(0)});
}

/// Of the convolution with the op's attributes that maps x to y.
template <typename Op> static OpWork convWork(Op op, ConvPass pass, Value weights, Value y) {
  ConvWork work{pass, {}, {}, {}, static_cast<int64_t>(op.getGroup())};
  work.weights.assign(extents(weights)), work.y.assign(extents(y)), work.strides.assign(op.getStrides());
  return work;
}

OpWork ConvOp::work() { return convWork(*this, ConvPass::Forward, getW(), getY()); }
OpWork ConvStatisticsOp::work() { return convWork(*this, ConvPass::Forward, getW(), getY()); }
OpWork ConvBackwardDataOp::work() { return convWork(*this, ConvPass::BackwardData, getW(), getDy()); }
OpWork ConvBackwardNormOp::work() { return convWork(*this, ConvPass::BackwardData, getW(), getDy()); }
OpWork ConvBackwardWeightOp::work() { return convWork(*this, ConvPass::BackwardWeight, getDw(), getDy()); }
OpWork ConvTransposeOp::work() { return convWork(*this, ConvPass::BackwardData, getW(), getX()); }

int64_t ConvOp::flops() { return convFlops(getY().getType(), getW().getType()); }
int64_t ConvStatisticsOp::flops() { return convFlops(getY().getType(), getW().getType()); }
int64_t ConvBackwardNormOp::flops() { return convFlops(getDy().getType(), getW().getType()); }
int64_t ConvTransposeOp::flops() { return convFlops(getX().getType(), getW().getType()); }
int64_t ConvBackwardDataOp::flops() { return convFlops(getDy().getType(), getW().getType()); }
int64_t ConvBackwardWeightOp::flops() { return convFlops(getDy().getType(), getDw().getType()); }

PrecisionPreference ConvOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference ConvStatisticsOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference ConvBackwardNormOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference ConvTransposeOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference ConvBackwardDataOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference ConvBackwardWeightOp::precisionPreference() { return PrecisionPreference::Product; }

// Biases are parameters; they join sums that are f32.
bool ConvOp::isOperandWide(unsigned i) { return i >= 2; }
bool ConvBackwardNormOp::isOperandWide(unsigned i) { return i == 4 || i == 5; }

// The optimizer adds weight gradients to f32 parameters; those that assign-precision lets a cast turn are halves. Sums
// stand for many values: means, variances, gradients of what was broadcast.
bool ConvBackwardWeightOp::isResultWide(unsigned i) { return i != 0 || !isHalf(getDw().getType()); }
bool ConvStatisticsOp::isResultWide(unsigned i) { return i >= 1; }
bool ConvBackwardNormOp::isResultWide(unsigned i) { return i >= 1; }

bool ConvOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvStatisticsOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvBackwardNormOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvTransposeOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvBackwardDataOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvBackwardWeightOp::isResultLayoutFixed(unsigned result) { return result == 0; }
