// SPDX-License-Identifier: Apache-2.0
// assign-precision, where the module says train.precision = "bf16" or "fp16", for each function:
//  1. walk it backwards and find the values that a product reads, by itself or through ops that take any type;
//  2. walk it forwards: operands that an op cannot take as they are go through a train.cast shared by later readers;
//     results of products become bf16 or f16, those of other ops where such a value is among their operands or a
//     product reads them. What a convolution with few channels reads through a cast gets more of them there.
// After assign-layouts, since a cast brings weights into the order of the engines that read them, and before linearize,
// since what works in place has one type. Without it products would run in f32 beside idle tensor cores, and
// activations would take twice the bytes.
#include "passes/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// One function. `fed` holds what products read, found backwards, as an op asks its readers; types are then given
/// forwards, as an op asks its operands.
class Assigner {
public:
  Assigner(FloatType narrow, int64_t fewestChannels, bool turnsGradients)
      : wide(Float32Type::get(narrow.getContext())), narrow(narrow), fewestChannels(fewestChannels),
        turnsGradients(turnsGradients) {}

  int casts = 0, narrowed = 0;

  /// First from the end on: which values lead to a product, whose operands are narrow. Then from the start: every op
  /// takes what it wants, by casts where its operands are something else.
  void run(func::FuncOp function) {
    Block &block = function.getBody().front();
    for (Operation &op : llvm::reverse(block))
      for (Value result : op.getResults())
        if (llvm::any_of(result.getUses(), [&](OpOperand &use) { return leadsToProduct(use); }))
          fed.insert(result);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto aware = dyn_cast<PrecisionAware>(&op)) {
        assign(aware);
        dropIdentity(&op);
      } else
        for (OpOperand &operand : op.getOpOperands())
          take(operand, wide);
  }

private:
  static bool isFactor(OpOperand &use) {
    auto aware = dyn_cast<PrecisionAware>(use.getOwner());
    return aware && aware.precisionPreference() == PrecisionPreference::Product &&
           !aware.isOperandWide(use.getOperandNumber());
  }
  /// Whether a product reads the value here, or what an op of any type makes of it there. The walk is backwards, so
  /// that `fed` knows of the reader's results already.
  bool leadsToProduct(OpOperand &use) {
    auto aware = dyn_cast<PrecisionAware>(use.getOwner());
    if (!aware || aware.isOperandWide(use.getOperandNumber()))
      return false;
    return isFactor(use) || (aware.precisionPreference() != PrecisionPreference::Product && anyFed(aware));
  }
  bool anyFed(PrecisionAware op) {
    return llvm::any_of(op->getResults(),
                        [&](OpResult r) { return !op.isResultWide(r.getResultNumber()) && fed.contains(r); });
  }
  /// Some reader would cast the value right away if it were f32.
  bool readNarrow(Value value) {
    return llvm::any_of(value.getUses(), [&](OpOperand &use) {
      auto aware = dyn_cast<PrecisionAware>(use.getOwner());
      return isFactor(use) || (aware && aware.precisionPreference() == PrecisionPreference::Same && anyFed(aware));
    });
  }

  /// Whether the op's free results become narrow.
  bool wantsNarrow(PrecisionAware op) {
    bool any = false;
    for (OpOperand &operand : op->getOpOperands())
      any |= isHalf(operand.get().getType()) && !op.isOperandWide(operand.getOperandNumber());
    switch (op.precisionPreference()) {
    case PrecisionPreference::Product:
      return !op.mayStoreWide() || anyFed(op);
    case PrecisionPreference::Same:
      return any || anyFed(op);
    case PrecisionPreference::Mixed: // the gradient of a loss is rounded after what scales it, whatever its logits are
      return anyFed(op) && ((any && !isa<LossBackwardOp>(op)) ||
                            llvm::any_of(op->getResults(), [&](Value v) { return readNarrow(v); }));
    }
    return false;
  }

  /// 0, or how many channels the image has that this op is about to read through a cast to bf16.
  int64_t fewChannels(Operation *op) const {
    auto conv = dyn_cast<ConvOp>(op);
    auto gradient = dyn_cast<ConvBackwardWeightOp>(op);
    if (!(conv && conv.getGroup() == 1) && !(gradient && gradient.getGroup() == 1))
      return 0;
    auto x = cast<RankedTensorType>((conv ? conv.getX() : gradient.getX()).getType());
    return x.getElementType().isF32() && x.getDimSize(1) < fewestChannels ? x.getDimSize(1) : 0;
  }
  static RankedTensorType withChannels(RankedTensorType type, int64_t channels) {
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = channels;
    return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  }
  /// The weight gradient of an image with fewestChannels, without those that are none of the weights'.
  void dropChannels(ConvBackwardWeightOp op, int64_t channels) const {
    Value dw = op.getDw();
    dw.setType(withChannels(cast<RankedTensorType>(dw.getType()), fewestChannels));
    OpBuilder b(op.getContext());
    b.setInsertionPointAfter(op);
    auto kept = SliceOp::create(b, op.getLoc(), dw, 1, 0, channels);
    copyOrdinal(op, kept);
    dw.replaceAllUsesExcept(kept.getY(), kept);
  }

  /// The gradient of a convolution's weights as its engine leaves it, and what others read as an op of its own.
  void turnGradient(ConvBackwardWeightOp op) const {
    Value dw = op.getDw();
    const auto type = cast<RankedTensorType>(dw.getType());
    dw.setType(withLayout(RankedTensorType::get(type.getShape(), narrow), LayoutKind::NHWC));
    OpBuilder b(op.getContext());
    b.setInsertionPointAfter(op);
    auto turned = CastOp::create(b, op.getLoc(), type, dw);
    copyOrdinal(op, turned);
    dw.replaceAllUsesExcept(turned.getY(), turned);
  }

  /// Gives the op's results and operands their types. Whether it becomes narrow is asked before either changes.
  void assign(PrecisionAware op) {
    const int64_t few = fewChannels(op);
    bool becomesNarrow = wantsNarrow(op), mixes = op.precisionPreference() == PrecisionPreference::Mixed;
    bool factors = op.precisionPreference() == PrecisionPreference::Product || becomesNarrow;
    for (OpResult result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      // Vectors and scalars that no product works on: nothing is gained.
      if (!becomesNarrow || op.isResultWide(result.getResultNumber()) || !isReal(type) || (mixes && type.getRank() < 2))
        continue;
      result.setType(RankedTensorType::get(type.getShape(), narrow, type.getEncoding()));
      ++narrowed;
    }
    for (OpOperand &operand : op->getOpOperands()) // a product's row has the result's type
      if (op.isOperandWide(operand.getOperandNumber()))
        take(operand, wide);
      else if (!mixes)
        take(operand, factors ? narrow : wide, few && (isa<ConvOp>(op) || operand.getOperandNumber() == 1));
    if (auto gradient = dyn_cast<ConvBackwardWeightOp>(op.getOperation()); gradient && few)
      dropChannels(gradient, few);
    else if (gradient && turnsGradients && !gradient.getDw().use_empty())
      turnGradient(gradient);
  }

  /// A weight that lies in bf16 (--frozen=bf16) is what products read in bf16.
  static void dropIdentity(Operation *op) {
    auto cast = dyn_cast<CastOp>(op);
    if (!cast || cast.getX().getType() != cast.getY().getType())
      return;
    cast.getY().replaceAllUsesWith(cast.getX());
    cast.erase();
  }

  /// An operand's type, were these its elements; with fewestChannels where it is widened.
  RankedTensorType typeOf(OpOperand &operand, Type element, bool widened) const {
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (widened)
      type = withChannels(type, fewestChannels);
    auto wanted = RankedTensorType::get(type.getShape(), element, type.getEncoding());
    // A convolution's engines read weights in this order.
    auto aware = dyn_cast<LayoutAware>(operand.getOwner());
    if (element == narrow && aware && aware.isLayoutFixed(operand.getOperandNumber()))
      return withLayout(wanted, LayoutKind::NHWC);
    return wanted;
  }

  /// Lets the op read the value in this element type. A cast stands in front of the first reader and serves all later
  /// ones; what differs in its order alone needs no cast but a train.reorder.
  void take(OpOperand &operand, Type element, bool widened = false) {
    Value value = operand.get();
    if (!isReal(value.getType()))
      return;
    auto type = cast<RankedTensorType>(value.getType());
    auto wanted = typeOf(operand, element, widened);
    if (wanted == type)
      return;
    Value &known = taken[{value, wanted}];
    if (!known) {
      OpBuilder b(operand.getOwner());
      Location loc = operand.getOwner()->getLoc();
      known = element == type.getElementType() ? ReorderOp::create(b, loc, wanted, value).getY()
                                               : CastOp::create(b, loc, wanted, value).getY();
      copyOrdinal(operand.getOwner(), known.getDefiningOp());
      ++casts;
    }
    operand.set(known);
  }

  Type wide, narrow;
  /// Channels that engines on tensor cores read at a time. Where an image has fewer, they copy it into a workspace with
  /// as many, the whole batch and in each pass: its cast to halves writes them in their place, with zeros in the new
  /// ones.
  int64_t fewestChannels;
  bool turnsGradients; ///< of convolutions' weights, in ops of their own
  llvm::DenseSet<Value> fed;
  llvm::DenseMap<std::pair<Value, Type>, Value> taken;
};

struct AssignPrecision : sluice::impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;

  void runOnOperation() override {
    const FloatType narrow = halfOf(getOperation());
    if (!narrow)
      return;
    if (failed(checkRunsBefore(getOperation(), "sluice-assign-precision", "sluice-linearize", attr::has<attr::Stage>)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Assigner assigner(narrow, fewestChannels, turnsGradients);
      assigner.run(function);
      casts += assigner.casts;
      narrowed += assigner.narrowed;
    }
  }
};

} // namespace
