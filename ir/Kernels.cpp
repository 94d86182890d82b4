// SPDX-License-Identifier: Apache-2.0
// The HasKernel methods, together: which kernels of the runtime an op becomes, with which arguments.
#include "ir/KernelCall.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

using Calls = SmallVector<sched::CallAttr>;

#define KERNEL(Op) SmallVector<sched::CallAttr> Op::kernelCalls()

// Products.

/// Element types are the last arguments, left out where all are F32.
template <typename Op>
static KernelCalls convolution(Op op, ConvPass pass, Slot x, Slot w, Slot y, bool bias, StringRef method,
                               ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  const Shape weight = calls.shape(w);
  calls.object("Conv", method, operands, pass, calls.shape(x), weight, calls.shape(y),
               windowOf(op.getContext(), {weight[2], weight[3]}, op.getStrides(), op.getPads(), op.getDilationsAttr()),
               static_cast<int64_t>(op.getGroup()), bias, calls.algorithm());
  if (calls.type(x) != DataType::F32)
    calls.with(calls.type(x));
  return calls;
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
KERNEL(ConvTransposeOp) { // the data gradient of the convolution that maps y to x
  return convolution(*this, ConvPass::BackwardData, out(0), in(1), in(0), false, "backwardData",
                     {in(0), in(1), out(0), scratchSlot});
}

/// As many of the last arguments as differ from the constructor's defaults.
KERNEL(MatmulOp) {
  KernelCalls calls(*this);
  const float alpha = getAlpha().convertToFloat(), beta = getBeta().convertToFloat();
  const Shape bias = getBias() ? calls.shape(in(2)) : Shape();
  const AlgorithmAttr algorithm = calls.algorithm();
  calls.object("Matmul", "run", {in(0), in(1), getBias() ? in(2) : noSlot, out(0), scratchSlot}, calls.shape(in(0)),
               calls.shape(in(1)), calls.shape(out(0)), getTransposeA(), getTransposeB());
  const bool halves = calls.type(in(0)) != DataType::F32;
  const bool chosen = halves || !algorithm.getName().empty() || algorithm.getGranted();
  if (chosen || getBias() || alpha != 1 || beta != 1)
    calls.with(alpha, beta);
  if (chosen || getBias())
    calls.with(bias);
  if (chosen)
    calls.with(algorithm);
  if (halves)
    calls.with(calls.type(in(0)), calls.type(out(0)));
  return calls;
}

// Windows.

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

// Normalizations, and their inversion.

KERNEL(BatchNormStatisticsOp) {
  KernelCalls calls(*this);
  return calls.object("BatchNormStatistics", "run", {in(0), out(0), out(1), scratchSlot}, calls.shape(in(0)),
                      getEpsilon());
}
KERNEL(UpdateStatisticsOp) { // out: the running vectors
  KernelCalls calls(*this);
  return calls.object("UpdateStatistics", "run", {in(0), in(1), out(0), out(1)}, calls.shape(in(0))[0],
                      static_cast<int64_t>(getCount()), getMomentum(), getEpsilon());
}
KERNEL(SaveGuardedChannelsOp) {
  KernelCalls calls(*this);
  return calls.object("BatchNormInversion", "save", {in(0), in(1), in(2), out(0)}, calls.shape(in(0)),
                      calls.shape(out(0))[0], 1.0f, getHalf());
}
KERNEL(InvertBatchNormLeakyReluOp) {
  KernelCalls calls(*this);
  return calls.object("BatchNormInversion", "invert", {in(0), in(1), in(2), in(3), in(4), in(5), out(0)},
                      calls.shape(in(0)), calls.shape(in(5))[0], getAlpha(), getHalf());
}
KERNEL(CheckCancellationOp) {
  KernelCalls calls(*this);
  return calls.object("CancellationCheck", "run", {in(0), in(1), out(0)}, elements(getX().getType()),
                      calls.shape(out(0))[0]);
}

template <typename Op> static Calls normalization(Op op, StringRef method, ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  return calls.object("Lrn", method, operands, calls.shape(in(0)), static_cast<int64_t>(op.getSize()), op.getAlpha(),
                      op.getBeta(), op.getBias());
}
KERNEL(LrnOp) { return normalization(*this, "forward", {in(0), out(0), scratchSlot}); }
KERNEL(LrnBackwardOp) { return normalization(*this, "backward", {in(0), in(1), out(0), scratchSlot}); }

// Softmax and losses.

template <typename Op> static Calls softmax(Op op, StringRef method, ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  return calls.object("Softmax", method, operands, calls.shape(in(0)), static_cast<int64_t>(op.getAxis()),
                      op.getLogarithm());
}
KERNEL(SoftmaxOp) { return softmax(*this, "forward", {in(0), out(0)}); }
KERNEL(SoftmaxBackwardOp) { return softmax(*this, "backward", {in(0), in(1), out(0)}); }

static Calls loss(Operation *op, LossKind kind, StringRef method, ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  return calls.object("Loss", method, operands, kind, calls.shape(in(0)));
}
static constexpr Slot lossOperands[] = {in(0), in(1), out(0), scratchSlot};
KERNEL(SoftmaxCrossEntropyOp) { return loss(*this, LossKind::SoftmaxCrossEntropy, "forward", lossOperands); }
KERNEL(MseOp) { return loss(*this, LossKind::MeanSquaredError, "forward", lossOperands); }
KERNEL(BceWithLogitsOp) { return loss(*this, LossKind::BceWithLogits, "forward", lossOperands); }
KERNEL(LossBackwardOp) {
  auto kind = llvm::StringSwitch<std::optional<LossKind>>(getLoss())
                  .Case("softmax_cross_entropy", LossKind::SoftmaxCrossEntropy)
                  .Case("mse", LossKind::MeanSquaredError)
                  .Case("bce_with_logits", LossKind::BceWithLogits)
                  .Default(std::nullopt);
  return loss(*this, kind.value(), "backward", {in(0), in(1), out(0)}); // C1 has checked it
}
KERNEL(CountCorrectOp) { return loss(*this, LossKind::SoftmaxCrossEntropy, "countCorrect", {in(0), in(1), out(0)}); }

// Shapes, layouts and types.

KERNEL(ConcatOp) {
  KernelCalls calls(*this);
  int64_t start = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(getXs().size()); ++i) {
    calls.object("Slab", "insert", {in(i), out(0)}, out(0), in(i), static_cast<int64_t>(getAxis()), start);
    start += calls.shape(in(i))[getAxis()];
  }
  return calls;
}
KERNEL(SliceOp) {
  return KernelCalls(*this).object("Slab", "extract", {in(0), out(0)}, in(0), out(0), static_cast<int64_t>(getAxis()),
                                   static_cast<int64_t>(getStart()));
}
KERNEL(PadSlabOp) {
  return KernelCalls(*this)
      .function("clear", {out(0)})
      .object("Slab", "insert", {in(0), out(0)}, out(0), in(0), static_cast<int64_t>(getAxis()),
              static_cast<int64_t>(getStart()));
}

static Calls reorder(Operation *op, ArrayRef<int64_t> permutation = {}) {
  return KernelCalls(op).object("Reorder", "run", {in(0), out(0)}, in(0), out(0), permutation);
}
KERNEL(TransposeOp) { return reorder(*this, getPermutation()); }
KERNEL(ReorderOp) { return reorder(*this); }
KERNEL(CastOp) { return reorder(*this); }
StringRef CastOp::resultSuffix(unsigned, bool) { return (*this)->hasAttr(attr::recompute) ? "" : "_cast"; }

KERNEL(SumToOp) {
  return KernelCalls(*this).object("SumTo", "run", {in(0), out(0), scratchSlot}, in(0), out(0), getFactor());
}
KERNEL(BroadcastToOp) {
  return KernelCalls(*this).object("BroadcastTo", "run", {in(0), out(0)}, in(0), out(0), getFactor());
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

// Codecs.

static Calls packing(Operation *op, StringRef method, StringRef codec, Slot raw) {
  MLIRContext *context = op->getContext();
  return KernelCalls(op).object("Packing", method, {in(0), out(0)},
                                sched::CodecAttr::get(context, StringAttr::get(context, codec)), raw);
}
KERNEL(EncodeOp) {
  if (findCodec(getCodec())->readDirectly)
    return KernelCalls(*this).object("Mask", "encode", {in(0), out(0)}, elements(getX().getType()), getPositive());
  return packing(*this, "encode", getCodec(), in(0));
}
KERNEL(DecodeOp) { return packing(*this, "decode", getCodec(), out(0)); }

// Optimizers. In: gradient, parameter, states; out: parameter, states.

KERNEL(UpdateOp) {
  if (getRule() == UpdateRule::Sgd)
    return KernelCalls(*this).function("updateSgd", {out(0), in(0), out(1)});
  const Enumerator decay{"WeightDecay", getRule() == UpdateRule::AdamW ? "Decoupled" : "Coupled"};
  return KernelCalls(*this).function("updateAdam", {out(0), in(0), out(1), out(2)}, decay);
}
std::string UpdateOp::launchName() { return "update_" + stringifyUpdateRule(getRule()).str(); }

// Regions.

KERNEL(FusedOp) { return {}; }

planner::OpKind FusedOp::opKind() {
  using planner::OpKind;
  // A normalization has per-channel operands, a join more than one full-shape operand.
  if (!getChannels().empty())
    return OpKind::Norm;
  if (!getBody().getOps<UniformOp>().empty())
    return OpKind::Dropout;
  return getNumOperands() > 1 && isForward(*this) ? OpKind::Join : OpKind::Activation;
}

StringRef FusedOp::resultSuffix(unsigned result, bool backward) {
  return result < fullResults() ? "" : backward ? "_dsum" : "_sum";
}
