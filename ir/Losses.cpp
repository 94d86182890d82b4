// SPDX-License-Identifier: Apache-2.0
// Softmax, losses and their gradients.
#include "ir/Rules.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

INFER(SoftmaxOp) {
  auto x = ranked(op.getX());
  if (op.getAxis() >= static_cast<uint64_t>(x.getRank())) // C1
    return fail(loc, "softmax axis ", op.getAxis(), " of ", x);
  types.push_back(x);
  return success();
}

/// A float. With `classes` the target has an index for each place of x [N,C,d..]: [N,d..]; else it is of
/// x's shape.
static LogicalResult lossType(MaybeLoc loc, RankedTensorType x, RankedTensorType target, bool classes, Types &types) {
  SmallVector<int64_t> wanted(x.getShape());
  if (classes && x.getRank() >= 2)
    wanted.erase(wanted.begin() + 1);
  if (x.getRank() < (classes ? 2 : 0) || target.getShape() != ArrayRef<int64_t>(wanted)) // C1
    return fail(loc, "loss of ", x, " against a target of ", target);
  types.push_back(RankedTensorType::get({}, Float32Type::get(x.getContext())));
  return success();
}

static LogicalResult checkClasses(MaybeLoc loc, RankedTensorType x, std::optional<int64_t> classes) {
  if (!classes || (*classes >= 1 && *classes <= x.getDimSize(1)))
    return success();
  return fail(loc, *classes, " classes of the ", x.getDimSize(1), " of ", x);
}

INFER(SoftmaxCrossEntropyOp) {
  auto x = ranked(op.getX()), target = ranked(op.getTarget());
  if (std::optional<int64_t> first = op.getFirst()) {
    if (x.getRank() != 2 || target.getRank() != 1 || *first < 0 ||
        *first > target.getDimSize(0) - x.getDimSize(0)) // C3
      return fail(loc, "rows ", x, " from ", *first, " on against a target of ", target);
    target = RankedTensorType::get(x.getShape().take_front(), target.getElementType());
  }
  if (failed(lossType(loc, x, target, true, types)))
    return failure();
  return checkClasses(loc, x, op.getClasses()); // C2
}
LogicalResult CountCorrectOp::verify() { // C1
  auto x = ranked(getX());
  return x.getRank() < 2 ? emitOpError() << "counts in logits of " << x : checkClasses(getLoc(), x, getClasses());
}
INFER(MseOp) { return lossType(loc, ranked(op.getX()), ranked(op.getTarget()), false, types); }
INFER(BceWithLogitsOp) {
  auto x = ranked(op.getX());
  if (Value weights = op.getPosWeight()) {
    const ArrayRef<int64_t> own = extents(weights);
    bool fits =
        own.size() == x.getShape().size() && llvm::count_if(own, [](int64_t extent) { return extent != 1; }) < 2;
    for (size_t i = 0; fits && i < own.size(); ++i)
      fits = own[i] == 1 || own[i] == x.getDimSize(i);
    if (!fits) // C2
      return fail(loc, "weights ", ranked(weights), " of ", x);
  }
  return lossType(loc, x, ranked(op.getTarget()), false, types);
}

SINGLE(SoftmaxOp,
       SoftmaxBackwardOp::create(b, getLoc(), getX().getType(), dy, getY(), getAxisAttr(), getLogarithmAttr()))

// A loss that the step returns has the upstream gradient 1; others are parts of what it returns.
template <typename Op>
static LogicalResult buildLoss(Op op, LossForm form, OpBuilder &b, Gradients &gradients, IntegerAttr ignoreIndex = {},
                               IntegerAttr classes = {}, Value posWeight = {}) {
  Value dy = gradients.of(op.getLoss());
  const bool returned =
      llvm::any_of(op->getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  if (!gradients.wanted(op.getX()) || (!dy && !returned))
    return success();
  Value dx = LossBackwardOp::create(b, op.getLoc(), op.getX().getType(), op.getX(), op.getTarget(), posWeight, form,
                                    ignoreIndex, classes, op->template getAttrOfType<IntegerAttr>("first"));
  gradients.add(b, op.getLoc(), op.getX(), dy ? MulOp::create(b, op.getLoc(), dx, dy).getResult() : dx);
  return success();
}

GRADIENT(SoftmaxCrossEntropyOp) {
  return buildLoss(*this, LossForm::SoftmaxCrossEntropy, b, gradients, getIgnoreIndexAttr(), getClassesAttr());
}
GRADIENT(MseOp) { return buildLoss(*this, LossForm::MeanSquaredError, b, gradients); }
GRADIENT(BceWithLogitsOp) {
  return buildLoss(*this, LossForm::BceWithLogits, b, gradients, getIgnoreIndexAttr(), {}, getPosWeight());
}

/// x [N,T,K], target [N,S]; lengths [N] each, of the steps first where they are counted, of the labels after.
template <typename Op> static LogicalResult ctcShapes(MaybeLoc loc, Op op) {
  auto x = ranked(op.getX()), target = ranked(op.getTarget());
  if (x.getRank() != 3 || target.getRank() != 2 || target.getDimSize(0) != x.getDimSize(0)) // C1
    return fail(loc, "loss of ", x, " against a target of ", target);
  if (static_cast<int64_t>(op.getBlank()) < 0 || static_cast<int64_t>(op.getBlank()) >= x.getDimSize(2)) // C2
    return fail(loc, "blank ", static_cast<int64_t>(op.getBlank()), " of ", x.getDimSize(2), " classes");
  bool fit = op.getLengths().size() <= 2 && (!op.getCountsSteps() || !op.getLengths().empty());
  for (Value lengths : op.getLengths())
    fit &= extents(lengths) == x.getShape().take_front();
  return fit ? success() : fail(loc, "lengths of other shapes, or in another number, than the samples of ", x); // C3
}

INFER(CtcLossOp) {
  types.push_back(RankedTensorType::get({}, ranked(op.getX()).getElementType()));
  return ctcShapes(loc, op);
}

// As buildLoss does: the gradient of a loss that the step returns is taken for 1.
GRADIENT(CtcLossOp) {
  Value dy = gradients.of(getLoss());
  const bool returned =
      llvm::any_of((*this)->getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  if (!gradients.wanted(getX()) || (!dy && !returned))
    return success();
  Value dx = CtcLossBackwardOp::create(b, getLoc(), getX().getType(), getX(), getTarget(), getLengths(), getBlankAttr(),
                                       getIgnoreIndexAttr(), getCountsStepsAttr(), getZeroInfinityAttr());
  gradients.add(b, getLoc(), getX(), dy ? MulOp::create(b, getLoc(), dx, dy).getResult() : dx);
  return success();
}

LogicalResult CtcLossBackwardOp::verify() {
  return failed(sameShapes(*this, {getX(), getDx()})) ? failure() : ctcShapes(getLoc(), *this);
}

LogicalResult SoftmaxBackwardOp::verify() {
  SoftmaxOp::Properties p;
  p.axis = getAxisAttr();
  return failed(sameShapes(*this, {getDy(), getY()})) ? failure() : mirrors<SoftmaxOp>(*this, {getDx()}, p, {getDy()});
}

// Nothing is wanted of results: that of a loss is a scalar whatever x is, so that operands alone are checked.
LogicalResult LossBackwardOp::verify() {
  if (failed(sameShapes(*this, {getX(), getDx()})))
    return failure();
  ValueRange operands = getOperands();
  if (getPosWeight() && getLoss() != LossForm::BceWithLogits) // C1
    return emitOpError() << "of " << stringifyLossForm(getLoss()) << " takes no weights";
  if ((getClasses() || getFirst()) && getLoss() != LossForm::SoftmaxCrossEntropy) // C2
    return emitOpError() << "of " << stringifyLossForm(getLoss()) << " has no classes, and no first row";
  SoftmaxCrossEntropyOp::Properties p;
  p.classes = getClassesAttr();
  p.first = getFirstAttr();
  switch (getLoss()) {
  case LossForm::SoftmaxCrossEntropy:
    return mirrors<SoftmaxCrossEntropyOp>(*this, operands, p, {});
  case LossForm::MeanSquaredError:
    return mirrors<MseOp>(*this, operands, {}, {});
  case LossForm::BceWithLogits:
    return mirrors<BceWithLogitsOp>(*this, operands, {}, {});
  }
  llvm_unreachable("all losses are named");
}

LogicalResult LossAndGradientOp::verify() { // C1
  SoftmaxCrossEntropyOp::Properties p;
  p.classes = getClassesAttr();
  p.first = getFirstAttr();
  if (failed(sameShapes(*this, {getX(), getDx()})))
    return failure();
  return mirrors<SoftmaxCrossEntropyOp>(*this, getOperands(), p, {getLoss()});
}

template <typename Op> static Calls softmax(Op op, StringRef method, ArrayRef<Slot> operands) {
  KernelCalls calls(op);
  return calls.object(arguments::Softmax{calls.shape(in(0)), static_cast<int64_t>(op.getAxis()), op.getLogarithm()},
                      method, operands);
}

KERNEL(SoftmaxOp) { return softmax(*this, "forward", {in(0), out(0)}); }
KERNEL(SoftmaxBackwardOp) { return softmax(*this, "backward", {in(0), in(1), out(0)}); }

static_assert(static_cast<int>(LossForm::MeanSquaredError) == static_cast<int>(LossKind::MeanSquaredError) &&
                  static_cast<int>(LossForm::BceWithLogits) == static_cast<int>(LossKind::BceWithLogits),
              "LossForm follows LossKind");

static Calls loss(Operation *op, LossKind kind, StringRef method, ArrayRef<Slot> operands,
                  std::optional<int64_t> ignoreIndex = {}, std::optional<int64_t> classes = {},
                  std::optional<int64_t> first = {}) {
  KernelCalls calls(op);
  return calls.object(arguments::Loss{kind, calls.shape(in(0)), ignoreIndex.value_or(Loss::none), classes.value_or(0),
                                      first.value_or(0), first ? calls.shape(in(1))[0] : 0},
                      method, operands);
}

/// The kernel takes both lengths in fixed places, the op as many operands as there are.
template <typename Op> static Calls ctcLoss(Op op, StringRef method) {
  KernelCalls calls(op);
  const auto size = static_cast<int64_t>(op.getLengths().size());
  const bool steps = op.getCountsSteps(), labels = size > (steps ? 1 : 0);
  arguments::CtcLoss kernel{};
  kernel.x = calls.shape(in(0)), kernel.labels = calls.shape(in(1))[1];
  kernel.blank = static_cast<int64_t>(op.getBlank()), kernel.zeroInfinity = op.getZeroInfinity();
  if (op.getIgnoreIndex())
    kernel.ignoreIndex = static_cast<int64_t>(*op.getIgnoreIndex());
  return calls.object(kernel, method,
                      {in(0), in(1), steps ? in(2) : noSlot, labels ? in(1 + size) : noSlot, out(0), scratchSlot});
}

KERNEL(CtcLossOp) { return ctcLoss(*this, "forward"); }
KERNEL(CtcLossBackwardOp) { return ctcLoss(*this, "backward"); }
PrecisionPreference CtcLossBackwardOp::precisionPreference() { return PrecisionPreference::Mixed; }
bool CtcLossBackwardOp::isOperandWide(unsigned) { return true; }

PrecisionPreference SoftmaxCrossEntropyOp::precisionPreference() { return PrecisionPreference::Mixed; }
bool SoftmaxCrossEntropyOp::isResultWide(unsigned) { return true; }
PrecisionPreference CountCorrectOp::precisionPreference() { return PrecisionPreference::Mixed; }

// Where its readers want 16 bits and nobody scales it before: fp16's scale comes after it.
PrecisionPreference LossBackwardOp::precisionPreference() { return PrecisionPreference::Mixed; }
bool LossBackwardOp::isOperandWide(unsigned i) { return i != 0 || getLoss() != LossForm::SoftmaxCrossEntropy; }

PrecisionPreference LossAndGradientOp::precisionPreference() { return PrecisionPreference::Mixed; }
bool LossAndGradientOp::isOperandWide(unsigned i) { return i != 0; }
bool LossAndGradientOp::isResultWide(unsigned i) { return i != 0; }

/// Targets name classes, dimension 1 of the logits.
template <typename Op> static sched::IdsAttr classes(Op op, std::optional<int64_t> ignored = {}) {
  const int64_t number = op.getClasses().value_or(ranked(op.getX()).getDimSize(1));
  return sched::IdsAttr::get(op.getContext(), op.getTargetMutable().getOperandNumber(), number, ignored);
}
sched::IdsAttr SoftmaxCrossEntropyOp::ids() { return classes(*this, getIgnoreIndex()); }
sched::IdsAttr LossAndGradientOp::ids() { return classes(*this, getIgnoreIndex()); }
/// Labels name classes, the last dimension of the scores.
sched::IdsAttr CtcLossOp::ids() {
  return sched::IdsAttr::get(getContext(), getTargetMutable().getOperandNumber(), ranked(getX()).getDimSize(2),
                             getIgnoreIndex());
}
sched::IdsAttr CountCorrectOp::ids() { return classes(*this); }

static constexpr Slot lossOperands[] = {in(0), in(1), out(0), scratchSlot};

KERNEL(SoftmaxCrossEntropyOp) {
  return loss(*this, LossKind::SoftmaxCrossEntropy, "forward", lossOperands, getIgnoreIndex(), getClasses(),
              getFirst());
}
KERNEL(LossAndGradientOp) {
  KernelCalls calls(*this);
  const std::optional<int64_t> ignored = getIgnoreIndex(), classes = getClasses(), first = getFirst();
  return calls.object(arguments::LossAndGradient{calls.shape(in(0)), ignored.value_or(Loss::none), classes.value_or(0),
                                                 first.value_or(0), first ? calls.shape(in(1))[0] : 0},
                      "run", {in(0), in(1), out(0), out(1), scratchSlot});
}
KERNEL(MseOp) { return loss(*this, LossKind::MeanSquaredError, "forward", lossOperands); }
KERNEL(BceWithLogitsOp) {
  SmallVector<Slot> operands(std::begin(lossOperands), std::end(lossOperands));
  if (getPosWeight())
    operands.push_back(in(2));
  return loss(*this, LossKind::BceWithLogits, "forward", operands, getIgnoreIndex());
}

// The runtime's method takes scratch and weights last, each with a default: noSlot keeps the place of a scratch that is
// not needed where weights follow.
KERNEL(LossBackwardOp) {
  SmallVector<Slot> operands = {in(0), in(1), out(0)};
  if (getIgnoreIndex()) // what counts is counted first
    operands.push_back(scratchSlot);
  if (getPosWeight() && !getIgnoreIndex())
    operands.push_back(noSlot);
  if (getPosWeight())
    operands.push_back(in(2));
  return loss(*this, static_cast<LossKind>(getLoss()), "backward", operands, getIgnoreIndex(), getClasses(),
              getFirst());
}

KERNEL(CountCorrectOp) {
  return loss(*this, LossKind::SoftmaxCrossEntropy, "countCorrect", {in(0), in(1), out(0)}, {}, getClasses());
}
